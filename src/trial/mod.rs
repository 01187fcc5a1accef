//! `*.test.yaml` beside the mappings: raw events in, frames or body out. Pure, and milliseconds each.

mod case;
mod expect;
mod rehearsal;
mod witness;

use crate::diag::{Code, Diagnostic, Findings, Span};
use crate::mapping::Plan;
use crate::mapping::fields::Cx;
use case::Case;

/// Everything that is found by trying a plan out: its own tests, its frames with witness values, its transcripts.
pub fn findings(plan: &Plan) -> Vec<Diagnostic> {
    try_out(plan).found
}

/// The same, with what was tried. What no values can make right is not right in a test or a transcript either: that is
/// said once, and the rest waits until it is mended.
pub fn try_out(plan: &Plan) -> Trial {
    let proof = witness::prove(plan);
    let mut trial = Trial { found: proof.found, shapes: proof.shapes, tested: None, rehearsed: None };
    if !trial.found.is_empty() {
        return trial;
    }
    let reports = run_all(plan);
    trial.found.extend(reports.iter().flat_map(Report::diagnostics));
    let failed = trial.found.iter().filter(|d| d.code == Code::FailedTest).count();
    trial.tested = Some((reports.iter().map(|r| r.passed).sum(), failed));
    let rehearsal = rehearsal::rehearse(plan);
    trial.found.extend(rehearsal.found);
    trial.rehearsed = Some((rehearsal.transcripts, rehearsal.routes));
    trial
}

/// What was tried, and what was found.
#[derive(Debug)]
pub struct Trial {
    pub found: Vec<Diagnostic>,
    /// How many frames, bodies and errors were filled with witness values.
    pub shapes: usize,
    /// How many tests hold, and how many do not.
    pub tested: Option<(usize, usize)>,
    /// How many transcripts were played through how many routes.
    pub rehearsed: Option<(usize, usize)>,
}

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
    /// The test itself is wrong, not what it tests.
    pub mistake: Option<Box<Diagnostic>>,
}

impl Report {
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.failures.iter().map(Failure::diagnostic).collect()
    }
}

impl Failure {
    fn of_test(mistake: Diagnostic) -> Failure {
        let lines = vec![mistake.message.clone()];
        Failure { name: "the test file itself".into(), span: mistake.span, lines, mistake: Some(Box::new(mistake)) }
    }

    fn diagnostic(&self) -> Diagnostic {
        if let Some(mistake) = &self.mistake {
            return Diagnostic::clone(mistake);
        }
        let (first, rest) = self.lines.split_first().map_or(("", &[] as &[String]), |(f, r)| (f.as_str(), r));
        let message = format!("the test \"{}\" does not hold: {first}", self.name);
        let diagnostic = Diagnostic::new(Code::FailedTest, self.span, message);
        if rest.is_empty() { diagnostic } else { diagnostic.help(format!("and {}", rest.join("; "))) }
    }
}

pub fn run_all(plan: &Plan) -> Vec<Report> {
    plan.tests
        .iter()
        .map(|file| {
            let mut report = Report { file: file.name.clone(), passed: 0, failures: Vec::new() };
            for parsed in case::parse(&file.name, &file.node, plan) {
                let failures = match parsed {
                    Ok(case) => run(&case, plan),
                    Err(failure) => vec![failure],
                };
                report.passed += usize::from(failures.is_empty());
                report.failures.extend(failures);
            }
            report
        })
        .collect()
}

fn run(case: &Case, plan: &Plan) -> Vec<Failure> {
    let played = case::play(case);
    let findings = Findings::default();
    let lines = expect::compare(case, &played, Cx { sources: &plan.sources, findings: &findings });
    let mistakes = findings.into_sorted();
    if !mistakes.is_empty() {
        return mistakes.into_iter().map(Failure::of_test).collect();
    }
    let failure = Failure { name: case.name.clone(), span: case.span, lines, mistake: None };
    if failure.lines.is_empty() { Vec::new() } else { vec![failure] }
}
