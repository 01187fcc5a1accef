//! `reframe test`: runs the `*.test.yaml` files of a set.

mod human;
mod json;
mod junit;
mod watch;

use super::{EXIT_FINDINGS, EXIT_OK, error, print_report, use_colour};
use crate::diagnostics::{Diagnostic, Sources, or_list, render_all};
use crate::mapping::{Overrides, Plan, SourceFile, WorkBudget, load_within};
use crate::reload::generation::SetError;
use crate::reload::supervisor::Supervisor;
use crate::reload::{Layers, read_set};
use crate::verify;
use crate::verify::{Difference, TestCase};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct TestArgs {
    /// Run only the tests with one of these words in their file or name
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Run the tests again whenever a file changes
    #[arg(long)]
    watch: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Also write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
    Junit,
}

/// All tests that ran, grouped by file.
struct TestReport {
    files: Vec<FileRun>,
    sources: Arc<Sources>,
    duration: Duration,
}

struct FileRun {
    /// The path within the set; `shown` is the displayed path.
    name: String,
    shown: String,
    tests: Vec<TestRun>,
    /// Errors in the test file itself.
    mistakes: Vec<Diagnostic>,
}

struct TestRun {
    case: TestCase,
    duration: Duration,
    differences: Vec<Difference>,
}

pub fn run(args: &TestArgs, layers: &Layers) -> Result<u8, String> {
    if args.watch {
        return watch::run(args, layers).map_err(error);
    }
    run_once(args, layers, read_set(layers))
}

/// Loads and tests a set once and prints the report.
fn run_once(args: &TestArgs, layers: &Layers, files: Result<Vec<SourceFile>, SetError>) -> Result<u8, String> {
    let files = files.map_err(|error| error.render(use_colour()).trim_end().to_owned())?;
    let load = |files: &[SourceFile], budget: &WorkBudget| load_within(files, None, &Overrides::default(), budget);
    let loaded = Supervisor::default().run(&files.into(), load);
    let loaded = loaded.map_err(|error| error.render(use_colour()).trim_end().to_owned())?;
    let Some(plan) = loaded.plan else {
        let diagnostics = render_all(&loaded.diagnostics, &loaded.sources, use_colour());
        return Err(format!("{diagnostics}\nthe mappings do not load, so there is nothing to test"));
    };
    let run = TestReport::of(&plan, &args.filters);
    if run.files.is_empty() && !args.filters.is_empty() {
        let filters = or_list(args.filters.iter().map(|f| f.as_str()));
        return Err(error(format!("no test matches {filters}")));
    }
    if let Some(file) = &args.junit {
        let written = fs::write(file, junit::report(&run, layers));
        written.map_err(|cause| error(format!("{}: {cause}", file.display())))?;
    }
    let text = match args.format {
        Format::Human => human::report(&run, layers),
        Format::Json => json::report(&run, layers),
        Format::Junit => junit::report(&run, layers),
    };
    print_report(&text, if run.failed() > 0 { EXIT_FINDINGS } else { EXIT_OK })
}

impl TestReport {
    fn of(plan: &Plan, filters: &[String]) -> TestReport {
        let started = Instant::now();
        let sources = plan.sources.clone();
        let mut files = Vec::new();
        for suite in verify::suites(plan) {
            let source = sources.iter().find(|(_, s)| s.name == suite.file);
            let shown = source.map_or(&suite.file, |(_, source)| &source.shown).clone();
            let wanted = |text: &str| filters.is_empty() || filters.iter().any(|f| text.contains(f.as_str()));
            let all = wanted(&shown);
            let cases = suite.cases.into_iter().filter(|case| all || wanted(&case.name));
            let tests: Vec<TestRun> = cases.map(|case| TestRun::of(case, plan)).collect();
            if all || !tests.is_empty() {
                files.push(FileRun { name: suite.file, shown, tests, mistakes: suite.mistakes });
            }
        }
        TestReport { files, sources, duration: started.elapsed() }
    }

    fn passed(&self) -> usize {
        self.files.iter().map(FileRun::passed).sum()
    }

    fn failed(&self) -> usize {
        self.files.iter().map(FileRun::failed).sum()
    }
}

impl FileRun {
    fn passed(&self) -> usize {
        self.tests.iter().filter(|t| t.differences.is_empty()).count()
    }

    /// Errors in the test file count as failures.
    fn failed(&self) -> usize {
        self.tests.len() - self.passed() + self.mistakes.len()
    }

    fn duration(&self) -> Duration {
        self.tests.iter().map(|t| t.duration).sum()
    }
}

impl TestRun {
    fn of(case: TestCase, plan: &Plan) -> TestRun {
        let started = Instant::now();
        let differences = verify::run(&case, plan);
        TestRun { case, duration: started.elapsed(), differences }
    }
}

/// `0.4 ms`
fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
