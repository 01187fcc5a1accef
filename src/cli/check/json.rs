//! One JSON document, for programs. docs/check.md describes it; what is there stays.

use super::{Outcome, phases};
use crate::diagnostics::{Diagnostic, Severity, told};
use serde_json::{Value, json};

pub fn print(outcome: &Outcome) -> String {
    let phases = phases::of(outcome).into_iter().map(|step| {
        let [errors, warnings, notes] = step.found;
        json!({
            "phase": step.phase.as_str(), "state": step.state.as_str(), "says": step.says(),
            "errors": errors, "warnings": warnings, "notes": notes,
        })
    });
    let losses = outcome.losses.iter().map(|loss| {
        let unasked: Vec<Value> =
            loss.unasked.iter().map(|(name, fate)| json!({ "name": name, "fate": fate.word() })).collect();
        let whose = Some(loss.whose.trim_start()).filter(|whose| !whose.is_empty());
        json!({
            "backend": loss.backend, "dialect": loss.dialect, "profile": loss.profile, "whose": whose,
            "lost": loss.lost, "of_a_request": unasked,
        })
    });
    let document = json!({
        "version": 1,
        "files": outcome.files.iter().map(|f| f.shown.as_str()).collect::<Vec<_>>(),
        "phases": phases.collect::<Vec<_>>(),
        "findings": outcome.findings.iter().map(|finding| found(finding, outcome)).collect::<Vec<_>>(),
        "losses": losses.collect::<Vec<_>>(),
        "summary": {
            "files": outcome.files.len(),
            "backends": outcome.plan.as_ref().map(|p| p.backends.len()),
            "dialects": outcome.plan.as_ref().map(|_| outcome.dialects().len()),
            "errors": outcome.count(Severity::Error),
            "warnings": outcome.count(Severity::Warning),
            "notes": outcome.count(Severity::Note),
            "exit": outcome.exit(),
        },
    });
    format!("{document:#}\n")
}

/// As everywhere, and the phase that found it.
fn found(finding: &Diagnostic, outcome: &Outcome) -> Value {
    let told = told(finding, &outcome.sources).to_json();
    let mut value: Value = serde_json::from_str(&told).unwrap_or_default();
    value["phase"] = outcome.phase(finding).as_str().into();
    value
}
