//! How far the set got, a line for each phase.

use super::{Outcome, Reached, Warnings, counted};
use crate::diagnostics::{Phase, Severity};

pub struct Step {
    pub phase: Phase,
    pub state: State,
    /// Indexed by severity: errors, warnings, notes.
    pub found: [usize; 3],
    /// What was looked at.
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    Passed,
    Warned,
    Failed,
    /// An earlier phase failed; what it left was looked at, and nothing was found.
    InPart,
    NotReached,
}

const SEVERITIES: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Passed => "passed",
            State::Warned => "warned",
            State::Failed => "failed",
            State::InPart => "in_part",
            State::NotReached => "not_reached",
        }
    }

    pub fn tick(self) -> char {
        match self {
            State::Passed => '✓',
            State::Warned => '!',
            State::Failed => '✗',
            State::InPart | State::NotReached => '–',
        }
    }
}

impl Step {
    /// `19 passed`, `1 error in 5 frames, bodies and errors`
    pub fn says(&self) -> String {
        let found = SEVERITIES.iter().zip(self.found).filter(|(_, n)| *n > 0);
        let found: Vec<String> = found.map(|(severity, n)| counted(n, severity.as_str())).collect();
        match (self.state, self.phase) {
            // How many hold is known all the same.
            (State::InPart, Phase::Test) if !self.what.is_empty() => self.what.clone(),
            (State::InPart, _) => "only in part".to_owned(),
            (State::NotReached, _) => "not reached".to_owned(),
            // How many failed is already said.
            (State::Passed | State::Warned | State::Failed, Phase::Test) => self.what.clone(),
            (State::Passed | State::Warned | State::Failed, _) => match (found.is_empty(), self.what.is_empty()) {
                (true, true) => "nothing found".to_owned(),
                (true, false) => self.what.clone(),
                (false, true) => found.join(", "),
                (false, false) => format!("{} in {}", found.join(", "), self.what),
            },
        }
    }
}

pub fn of(outcome: &Outcome) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for phase in Phase::ALL {
        let of_phase = || outcome.findings.iter().filter(|d| outcome.phase(d) == *phase);
        let found = SEVERITIES.map(|severity| of_phase().filter(|d| d.severity() == severity).count());
        let stopped = steps.iter().any(|s| s.state == State::Failed);
        let state = match found {
            [0, 0, 0] if !reached(*phase, &outcome.reached) => State::NotReached,
            [0, 0, _] if stopped && outcome.plan.is_none() => State::InPart,
            [0, 0, _] if *phase == Phase::Test && waits(&outcome.reached) => State::InPart,
            [0, 0, _] => State::Passed,
            [0, ..] if outcome.warnings == Warnings::Allowed => State::Warned,
            [..] => State::Failed,
        };
        steps.push(Step { phase: *phase, state, found, what: what(*phase, outcome) });
    }
    steps
}

fn reached(phase: Phase, reached: &Reached) -> bool {
    match (phase, reached) {
        (Phase::Read, _) => true,
        (_, Reached::Nothing) => false,
        (Phase::Parse | Phase::Compile, Reached::Files | Reached::Plan(_)) => true,
        (Phase::Lint | Phase::Prove | Phase::Test | Phase::Rehearse, Reached::Files) => false,
        (Phase::Lint | Phase::Prove, Reached::Plan(_)) => true,
        (Phase::Test, Reached::Plan(trial)) => trial.tested.is_some(),
        (Phase::Rehearse, Reached::Plan(trial)) => trial.rehearsed.is_some(),
    }
}

/// Tests that do not hold are not told of where the reason is.
fn waits(reached: &Reached) -> bool {
    match reached {
        Reached::Plan(trial) => trial.waiting > 0,
        Reached::Nothing | Reached::Files => false,
    }
}

fn what(phase: Phase, outcome: &Outcome) -> String {
    match (phase, &outcome.reached) {
        (_, Reached::Nothing) => String::new(),
        (Phase::Read, _) => counted(outcome.files.len(), "file"),
        (Phase::Parse, _) => kinds(outcome),
        (Phase::Compile | Phase::Prove | Phase::Test | Phase::Rehearse, Reached::Files) => String::new(),
        (Phase::Lint, _) => String::new(),
        (Phase::Compile, Reached::Plan(_)) => compiled(outcome),
        (Phase::Prove, Reached::Plan(trial)) => format!("{} frames, bodies and errors", trial.shapes),
        (Phase::Test, Reached::Plan(trial)) => {
            let (passed, failed) = trial.tested.unwrap_or_default();
            let wrong = outcome.findings.iter().filter(|d| outcome.phase(d) == Phase::Test).count() - failed;
            let more = [(failed, "failed"), (trial.waiting, "wait"), (wrong, "cannot be run")]
                .into_iter()
                .filter(|(n, _)| *n > 0);
            more.fold(format!("{passed} passed"), |said, (n, what)| format!("{said}, {n} {what}"))
        }
        (Phase::Rehearse, Reached::Plan(trial)) => {
            let (transcripts, routes) = trial.rehearsed.unwrap_or_default();
            format!("{} × {}", counted(transcripts, "transcript"), counted(routes, "route"))
        }
    }
}

/// `16 mappings, 4 test files, 12 transcripts, 23 schemas`
fn kinds(outcome: &Outcome) -> String {
    let mut kinds = [("mapping", 0), ("test file", 0), ("transcript", 0), ("schema", 0)];
    for file in &outcome.files {
        let kind = match file.name.as_str() {
            name if name.starts_with("schemas/") => 3,
            name if name.starts_with("transcripts/") => 2,
            name if name.ends_with(".test.yaml") => 1,
            _ => 0,
        };
        kinds[kind].1 += 1;
    }
    let shown = kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| counted(*n, kind));
    shown.collect::<Vec<_>>().join(", ")
}

/// `6 backends, 3 dialects, 2 profiles`
fn compiled(outcome: &Outcome) -> String {
    let Some(plan) = &outcome.plan else { return String::new() };
    let mut profiles: Vec<&str> = plan.dialects().filter_map(|d| d.profile.as_deref()).collect();
    profiles.sort_unstable();
    profiles.dedup();
    [(plan.backends.len(), "backend"), (outcome.dialects().len(), "dialect"), (profiles.len(), "profile")]
        .map(|(n, noun)| counted(n, noun))
        .join(", ")
}
