//! One JSON document, for programs. docs/check.md describes it; what is there stays.

use super::{Outcome, phases};
use crate::diag::{Diagnostic, Place, Severity, visible};
use serde_json::{Value, json};

pub fn print(outcome: &Outcome) -> String {
    let phases = phases::of(outcome).into_iter().map(|step| {
        let [errors, warnings, notes] = step.found;
        json!({
            "phase": step.phase.as_str(), "state": step.state.as_str(), "says": step.says(),
            "errors": errors, "warnings": warnings, "notes": notes,
        })
    });
    let losses = outcome.losses.iter().map(
        |loss| json!({ "backend": loss.backend, "dialect": loss.dialect, "profile": loss.profile, "lost": loss.lost }),
    );
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

fn found(finding: &Diagnostic, outcome: &Outcome) -> Value {
    let source = outcome.sources.get(finding.span.file);
    let span = source.and_then(|source| visible(source, finding.span));
    let start = span.map(|span| outcome.sources.place(span));
    let end = span.map(|span| outcome.sources.end(span));
    let line = |place: Option<Place>| place.map(|p| p.line);
    let column = |place: Option<Place>| place.map(|p| p.column);
    json!({
        "code": finding.code.as_str(),
        "severity": finding.severity().as_str(),
        "phase": outcome.phase(finding).as_str(),
        "message": finding.message,
        "label": Some(finding.label.as_str()).filter(|label| !label.is_empty()),
        "help": finding.help,
        "file": source.map(|s| s.shown.as_str()),
        "line": line(start), "column": column(start), "end_line": line(end), "end_column": column(end),
    })
}
