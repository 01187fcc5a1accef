//! `reframe test`: the tests that stand beside the mappings.

mod human;
mod json;
mod junit;
mod watch;

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour, say};
use crate::diagnostics::{Diagnostic, Sources, Span, render_all};
use crate::mapping::{FileText, load};
use crate::reload::{Layers, read};
use crate::verify;
use crate::verify::Difference;
use clap::{Args, ValueEnum};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct TestArgs {
    /// Run only the tests whose file or name holds one of these words
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Run them again whenever a file changes
    #[arg(long)]
    watch: bool,
    /// How to print what came of them
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write a JUnit report to this file as well
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
    Junit,
}

/// All tests that ran, file by file.
struct Run {
    files: Vec<FileRun>,
    sources: Arc<Sources>,
    took: Duration,
}

struct FileRun {
    /// Inside the set, and as a person knows it.
    name: String,
    shown: String,
    tests: Vec<TestRun>,
    /// What is wrong with the file itself.
    mistakes: Vec<Diagnostic>,
}

struct TestRun {
    name: String,
    span: Span,
    took: Duration,
    differences: Vec<Difference>,
    /// Is there a turn or a request to look at?
    visible: bool,
}

pub fn run(args: &TestArgs, layers: &Layers) -> u8 {
    if args.watch {
        return watch::run(args, layers);
    }
    match read(layers) {
        Ok(files) => once(args, layers, &files),
        Err(refusal) => {
            eprint!("{}", refusal.render(colour()));
            COULD_NOT_RUN
        }
    }
}

/// Loads and tests a set once, and prints what came of it.
fn once(args: &TestArgs, layers: &Layers, files: &[FileText]) -> u8 {
    let loaded = load(files);
    let Some(plan) = loaded.plan else {
        eprintln!("{}", render_all(&loaded.diagnostics, &loaded.sources, colour()));
        eprintln!("the mappings do not load, so there is nothing to test");
        return COULD_NOT_RUN;
    };
    let run = Run::of(&verify::suites(&plan), &args.filters, plan.sources.clone());
    if run.files.is_empty() && !args.filters.is_empty() {
        eprintln!(
            "error: no test has {} in its file or name",
            crate::diagnostics::one_of(args.filters.iter().map(|f| f.as_str()))
        );
        return COULD_NOT_RUN;
    }
    if let Some(file) = &args.junit
        && let Err(error) = fs::write(file, junit::report(&run, layers))
    {
        eprintln!("error: {}: {error}", file.display());
        return COULD_NOT_RUN;
    }
    let text = match args.format {
        Format::Human => human::report(&run, layers),
        Format::Json => json::report(&run, layers),
        Format::Junit => junit::report(&run, layers),
    };
    say(&text, if run.failed() > 0 { FINDINGS } else { FINE })
}

impl Run {
    fn of(suites: &[verify::Suite], filters: &[String], sources: Arc<Sources>) -> Run {
        let began = Instant::now();
        let mut files = Vec::new();
        for suite in suites {
            let shown = sources.iter().find(|(_, s)| s.name == suite.file).map_or(&suite.file, |(_, s)| &s.shown);
            let wanted = |text: &str| filters.is_empty() || filters.iter().any(|f| text.contains(f.as_str()));
            let all = wanted(shown);
            let tests: Vec<TestRun> =
                suite.cases.iter().filter(|c| all || wanted(&c.name)).map(|c| TestRun::of(c, &sources)).collect();
            if all || !tests.is_empty() {
                let mistakes = suite.mistakes.clone();
                files.push(FileRun { name: suite.file.clone(), shown: shown.clone(), tests, mistakes });
            }
        }
        Run { files, sources, took: began.elapsed() }
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

    /// A file that is wrong fails too, whatever else it holds.
    fn failed(&self) -> usize {
        self.tests.len() - self.passed() + self.mistakes.len()
    }

    fn took(&self) -> Duration {
        self.tests.iter().map(|t| t.took).sum()
    }
}

impl TestRun {
    fn of(case: &verify::Case, sources: &Sources) -> TestRun {
        let began = Instant::now();
        let differences = verify::run(case, sources);
        let took = began.elapsed();
        TestRun {
            name: case.name.clone(),
            span: case.span,
            took,
            differences,
            visible: !case.given.is_empty() || case.dialect.is_some(),
        }
    }
}

/// `0.4 ms`
fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
