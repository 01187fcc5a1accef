//! `reframe check`: everything that is wrong with a set, at once. What it lets pass, `serve` takes.
//!
//! `look` goes through the phases; `human`, `json`, `github` and `sarif` are four ways to print what it found.

mod explain;
mod github;
mod human;
mod json;
mod phases;
mod sarif;

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour, say};
use crate::diagnostics::{Code, Diagnostic, Phase, Severity, Source, Sources};
use crate::mapping::lint::loss;
use crate::mapping::lint::loss::Loss;
use crate::mapping::{FileText, Loaded, Overrides, Plan, load_after};
use crate::reload::{Layers, embedded, read};
use crate::verify;
use crate::verify::Trial;
use clap::{Args, ValueEnum};
use std::sync::Arc;

#[derive(Args)]
pub struct CheckArgs {
    /// How to print what is found
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Warnings count as errors; notes never do
    #[arg(long)]
    deny_warnings: bool,
    /// Say what a code means and how it is mended, and check nothing; without a code, list them all
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "")]
    explain: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON document: docs/check.md describes it
    Json,
    /// Annotations on a pull request, as GitHub's runners read them
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// What warnings do to the exit code.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Warnings {
    Allowed,
    Denied,
}

/// What was looked at, and what was found.
struct Outcome {
    files: Vec<FileText>,
    sources: Arc<Sources>,
    plan: Option<Plan>,
    findings: Vec<Diagnostic>,
    losses: Vec<Loss>,
    reached: Reached,
    warnings: Warnings,
}

/// How far the set got.
enum Reached {
    /// Some file could not be read.
    Nothing,
    /// Read, but there is no plan.
    Files,
    /// There is a plan, and it was tried out.
    Plan(Trial),
}

pub fn run(args: &CheckArgs, layers: &Layers, overrides: &Overrides) -> u8 {
    if let Some(code) = &args.explain {
        return explain::run(code);
    }
    let warnings = if args.deny_warnings { Warnings::Denied } else { Warnings::Allowed };
    let outcome = Outcome::look(layers, overrides, warnings);
    let text = match args.format {
        Format::Human => human::print(&outcome, colour()),
        Format::Json => json::print(&outcome),
        Format::Github => github::print(&outcome),
        Format::Sarif => sarif::print(&outcome),
    };
    say(&text, outcome.exit())
}

/// What is printed for people, and the exit code.
pub fn report(layers: &Layers, colour: bool) -> (String, u8) {
    let outcome = Outcome::look(layers, &Overrides::default(), Warnings::Allowed);
    (human::print(&outcome, colour), outcome.exit())
}

impl Outcome {
    fn look(layers: &Layers, overrides: &Overrides, warnings: Warnings) -> Outcome {
        let files = match read(layers) {
            Ok(files) => files,
            Err(refusal) => {
                return Outcome {
                    files: Vec::new(),
                    sources: refusal.sources,
                    plan: None,
                    findings: refusal.diagnostics,
                    losses: Vec::new(),
                    reached: Reached::Nothing,
                    warnings,
                };
            }
        };
        let Loaded { plan, diagnostics: mut findings, sources } = load_after(&files, None, overrides);
        let reached = match &plan {
            None => Reached::Files,
            Some(plan) => {
                // A set whose own tests fail is refused as well; they run only on mappings that load.
                let mut trial = verify::try_out(plan);
                findings.append(&mut trial.found);
                findings.sort_by_key(Diagnostic::reading_order);
                Reached::Plan(trial)
            }
        };
        let losses = plan.as_ref().map(loss::check).unwrap_or_default();
        Outcome { files, sources, plan, findings, losses, reached, warnings }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|d| d.severity() == severity).count()
    }

    /// The phase of a finding: its code's, unless nothing but reading was tried. Test files are read when they are run.
    fn phase(&self, finding: &Diagnostic) -> Phase {
        let is_test = |s: &Source| s.name.ends_with(".test.yaml");
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
            Reached::Nothing => COULD_NOT_RUN,
            Reached::Files | Reached::Plan(_) if denied || self.count(Severity::Error) > 0 => FINDINGS,
            Reached::Files | Reached::Plan(_) => FINE,
        }
    }

    /// What no lint has told already.
    fn untold(&self) -> &[Loss] {
        let told = self.findings.iter().any(|d| d.code == Code::Loss);
        if told { &[] } else { &self.losses }
    }

    /// The names of the dialects, each once.
    fn dialects(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.plan.iter().flat_map(Plan::dialects).map(|d| d.name.as_str()).collect();
        names.dedup();
        names
    }
}

/// A file that is compiled into the binary has no place on the disk.
fn is_embedded(source: &Source) -> bool {
    source.shown.starts_with(embedded::SHOWN)
}

pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
