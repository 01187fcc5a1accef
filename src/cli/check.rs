//! `reframe check`: everything that is wrong with a set, at once. What it lets pass, `serve` takes.

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour};
use crate::diag::{Diagnostic, Severity, render_all};
use crate::mapping::lint::loss;
use crate::mapping::{Loaded, Overrides, Plan, load_after};
use crate::reload::{Layers, read};
use crate::trial;
use std::io::{self, Write};

pub fn run(layers: &Layers, overrides: &Overrides) -> u8 {
    let (text, code) = report_with(layers, overrides, colour());
    // Who reads only the first lines closes the pipe; that is no reason to fall over.
    let _ = match code {
        COULD_NOT_RUN => io::stderr().write_all(text.as_bytes()),
        _ => io::stdout().write_all(text.as_bytes()),
    };
    code
}

/// What is printed, and the exit code.
pub fn report(layers: &Layers, colour: bool) -> (String, u8) {
    report_with(layers, &Overrides::default(), colour)
}

fn report_with(layers: &Layers, overrides: &Overrides, colour: bool) -> (String, u8) {
    let files = match read(layers) {
        Ok(files) => files,
        Err(refusal) => return (refusal.render(colour), COULD_NOT_RUN),
    };
    let Loaded { plan, mut diagnostics, sources } = load_after(&files, None, overrides);
    if let Some(plan) = &plan {
        // A set whose own tests fail is refused as well; they run only on mappings that load.
        diagnostics.extend(trial::findings(plan));
        diagnostics.sort_by_key(Diagnostic::reading_order);
    }
    let count = |severity| diagnostics.iter().filter(|d| d.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let what = counted(files.len(), "file") + &plan.as_ref().map(pairs).unwrap_or_default();
    let mut text = render_all(&diagnostics, &sources, colour);
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&plan.as_ref().map(losses).unwrap_or_default());
    text.push_str(&format!("{what}: {}, {}\n", counted(errors, "error"), counted(warnings, "warning")));
    (text, if errors > 0 { FINDINGS } else { FINE })
}

/// `, 4 backends × 3 dialects`: each with each is checked.
fn pairs(plan: &Plan) -> String {
    let mut dialects: Vec<&str> = plan.dialects().map(|d| d.name.as_str()).collect();
    dialects.dedup();
    format!(", {} × {}", counted(plan.backends.len(), "backend"), counted(dialects.len(), "dialect"))
}

/// What is lost between each backend and each route's dialect.
fn losses(plan: &Plan) -> String {
    loss::check(plan).iter().map(|loss| format!("loss: {}\n", loss.sentence())).collect()
}

pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
