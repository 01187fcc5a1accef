//! `*.test.yaml` beside the mappings: raw events in, frames or body out. Pure, and milliseconds each.

mod difference;
mod difference_source;
mod expectation;
mod matcher;
mod member_source;
mod runner;
mod test_case;
mod text_diff;
mod trace;
mod transcripts;
mod violation;
mod witness;

pub use difference::{Difference, Made, What};
pub use difference_source::in_words;
pub use runner::Scene;
pub use test_case::Case;
pub use trace::{Keep, Seen, Told, told};
pub use violation::Wrong;

use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::Plan;

/// Everything that is found by trying a plan out: its own tests, its frames with witness values, its transcripts.
pub fn findings(plan: &Plan) -> Vec<Diagnostic> {
    try_out(plan).found
}

/// The same, with what was tried. What no values can make right is not right in a test or a transcript either: that is
/// said once, and the rest waits until it is mended.
pub fn try_out(plan: &Plan) -> Trial {
    let proof = witness::prove(plan);
    let mut trial = Trial { found: proof.found, shapes: proof.shapes, tested: None, waiting: 0, rehearsed: None };
    if !trial.found.is_empty() {
        return trial;
    }
    let rehearsal = transcripts::rehearse(plan);
    let reports = run_all(plan);
    // One wrong line is told of once: by the transcript that it breaks, else by the first test.
    let mut told: Vec<Span> = rehearsal.found.iter().map(|d| d.span).collect();
    for Failure { diagnostic, wrong } in reports.iter().flat_map(|r| &r.failures) {
        if wrong.is_some_and(|place| told.contains(&place)) {
            trial.waiting += 1;
            continue;
        }
        told.extend(wrong);
        trial.found.push(diagnostic.clone());
    }
    let failed = trial.found.iter().filter(|d| d.code == Code::FailedTest).count();
    trial.tested = Some((reports.iter().map(|r| r.passed).sum(), failed));
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
    /// How many more do not hold for a reason that is already found.
    pub waiting: usize,
    /// How many transcripts were played through how many routes.
    pub rehearsed: Option<(usize, usize)>,
}

/// A test file: its tests, and what is wrong with the file itself.
#[derive(Debug)]
pub struct Suite {
    /// Inside the set: `dialects/chat.test.yaml`.
    pub file: String,
    pub cases: Vec<Case>,
    pub mistakes: Vec<Diagnostic>,
}

pub fn suites(plan: &Plan) -> Vec<Suite> {
    let parse = |file: &crate::mapping::load::TestFile| {
        let (cases, mistakes) = test_case::parse(&file.name, &file.node, plan);
        Suite { file: file.name.clone(), cases, mistakes }
    };
    plan.tests.iter().map(parse).collect()
}

/// What differs; nothing when the test holds.
pub fn run(case: &Case, sources: &Sources) -> Vec<Difference> {
    let mut differences = case.expect.compare(&runner::play(case));
    member_source::locate(case, &mut differences, sources);
    differences
}

/// The outcome of one test file.
#[derive(Debug)]
pub struct Report {
    pub file: String,
    pub passed: usize,
    failures: Vec<Failure>,
}

#[derive(Debug)]
struct Failure {
    diagnostic: Diagnostic,
    /// The line that breaks its contract, if that is why.
    wrong: Option<Span>,
}

impl Report {
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.failures.iter().map(|f| f.diagnostic.clone()).collect()
    }
}

pub fn run_all(plan: &Plan) -> Vec<Report> {
    let report = |suite: Suite| {
        let mistakes = suite.mistakes.into_iter().map(|diagnostic| Failure { diagnostic, wrong: None });
        let (mut passed, mut failures) = (0, mistakes.collect::<Vec<_>>());
        for case in &suite.cases {
            match failure(case, plan) {
                Some(failure) => failures.push(failure),
                None => passed += 1,
            }
        }
        Report { file: suite.file, passed, failures }
    };
    suites(plan).into_iter().map(report).collect()
}

/// In a sentence, with the first difference in it and the others below. What broke its contract is why the rest differs.
fn failure(case: &Case, plan: &Plan) -> Option<Failure> {
    let played = runner::play(case);
    let mut differences = case.expect.compare(&played);
    member_source::locate(case, &mut differences, &plan.sources);
    let (first, rest) = differences.split_first()?;
    let wrong = played.wrong.as_ref().filter(|_| !case.expect.wants_fault());
    let place = wrong.zip(case.dialect.as_ref()).map(|(wrong, dialect)| wrong.place(dialect, plan));
    let place = place.filter(|place| *place != Span::NOWHERE);
    let made = place.or_else(|| first.made.as_ref().map(|m| m.span));
    let made = made.map_or(String::new(), |span| format!(" (made by {})", plan.sources.show_short(span)));
    let why = wrong.map_or_else(|| first.brief(), Wrong::says);
    let message = format!("the test \"{}\" does not hold: {why}{made}", case.name);
    let diagnostic = Diagnostic::new(Code::FailedTest, case.span, message);
    let rest: Vec<String> = rest.iter().filter(|_| wrong.is_none()).map(Difference::brief).collect();
    let help = |d: Diagnostic| if rest.is_empty() { d } else { d.help(format!("and {}", rest.join("; "))) };
    Some(Failure { diagnostic: help(diagnostic), wrong: place })
}

/// The test that stands at a line, or is called so: `chat.test.yaml:31`, `a tool call after text`.
pub fn find<'s>(suites: &'s [Suite], wanted: &str, sources: &Sources) -> Option<&'s Case> {
    let cases = || suites.iter().flat_map(|s| &s.cases);
    if let Some(case) = cases().find(|c| c.name == wanted) {
        return Some(case);
    }
    let (file, rest) = wanted.split_once(".test.yaml:")?;
    let line: usize = rest.split(':').next()?.parse().ok()?;
    let is_file = |span: Span| {
        let Some(source) = sources.get(span.file) else { return false };
        let shown = source.shown.trim_end_matches(".test.yaml");
        let below =
            |long: &str, short: &str| long.strip_suffix(short).is_some_and(|r| r.is_empty() || r.ends_with(['/', ' ']));
        below(shown, file) || below(file, shown)
    };
    // A test goes on until the next one begins.
    cases().rfind(|c| is_file(c.span) && sources.place(c.whole).line <= line)
}
