//! `reframe check`: reports every problem of a set at once. A set without errors is accepted by `serve`.
//!
//! `CheckReport::build` runs the phases; `human`, `json`, `github` and `sarif` are the output formats.

mod explain;
mod github;
mod human;
mod json;
mod overrides;
mod phases;
mod sarif;

use super::{EXIT_ERROR, EXIT_FINDINGS, EXIT_OK, print_report, use_colour};
use crate::diagnostics::{Code, Diagnostic, Phase, Severity, Source, Sources};
use crate::mapping::lint::loss;
use crate::mapping::lint::loss::Loss;
use crate::mapping::source::layout::SetFile;
use crate::mapping::{LoadOutcome, Overrides, Plan, SourceFile, WorkBudget, load_within};
use crate::reload::generation::SetError;
use crate::reload::supervisor::Supervisor;
use crate::reload::{Layers, embedded, read_set};
use crate::verify;
use crate::verify::Verification;
use clap::{Args, ValueEnum};
use overrides::ShownOverride;
use std::sync::Arc;

#[derive(Args)]
pub struct CheckArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Treat warnings as errors; notes are never errors
    #[arg(long)]
    deny_warnings: bool,
    /// Explain a diagnostic code and how to fix it, without checking; without a code, list all codes
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "")]
    explain: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Text for a terminal
    Human,
    /// One JSON document, described in docs/check.md
    Json,
    /// Workflow commands: annotations on a GitHub pull request
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// Whether warnings affect the exit code.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Warnings {
    Allowed,
    Denied,
}

/// The checked files and the findings.
struct CheckReport {
    files: Vec<SourceFile>,
    sources: Arc<Sources>,
    plan: Option<Plan>,
    findings: Vec<Diagnostic>,
    losses: Vec<Loss>,
    overrides: Vec<ShownOverride>,
    reached: Reached,
    warnings: Warnings,
}

/// How far the checks got.
enum Reached {
    /// A file could not be read.
    Nothing,
    /// The files were read but do not compile.
    Files,
    /// The set compiles and was verified.
    Plan(Verification),
}

pub fn run(args: &CheckArgs, layers: &Layers, overrides: &Overrides) -> Result<u8, String> {
    if let Some(code) = &args.explain {
        return explain::run(code);
    }
    let warnings = if args.deny_warnings { Warnings::Denied } else { Warnings::Allowed };
    let report = CheckReport::build(layers, overrides, warnings);
    let text = match args.format {
        Format::Human => human::print(&report, use_colour()),
        Format::Json => json::print(&report),
        Format::Github => github::print(&report),
        Format::Sarif => sarif::print(&report),
    };
    print_report(&text, report.exit())
}

/// The text report and the exit code.
pub fn report(layers: &Layers, use_colour: bool) -> (String, u8) {
    let report = CheckReport::build(layers, &Overrides::default(), Warnings::Allowed);
    (human::print(&report, use_colour), report.exit())
}

impl CheckReport {
    fn build(layers: &Layers, overrides: &Overrides, warnings: Warnings) -> CheckReport {
        let stopped = |files: Vec<SourceFile>, error: SetError, reached| CheckReport {
            files,
            sources: error.sources,
            plan: None,
            findings: error.diagnostics,
            losses: Vec::new(),
            overrides: Vec::new(),
            reached,
            warnings,
        };
        let files = match read_set(layers) {
            Ok(files) => files,
            Err(error) => return stopped(Vec::new(), error, Reached::Nothing),
        };
        let overrides = overrides.clone();
        let check =
            move |files: &[SourceFile], budget: &WorkBudget| CheckReport::of_files(files, &overrides, warnings, budget);
        let shared: Arc<[SourceFile]> = files.clone().into();
        let report = Supervisor::default().run(&shared, check);
        let mut report = report.unwrap_or_else(|error| stopped(files, error, Reached::Files));
        report.overrides = overrides::find(layers, report.plan.as_ref());
        report
    }

    fn of_files(files: &[SourceFile], overrides: &Overrides, warnings: Warnings, budget: &WorkBudget) -> CheckReport {
        let LoadOutcome { plan, diagnostics: mut findings, sources } = load_within(files, None, overrides, budget);
        let reached = match &plan {
            None => Reached::Files,
            Some(plan) => {
                // Failing tests reject the set too. They run only if the mappings load.
                let mut verification = verify::verify_within(plan, budget);
                findings.append(&mut verification.found);
                findings.sort_by_key(Diagnostic::sort_key);
                Reached::Plan(verification)
            }
        };
        let losses = plan.as_ref().map(loss::check).unwrap_or_default();
        CheckReport { files: files.to_vec(), sources, plan, findings, losses, overrides: Vec::new(), reached, warnings }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|d| d.severity() == severity).count()
    }

    /// The phase that produced a finding: that of its code, except for read errors, and for compile errors in test
    /// files, which are compiled in the test phase.
    fn phase(&self, finding: &Diagnostic) -> Phase {
        let is_test = |s: &Source| SetFile::Test.matches(&s.name);
        let in_test = self.sources.get(finding.span.file).is_some_and(is_test);
        match (&self.reached, finding.code.phase()) {
            (Reached::Nothing, _) => Phase::Read,
            (Reached::Plan(_), Phase::Compile) if in_test => Phase::Test,
            (Reached::Files | Reached::Plan(_), phase) => phase,
        }
    }

    fn exit(&self) -> u8 {
        let denied = self.warnings == Warnings::Denied && self.count(Severity::Warning) > 0;
        match self.reached {
            Reached::Nothing => EXIT_ERROR,
            Reached::Files | Reached::Plan(_) if denied || self.count(Severity::Error) > 0 => EXIT_FINDINGS,
            Reached::Files | Reached::Plan(_) => EXIT_OK,
        }
    }

    /// The losses, unless a lint already reported them.
    fn unreported_losses(&self) -> &[Loss] {
        let reported = self.findings.iter().any(|d| d.code == Code::Loss);
        if reported { &[] } else { &self.losses }
    }
}

/// Whether a file is compiled into the binary and so has no path on disk.
fn is_embedded(source: &Source) -> bool {
    source.shown.starts_with(embedded::PATH_PREFIX)
}
