//! `reframe check`: everything that is wrong with a set, at once.

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour};
use crate::diag::{Severity, render_all};
use crate::mapping::backend::Transport;
use crate::mapping::{Loaded, Plan, load, loss};
use crate::reload::{Layers, read};

pub fn run(layers: &Layers) -> u8 {
    let files = match read(layers) {
        Ok(files) => files,
        Err(refusal) => {
            eprint!("{}", refusal.render(colour()));
            return COULD_NOT_RUN;
        }
    };
    let Loaded { plan, diagnostics, sources } = load(&files);
    if !diagnostics.is_empty() {
        println!("{}", render_all(&diagnostics, &sources, colour()));
    }
    let count = |severity| diagnostics.iter().filter(|d| d.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let what = match &plan {
        Some(plan) => {
            let mut dialects: Vec<&str> = plan.dialects().map(|d| d.name.as_str()).collect();
            dialects.dedup();
            format!("{} files, {} backends × {} dialects", files.len(), plan.backends.len(), dialects.len())
        }
        None => format!("{} files", files.len()),
    };
    if let Some(plan) = &plan {
        losses(plan);
    }
    println!("{what}: {}, {}", counted(errors, "error"), counted(warnings, "warning"));
    if errors > 0 { FINDINGS } else { FINE }
}

/// What each backend can say and each route's dialect cannot.
fn losses(plan: &Plan) {
    let mut told: Vec<(&str, Option<&str>)> = Vec::new();
    for route in &plan.gateway.routes {
        let pair = (route.dialect.as_str(), route.profile.as_deref());
        if !told.contains(&pair) {
            told.push(pair);
        }
    }
    for (name, profile) in told {
        let Some(dialect) = plan.dialect(name, profile) else { continue };
        for backend in plan.backends.iter().filter(|b| b.transport != Transport::Replay) {
            let lost = loss::lost(backend, dialect);
            if !lost.is_empty() {
                let shown = profile.map_or(name.to_owned(), |p| format!("{name}@{p}"));
                println!("loss: {} × {shown}: {}", backend.name, lost.join(", "));
            }
        }
    }
}

pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
