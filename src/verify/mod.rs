//! Verification of a loaded set before it is used: witness values for every frame, the `*.test.yaml` files, and a
//! replay of the set's transcripts. Pure: no IO, no clock.

mod difference;
mod difference_source;
mod expectation;
mod matcher;
mod runner;
mod schema_advice;
mod static_routes;
mod test_case;
mod test_thread;
mod text_diff;
mod trace;
mod transcripts;
mod violation;
mod witness;
mod witness_turns;

pub use difference::{Difference, DifferenceKind, ValueSource};
pub use difference_source::fault_message;
pub use runner::{TestTurn, test_turn_spec};
pub use test_case::TestCase;
pub use trace::{FrameTrace, TraceDetail, TraceEntry, data_frames};
pub use witness::check_witnesses;

use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::domain::WorkBudget;
use crate::engine::pipeline::Violation;
use crate::mapping::load::TestFile;
use crate::mapping::{Plan, exhausted};
use runner::TestOutcome;
use test_thread::TestStep;

/// Steps of the budget that a test takes, and each of its events: rendering and validating a few frames.
const STEPS_PER_TEST: u64 = 1_000;
const STEPS_PER_EVENT: u64 = 200;

/// The diagnostics, with counts. A frame that violates its schema for all witness values also fails in tests and
/// transcripts, so those run only if there is no such frame.
pub fn verify(plan: &Plan) -> Verification {
    verify_within(plan, &WorkBudget::default())
}

/// Verifies with a limit for the work. A verification that exceeds it reports only that.
pub fn verify_within(plan: &Plan, budget: &WorkBudget) -> Verification {
    let mut verification = run_phases(plan, budget);
    if let Some(diagnostic) = exhausted::diagnostic(budget, &plan.sources) {
        verification.found = vec![diagnostic];
    }
    verification
}

fn run_phases(plan: &Plan, budget: &WorkBudget) -> Verification {
    test_thread::with(plan, budget, |tests| check(plan, tests, budget))
}

fn check(plan: &Plan, tests: impl Iterator<Item = TestStep>, budget: &WorkBudget) -> Verification {
    let witnesses = witness::check_witnesses(plan, budget);
    let mut verification =
        Verification { found: witnesses.found, shapes: witnesses.shapes, tested: None, duplicates: 0, replayed: None };
    verification.found.extend(static_routes::check_static_routes(plan));
    if !verification.found.is_empty() {
        return verification;
    }
    let replay = transcripts::replay_transcripts(plan, budget);
    // Each wrong line is reported once: by the transcript that fails, or else by the first test.
    let mut reported: Vec<Span> = replay.found.iter().map(|d| d.span).collect();
    let (mut passed, mut failed) = (0, 0);
    for step in tests {
        match step {
            TestStep::Begin { file, doing } => budget.begin(&file, doing),
            TestStep::Parsed { mistakes, steps } => {
                verification.found.extend(mistakes);
                budget.spend(steps);
            }
            TestStep::Run { events } => {
                if !budget.spend(STEPS_PER_TEST + STEPS_PER_EVENT * events as u64) {
                    return verification;
                }
            }
            TestStep::Ran(None) => passed += 1,
            TestStep::Ran(Some((_, Some(violation)))) if reported.contains(&violation) => verification.duplicates += 1,
            TestStep::Ran(Some((diagnostic, violation))) => {
                failed += 1;
                reported.extend(violation);
                verification.found.push(diagnostic);
            }
        }
    }
    verification.tested = Some((passed, failed));
    verification.found.extend(replay.found);
    verification.replayed = Some((replay.transcripts, replay.routes));
    verification
}

/// The diagnostics and counts of a verification.
#[derive(Debug)]
pub struct Verification {
    pub found: Vec<Diagnostic>,
    /// How many frames, bodies and errors were rendered with witness values.
    pub shapes: usize,
    /// How many tests passed and failed.
    pub tested: Option<(usize, usize)>,
    /// How many more tests failed for a cause that is already reported.
    pub duplicates: usize,
    /// How many transcripts were replayed through how many routes.
    pub replayed: Option<(usize, usize)>,
}

/// A test file: its tests, and the diagnostics of the file itself.
#[derive(Debug)]
pub struct TestSuite {
    /// The path inside the set: `dialects/chat.test.yaml`.
    pub file: String,
    pub cases: Vec<TestCase>,
    pub mistakes: Vec<Diagnostic>,
}

pub fn suites(plan: &Plan) -> Vec<TestSuite> {
    // For commands, which list or run all tests.
    let budget = WorkBudget::new(u64::MAX);
    plan.tests.iter().map(|file| suite(file, plan, &budget)).collect()
}

fn suite(file: &TestFile, plan: &Plan, budget: &WorkBudget) -> TestSuite {
    let (cases, mistakes) = test_case::parse(&file.name, &file.node, plan, budget);
    TestSuite { file: file.name.clone(), cases, mistakes }
}

/// Runs a test. Empty if it passes.
pub fn run(case: &TestCase, plan: &Plan) -> Vec<Difference> {
    run_and_compare(case, plan).1
}

fn run_and_compare(case: &TestCase, plan: &Plan) -> (TestOutcome, Vec<Difference>) {
    let outcome = runner::run(case, &plan.gateway);
    let mut differences = case.expect.compare(&outcome);
    difference_source::locate_body_members(case, &outcome, &mut differences, plan);
    (outcome, differences)
}

/// A diagnostic with the first difference as its message and the others as help. A violation of a schema or an order is
/// the cause of all differences, so it replaces them, and the line that causes it is returned too.
fn failure(case: &TestCase, plan: &Plan) -> Option<(Diagnostic, Option<Span>)> {
    let (outcome, differences) = run_and_compare(case, plan);
    let (first, rest) = differences.split_first()?;
    let violation = outcome.violation.as_ref().filter(|_| !case.expect.expects_fault());
    let location =
        violation.zip(case.dialect.as_ref()).map(|(violation, dialect)| violation::locate(violation, dialect, plan));
    let location = location.filter(|span| *span != Span::NOWHERE);
    let source = location.or_else(|| first.source.as_ref().map(|s| s.span));
    let source = source.map_or(String::new(), |span| format!(" (made by {})", plan.sources.show_short(span)));
    let reason = violation.map_or_else(|| first.brief(), Violation::message);
    let message = format!("the test \"{}\" failed: {reason}{source}", case.name);
    let diagnostic = Diagnostic::new(Code::FailedTest, case.span, message);
    let rest: Vec<String> = rest.iter().filter(|_| violation.is_none()).map(Difference::brief).collect();
    let help = |d: Diagnostic| if rest.is_empty() { d } else { d.help(format!("and {}", rest.join("; "))) };
    Some((help(diagnostic), location))
}

/// A test by its name or by a line inside it: `a tool call after text`, `chat.test.yaml:31`.
pub fn find<'s>(suites: &'s [TestSuite], wanted: &str, sources: &Sources) -> Option<&'s TestCase> {
    let cases = || suites.iter().flat_map(|s| &s.cases);
    if let Some(case) = cases().find(|c| c.name == wanted) {
        return Some(case);
    }
    let (file, rest) = wanted.split_once(".test.yaml:")?;
    let line: usize = rest.split(':').next()?.parse().ok()?;
    let is_file = |span: Span| {
        let Some(source) = sources.get(span.file) else { return false };
        let shown = source.shown.trim_end_matches(".test.yaml");
        let ends_with_path =
            |long: &str, short: &str| long.strip_suffix(short).is_some_and(|r| r.is_empty() || r.ends_with(['/', ' ']));
        ends_with_path(shown, file) || ends_with_path(file, shown)
    };
    // A test extends to the beginning of the next one.
    cases().rfind(|c| is_file(c.span) && sources.location(c.whole).line <= line)
}
