//! The JSON report. docs/check.md describes it; its members are a stable interface.

use super::{CheckReport, phases};
use crate::cli::dialect_names;
use crate::diagnostics::{Diagnostic, Severity, diagnostic_json};
use serde_json::{Value, json};

pub fn print(report: &CheckReport) -> String {
    let phases = phases::phase_results(report).into_iter().map(|result| {
        let [errors, warnings, notes] = result.found;
        json!({
            "phase": result.phase.as_str(), "state": result.state.as_str(), "summary": result.summary(),
            "errors": errors, "warnings": warnings, "notes": notes,
        })
    });
    let losses = report.losses.iter().map(|loss| {
        let unsupported: Vec<Value> = loss
            .unsupported_fields
            .iter()
            .map(|(name, handling)| json!({ "name": name, "action": handling.name() }))
            .collect();
        let client = Some(loss.client.trim_start()).filter(|client| !client.is_empty());
        json!({
            "backend": loss.backend, "dialect": loss.dialect, "profile": loss.profile, "applies_to": client,
            "lost": loss.lost, "request_fields": unsupported,
        })
    });
    let document = json!({
        "version": 1,
        "files": report.files.iter().map(|f| f.shown.as_str()).collect::<Vec<_>>(),
        "phases": phases.collect::<Vec<_>>(),
        "findings": report.findings.iter().map(|finding| found(finding, report)).collect::<Vec<_>>(),
        "losses": losses.collect::<Vec<_>>(),
        "overrides": report.overrides.iter().map(|one| one.to_json()).collect::<Vec<_>>(),
        "summary": {
            "files": report.files.len(),
            "backends": report.plan.as_ref().map(|p| p.backends.len()),
            "dialects": report.plan.as_ref().map(|plan| dialect_names(plan).len()),
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "notes": report.count(Severity::Note),
            "exit": report.exit(),
        },
    });
    format!("{document:#}\n")
}

/// The common JSON form of a diagnostic, plus its phase.
fn found(finding: &Diagnostic, report: &CheckReport) -> Value {
    let mut value = diagnostic_json(finding, &report.sources);
    value["phase"] = report.phase(finding).as_str().into();
    value
}
