//! The command line, one file per command. Exit codes: 0 success, 1 findings or failing tests, 2 could not run.

pub mod check;
mod columns;
mod explain;
mod init;
mod launch_child;
mod list;
mod openapi;
mod schema;
mod serve;
mod signals;
mod test;
mod validate;

use crate::diagnostics::render_all;
use crate::mapping::{Overrides, Plan, SourceFile, WorkBudget, load_within};
use crate::reload::supervisor::Supervisor;
use crate::reload::{Base, Layers, read_set};
use crate::upstream::child;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An LLM gateway programmed in YAML: mapping files translate any backend's stream into exactly what OpenAI-compatible
/// clients expect.
#[derive(Parser)]
#[command(name = "reframe", version, max_term_width = 100)]
struct Args {
    /// The mapping set to use instead of the embedded one [default: ./mappings if it has a gateway.yaml]
    #[arg(long, global = true, value_name = "DIR")]
    mappings: Option<PathBuf>,
    /// Add this folder to the set as a layer: gateway.yaml and shared.yaml are merged, other files replace those of the
    /// same name; can be repeated
    #[arg(long, global = true, value_name = "DIR")]
    add: Vec<PathBuf>,
    #[command(flatten)]
    serve: serve::ServeArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Start the gateway (the default)
    Serve,
    /// Check the mappings and report all problems
    Check(check::CheckArgs),
    /// Run the *.test.yaml files of the set
    Test(test::TestArgs),
    /// Show, event by event, how a dialect translates a transcript or a test
    Explain(explain::ExplainArgs),
    /// List what the mapping language offers, and what the set defines
    List(list::ListArgs),
    /// Write the embedded mapping set to a folder, to edit it
    Init(init::InitArgs),
    /// Print or write the OpenAPI document of the set
    Openapi(openapi::OpenapiArgs),
    /// Check whether a captured body or stream conforms to a dialect
    Validate(validate::ValidateArgs),
    /// Print the JSON Schema of a kind of mapping file, for editors; without a kind, list the kinds
    Schema(schema::SchemaArgs),
    /// Become a child process of the gateway that ends with it; used by the gateway itself
    #[command(name = child::LAUNCH, hide = true)]
    LaunchChild(launch_child::LaunchArgs),
}

pub const EXIT_OK: u8 = 0;
pub const EXIT_FINDINGS: u8 = 1;
pub const EXIT_ERROR: u8 = 2;

pub fn run() -> ExitCode {
    let args = match command().try_get_matches().and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_ERROR } else { EXIT_OK });
        }
    };
    ExitCode::from(run_command(args).unwrap_or_else(|message| {
        eprintln!("{message}");
        EXIT_ERROR
    }))
}

/// Returns the exit code, or why the command could not run, as it is printed.
fn run_command(args: Args) -> Result<u8, String> {
    if let Some(Command::LaunchChild(args)) = &args.command {
        return Err(error(launch_child::run(args)));
    }
    let layers = layers(args.mappings, args.add).map_err(error)?;
    let overrides = args.serve.overrides().map_err(error)?;
    match args.command.unwrap_or(Command::Serve) {
        Command::Serve => {
            args.serve.check_port().map_err(error)?;
            serve::run(layers, overrides, args.serve.poll(), args.serve.log_format()).map_err(error)
        }
        Command::Check(args) => check::run(&args, &layers, &overrides),
        Command::Test(args) => test::run(&args, &layers),
        Command::Explain(args) => explain::run(&args, &layers, &overrides),
        Command::List(args) => list::run(&args, &layers, &overrides),
        Command::Init(args) => init::run(&args),
        Command::Openapi(args) => openapi::run(&args, layers, overrides),
        Command::Validate(args) => validate::run(&args, &layers),
        Command::Schema(args) => schema::run(&args),
        Command::LaunchChild(args) => Err(error(launch_child::run(&args))),
    }
}

fn error(message: impl Display) -> String {
    format!("error: {message}")
}

/// The command line, with the server options hidden in the help of the other commands. A subcommand that defines an
/// option of its own does not inherit the global one.
fn command() -> clap::Command {
    let command = Args::command();
    let is_server_option = |option: &&Arg| option.get_help_heading() == Some(serve::SERVER_OPTIONS);
    let hidden: Vec<Arg> = command.get_arguments().filter(is_server_option).map(|o| o.clone().hide(true)).collect();
    command.mut_subcommands(|sub| if sub.get_name() == "serve" { sub } else { sub.args(hidden.clone()) })
}

fn layers(mappings: Option<PathBuf>, add: Vec<PathBuf>) -> Result<Layers, String> {
    let base = match mappings {
        Some(folder) if folder.is_dir() => Base::Folder(folder),
        Some(folder) => return Err(format!("{} is not a folder", folder.display())),
        // A folder without access permission exists; reading it reports the error.
        None if Path::new("mappings/gateway.yaml").try_exists().unwrap_or(true) => Base::Folder("mappings".into()),
        None => Base::Embedded,
    };
    match add.iter().find(|f| !f.is_dir()) {
        Some(missing) => Err(format!("{} is not a folder", missing.display())),
        None => Ok(Layers { base, add }),
    }
}

/// Loads a set to run something with it; the error has all diagnostics.
fn load_plan(layers: &Layers, overrides: &Overrides) -> Result<Plan, String> {
    let files = read_set(layers).map_err(|error| error.render(use_colour()))?;
    let overrides = overrides.clone();
    let load = move |files: &[SourceFile], budget: &WorkBudget| load_within(files, None, &overrides, budget);
    let loaded = Supervisor::default().run(&files.into(), load).map_err(|error| error.render(use_colour()))?;
    loaded.plan.ok_or_else(|| render_all(&loaded.diagnostics, &loaded.sources, use_colour()))
}

/// The names of the dialects of a set, each once.
fn dialect_names(plan: &Plan) -> Vec<&str> {
    let mut names: Vec<&str> = plan.dialects().map(|d| d.name.as_str()).collect();
    names.dedup();
    names
}

/// The displayed name of a set.
fn set_name(layers: &Layers) -> String {
    let base = match &layers.base {
        Base::Embedded => "embedded mappings".to_owned(),
        Base::Folder(folder) => format!("{}/", folder.display()),
    };
    let add: Vec<String> = layers.add.iter().map(|f| format!(" + {}/", f.display())).collect();
    base + &add.concat()
}

/// Prints a report and returns the exit code. A reader that closes the pipe early (`| head`) is no error; any other
/// failure to write is.
fn print_report(text: &str, code: u8) -> Result<u8, String> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(error(format!("cannot write the report: {cause}"))),
        Ok(()) | Err(_) => Ok(code),
    }
}

fn use_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
