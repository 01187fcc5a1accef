//! The text report: each finding with its source line, the result of each phase, and a summary line.

use super::phases;
use super::phases::{PhaseResult, PhaseState};
use super::{CheckReport, Reached, Warnings};
use crate::cli::dialect_names;
use crate::diagnostics::{Severity, count_noun, render_all};

pub fn print(report: &CheckReport, use_colour: bool) -> String {
    let mut text = render_all(&report.findings, &report.sources, use_colour);
    if !text.is_empty() {
        text.push('\n');
    }
    for one in &report.overrides {
        text.push_str(&format!("override: {}\n", one.sentence()));
    }
    if !report.overrides.is_empty() {
        text.push('\n');
    }
    for loss in report.unreported_losses() {
        text.push_str(&format!("loss: {}\n", loss.sentence()));
    }
    if !report.unreported_losses().is_empty() {
        text.push('\n');
    }
    for result in phases::phase_results(report) {
        text.push_str(&line(&result, use_colour));
    }
    text.push_str(&summary_line(report));
    text.push_str(&explain_hint(report));
    text
}

/// `✓ test      19 passed`
fn line(result: &PhaseResult, use_colour: bool) -> String {
    let mark = match (result.state, use_colour) {
        (state, false) => state.mark().to_string(),
        (PhaseState::Passed, true) => format!("\x1b[32m{}\x1b[0m", PhaseState::Passed.mark()),
        (PhaseState::Warned, true) => format!("\x1b[33m{}\x1b[0m", PhaseState::Warned.mark()),
        (PhaseState::Failed, true) => format!("\x1b[31m{}\x1b[0m", PhaseState::Failed.mark()),
        (state @ (PhaseState::Partial | PhaseState::NotReached), true) => format!("\x1b[2m{}\x1b[0m", state.mark()),
    };
    format!("{mark} {:<9} {}\n", result.phase.as_str(), result.summary())
}

/// `55 files, 4 backends × 3 dialects: 1 error, 1 warning`. Each backend is checked with each dialect.
pub fn summary_line(report: &CheckReport) -> String {
    let what = match &report.reached {
        Reached::Nothing => "the set cannot be read".to_owned(),
        Reached::Files | Reached::Plan(_) => count_noun(report.files.len(), "file"),
    };
    let pairs = report.plan.as_ref().map(|plan| {
        let (backends, dialects) = (plan.backends.len(), dialect_names(plan).len());
        format!(", {} × {}", count_noun(backends, "backend"), count_noun(dialects, "dialect"))
    });
    let mut found: Vec<String> = [Severity::Error, Severity::Warning]
        .map(|severity| count_noun(report.count(severity), severity.as_str()))
        .into_iter()
        .collect();
    if report.warnings == Warnings::Denied && report.count(Severity::Warning) > 0 {
        found[1].push_str(" (denied)");
    }
    let notes = report.count(Severity::Note);
    if notes > 0 {
        found.push(count_noun(notes, Severity::Note.as_str()));
    }
    format!("{what}{}: {}\n", pairs.unwrap_or_default(), found.join(", "))
}

/// How to read more about the first error or, without errors, the first warning.
fn explain_hint(report: &CheckReport) -> String {
    let of = |severity| report.findings.iter().find(|d| d.severity() == severity);
    match of(Severity::Error).or_else(|| of(Severity::Warning)) {
        Some(first) => format!("run `reframe check --explain {}` for details\n", first.code.as_str()),
        None => String::new(),
    }
}
