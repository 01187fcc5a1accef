//! `*.test.yaml` beside the mappings: raw events in, frames or body out. Pure, and milliseconds each.

mod case;
mod culprit;
mod diff;
mod difference;
mod expect;
mod play;
mod rehearsal;
mod seen;
mod want;
mod witness;

pub use case::Case;
pub use difference::{Difference, Made, What};
pub use play::Scene;
pub use seen::{Keep, Seen, Told, told};

use crate::diag::{Code, Diagnostic, Sources, Span};
use crate::mapping::Plan;

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
        let (cases, mistakes) = case::parse(&file.name, &file.node, plan);
        Suite { file: file.name.clone(), cases, mistakes }
    };
    plan.tests.iter().map(parse).collect()
}

/// What differs; nothing when the test holds.
pub fn run(case: &Case) -> Vec<Difference> {
    case.expect.compare(&play::play(case))
}

/// The outcome of one test file.
#[derive(Debug)]
pub struct Report {
    pub file: String,
    pub passed: usize,
    failures: Vec<Diagnostic>,
}

impl Report {
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.failures.clone()
    }
}

pub fn run_all(plan: &Plan) -> Vec<Report> {
    let report = |suite: Suite| {
        let (mut passed, mut failures) = (0, suite.mistakes);
        for case in &suite.cases {
            match failure(case, &run(case), &plan.sources) {
                Some(failure) => failures.push(failure),
                None => passed += 1,
            }
        }
        Report { file: suite.file, passed, failures }
    };
    suites(plan).into_iter().map(report).collect()
}

/// In a sentence, with the first difference in it and the others below.
fn failure(case: &Case, differences: &[Difference], sources: &Sources) -> Option<Diagnostic> {
    let (first, rest) = differences.split_first()?;
    let made = first.made.as_ref().map_or(String::new(), |m| format!(" (made by {})", sources.show_short(m.span)));
    let message = format!("the test \"{}\" does not hold: {}{made}", case.name, first.brief());
    let diagnostic = Diagnostic::new(Code::FailedTest, case.span, message);
    let rest: Vec<String> = rest.iter().map(Difference::brief).collect();
    Some(if rest.is_empty() { diagnostic } else { diagnostic.help(format!("and {}", rest.join("; "))) })
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
