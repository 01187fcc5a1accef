//! For people: each finding with its place, then how far the set got, then one line that sums it up.

use super::phases;
use super::phases::{State, Step};
use super::{Outcome, Reached, Warnings, counted};
use crate::diagnostics::{Severity, render_all};

pub fn print(outcome: &Outcome, colour: bool) -> String {
    let mut text = render_all(&outcome.findings, &outcome.sources, colour);
    if !text.is_empty() {
        text.push('\n');
    }
    for loss in outcome.untold() {
        text.push_str(&format!("loss: {}\n", loss.sentence()));
    }
    if !outcome.untold().is_empty() {
        text.push('\n');
    }
    for step in phases::of(outcome) {
        text.push_str(&line(&step, colour));
    }
    text.push_str(&sum(outcome));
    text.push_str(&more(outcome));
    text
}

/// `✓ test      19 passed`
fn line(step: &Step, colour: bool) -> String {
    let tick = match (step.state, colour) {
        (state, false) => state.tick().to_string(),
        (State::Passed, true) => format!("\x1b[32m{}\x1b[0m", State::Passed.tick()),
        (State::Warned, true) => format!("\x1b[33m{}\x1b[0m", State::Warned.tick()),
        (State::Failed, true) => format!("\x1b[31m{}\x1b[0m", State::Failed.tick()),
        (state @ (State::InPart | State::NotReached), true) => format!("\x1b[2m{}\x1b[0m", state.tick()),
    };
    format!("{tick} {:<9} {}\n", step.phase.as_str(), step.says())
}

/// `55 files, 4 backends × 3 dialects: 1 error, 1 warning`: each backend is checked with each dialect.
pub fn sum(outcome: &Outcome) -> String {
    let what = match &outcome.reached {
        Reached::Nothing => "the set cannot be read".to_owned(),
        Reached::Files | Reached::Plan(_) => counted(outcome.files.len(), "file"),
    };
    let pairs = outcome.plan.as_ref().map(|plan| {
        let (backends, dialects) = (plan.backends.len(), outcome.dialects().len());
        format!(", {} × {}", counted(backends, "backend"), counted(dialects, "dialect"))
    });
    let mut found: Vec<String> = [Severity::Error, Severity::Warning]
        .map(|severity| counted(outcome.count(severity), severity.as_str()))
        .into_iter()
        .collect();
    if outcome.warnings == Warnings::Denied && outcome.count(Severity::Warning) > 0 {
        found[1].push_str(" (denied)");
    }
    let notes = outcome.count(Severity::Note);
    if notes > 0 {
        found.push(counted(notes, Severity::Note.as_str()));
    }
    format!("{what}{}: {}\n", pairs.unwrap_or_default(), found.join(", "))
}

/// Where to read on about the first finding that is to be mended.
fn more(outcome: &Outcome) -> String {
    let of = |severity| outcome.findings.iter().find(|d| d.severity() == severity);
    match of(Severity::Error).or_else(|| of(Severity::Warning)) {
        Some(first) => format!("`reframe check --explain {}` says more\n", first.code.as_str()),
        None => String::new(),
    }
}
