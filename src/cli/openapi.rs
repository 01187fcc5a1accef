//! `reframe openapi`: prints or writes the OpenAPI document of a set, or checks whether the written file is current.

use super::{EXIT_FINDINGS, EXIT_OK, error, print_report, use_colour};
use crate::mapping::Overrides;
use crate::openapi;
use crate::reload::{Layers, Reloader};
use clap::Args;
use std::fs;
use std::path::PathBuf;

#[derive(Args)]
pub struct OpenapiArgs {
    /// Write the file instead of printing the document
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Check whether the file is current
    #[arg(long)]
    check: bool,
    /// The file to write or check
    #[arg(long, value_name = "PATH", default_value = "openapi/openapi.json")]
    file: PathBuf,
}

pub fn run(args: &OpenapiArgs, layers: Layers, overrides: Overrides) -> Result<u8, String> {
    let reloader = Reloader::open(layers, overrides).map_err(|error| error.render(use_colour()))?;
    // Without the generation, which would make the file stale after every edit.
    let text = openapi::json_text(&openapi::document(&reloader.current().plan, None));
    let shown = args.file.display();
    if args.check {
        let written = fs::read_to_string(&args.file);
        let written = written.map_err(|e| error(format!("{shown}: {e}\nhelp: run `reframe openapi --write`")))?;
        if written != text {
            eprintln!("{shown} is stale; run `reframe openapi --write`");
            return Ok(EXIT_FINDINGS);
        }
        return Ok(EXIT_OK);
    }
    if args.write {
        let folder = args.file.parent().filter(|f| !f.as_os_str().is_empty());
        let written = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&args.file, &text));
        return written.map(|()| EXIT_OK).map_err(|e| error(format!("{shown}: {e}")));
    }
    print_report(&text, EXIT_OK)
}
