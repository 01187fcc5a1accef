//! The result of each phase of the check.

use super::{CheckReport, Reached, Warnings};
use crate::cli::dialect_names;
use crate::diagnostics::{Phase, Severity, count_noun};
use crate::mapping::source::layout::SetFile;

pub struct PhaseResult {
    pub phase: Phase,
    pub state: PhaseState,
    /// Indexed by severity: errors, warnings, notes.
    pub found: [usize; 3],
    /// What was checked, such as `55 files`.
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PhaseState {
    Passed,
    Warned,
    Failed,
    /// An earlier phase failed; the rest was checked without findings.
    Partial,
    NotReached,
}

const SEVERITIES: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

impl PhaseState {
    pub fn as_str(self) -> &'static str {
        match self {
            PhaseState::Passed => "passed",
            PhaseState::Warned => "warned",
            PhaseState::Failed => "failed",
            PhaseState::Partial => "partial",
            PhaseState::NotReached => "not_reached",
        }
    }

    pub fn mark(self) -> char {
        match self {
            PhaseState::Passed => '✓',
            PhaseState::Warned => '!',
            PhaseState::Failed => '✗',
            PhaseState::Partial | PhaseState::NotReached => '–',
        }
    }
}

impl PhaseResult {
    /// `19 passed`, `1 error in 5 frames, bodies and errors`
    pub fn summary(&self) -> String {
        let found = SEVERITIES.iter().zip(self.found).filter(|(_, n)| *n > 0);
        let found: Vec<String> = found.map(|(severity, n)| count_noun(n, severity.as_str())).collect();
        match (self.state, self.phase) {
            // The number of passed tests is known even if some were suppressed.
            (PhaseState::Partial, Phase::Test) if !self.what.is_empty() => self.what.clone(),
            (PhaseState::Partial, _) => "partially checked".to_owned(),
            (PhaseState::NotReached, _) => "not reached".to_owned(),
            // `what` already has the number of failures.
            (PhaseState::Passed | PhaseState::Warned | PhaseState::Failed, Phase::Test) => self.what.clone(),
            (PhaseState::Passed | PhaseState::Warned | PhaseState::Failed, _) => {
                match (found.is_empty(), self.what.is_empty()) {
                    (true, true) => "no findings".to_owned(),
                    (true, false) => self.what.clone(),
                    (false, true) => found.join(", "),
                    (false, false) => format!("{} in {}", found.join(", "), self.what),
                }
            }
        }
    }
}

pub fn phase_results(report: &CheckReport) -> Vec<PhaseResult> {
    let mut results: Vec<PhaseResult> = Vec::new();
    for phase in Phase::ALL {
        let of_phase = || report.findings.iter().filter(|d| report.phase(d) == *phase);
        let found = SEVERITIES.map(|severity| of_phase().filter(|d| d.severity() == severity).count());
        let stopped = results.iter().any(|s| s.state == PhaseState::Failed);
        let state = match found {
            [0, 0, 0] if !reached(*phase, &report.reached) => PhaseState::NotReached,
            [0, 0, _] if stopped && report.plan.is_none() => PhaseState::Partial,
            [0, 0, _] if *phase == Phase::Test && has_suppressed_tests(&report.reached) => PhaseState::Partial,
            [0, 0, _] => PhaseState::Passed,
            [0, ..] if report.warnings == Warnings::Allowed => PhaseState::Warned,
            [..] => PhaseState::Failed,
        };
        results.push(PhaseResult { phase: *phase, state, found, what: what(*phase, report) });
    }
    results
}

fn reached(phase: Phase, reached: &Reached) -> bool {
    match (phase, reached) {
        (Phase::Read, _) => true,
        (_, Reached::Nothing) => false,
        (Phase::Parse | Phase::Compile, Reached::Files | Reached::Plan(_)) => true,
        (Phase::Lint | Phase::Verify | Phase::Test | Phase::Replay, Reached::Files) => false,
        (Phase::Lint | Phase::Verify, Reached::Plan(_)) => true,
        (Phase::Test, Reached::Plan(verification)) => verification.tested.is_some(),
        (Phase::Replay, Reached::Plan(verification)) => verification.replayed.is_some(),
    }
}

/// Whether failing tests were suppressed because their cause is already reported.
fn has_suppressed_tests(reached: &Reached) -> bool {
    match reached {
        Reached::Plan(verification) => verification.duplicates > 0,
        Reached::Nothing | Reached::Files => false,
    }
}

fn what(phase: Phase, report: &CheckReport) -> String {
    match (phase, &report.reached) {
        (_, Reached::Nothing) => String::new(),
        (Phase::Read, _) => count_noun(report.files.len(), "file"),
        (Phase::Parse, _) => kinds(report),
        (Phase::Compile | Phase::Verify | Phase::Test | Phase::Replay, Reached::Files) => String::new(),
        (Phase::Lint, _) => String::new(),
        (Phase::Compile, Reached::Plan(_)) => compiled(report),
        (Phase::Verify, Reached::Plan(verification)) => format!("{} frames, bodies and errors", verification.shapes),
        (Phase::Test, Reached::Plan(verification)) => {
            let (passed, failed) = verification.tested.unwrap_or_default();
            let wrong = report.findings.iter().filter(|d| report.phase(d) == Phase::Test).count() - failed;
            let more = [(failed, "failed"), (verification.duplicates, "suppressed"), (wrong, "cannot be run")]
                .into_iter()
                .filter(|(n, _)| *n > 0);
            more.fold(format!("{passed} passed"), |text, (n, what)| format!("{text}, {n} {what}"))
        }
        (Phase::Replay, Reached::Plan(verification)) => {
            let (transcripts, routes) = verification.replayed.unwrap_or_default();
            format!("{} × {}", count_noun(transcripts, "transcript"), count_noun(routes, "route"))
        }
    }
}

/// `16 mappings, 4 test files, 12 transcripts, 23 schemas`
fn kinds(report: &CheckReport) -> String {
    let mut kinds = [("mapping", 0), ("test file", 0), ("transcript", 0), ("schema", 0)];
    for file in &report.files {
        let kind = match SetFile::of(&file.name) {
            Some(SetFile::Schema) => 3,
            Some(SetFile::Transcript) => 2,
            Some(SetFile::Test) => 1,
            Some(_) | None => 0,
        };
        kinds[kind].1 += 1;
    }
    let shown = kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| count_noun(*n, kind));
    shown.collect::<Vec<_>>().join(", ")
}

/// `6 backends, 3 dialects, 2 profiles`
fn compiled(report: &CheckReport) -> String {
    let Some(plan) = &report.plan else { return String::new() };
    let mut profiles: Vec<&str> = plan.dialects().filter_map(|d| d.profile.as_deref()).collect();
    profiles.sort_unstable();
    profiles.dedup();
    [(plan.backends.len(), "backend"), (dialect_names(plan).len(), "dialect"), (profiles.len(), "profile")]
        .map(|(n, noun)| count_noun(n, noun))
        .join(", ")
}
