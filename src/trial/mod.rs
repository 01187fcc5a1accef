//! `*.test.yaml` beside the mappings: raw events in, frames or body out. Pure, and milliseconds each.

mod case;
mod expect;

use crate::diag::{Code, Diagnostic, Span};
use crate::mapping::Plan;
use case::Case;

/// The outcome of one test file.
#[derive(Debug)]
pub struct Report {
    pub file: String,
    pub passed: usize,
    pub failures: Vec<Failure>,
}

#[derive(Debug)]
pub struct Failure {
    pub name: String,
    pub span: Span,
    /// What differs, a line each.
    pub lines: Vec<String>,
}

impl Report {
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let say = |f: &Failure| {
            let message = format!("the test \"{}\" does not hold: {}", f.name, f.lines.join("; "));
            Diagnostic::new(Code::FailedTest, f.span, message)
        };
        self.failures.iter().map(say).collect()
    }
}

pub fn run_all(plan: &Plan) -> Vec<Report> {
    plan.tests
        .iter()
        .map(|file| {
            let mut report = Report { file: file.name.clone(), passed: 0, failures: Vec::new() };
            for parsed in case::parse(&file.name, &file.node, plan) {
                let (name, span, lines) = match parsed {
                    Ok(case) => (case.name.clone(), case.span, run(&case, plan)),
                    Err(failure) => (failure.name, failure.span, failure.lines),
                };
                if lines.is_empty() {
                    report.passed += 1;
                } else {
                    report.failures.push(Failure { name, span, lines });
                }
            }
            report
        })
        .collect()
}

fn run(case: &Case, plan: &Plan) -> Vec<String> {
    let played = case::play(case);
    expect::compare(case, &played, &plan.sources)
}
