//! The reload history, and the documents made from it: `GET /status` and the response of `POST /admin/reload`.

use super::{Cause, Generation, NeedsRestart, RejectedSet, ReloadOutcome, Reloader};
use crate::diagnostics::{Diagnostic, Severity, Sources, diagnostic_json};
use crate::mapping::Plan;
use crate::mapping::provenance::origins;
use crate::mapping::provenance::origins::{Origin, OriginKind};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

/// What the reloader remembers besides the current generation.
pub struct History {
    started: SystemTime,
    /// Every generation that may still have turns in flight. Weak references, so that a generation without turns is
    /// freed.
    generations: Vec<Weak<Generation>>,
    /// The last rejected set, and the digest of its texts or, if they cannot be read, of its error messages.
    rejected: Option<(String, Arc<RejectedSet>)>,
    /// When the files became valid again after the last rejection.
    resolved_at: Option<SystemTime>,
    reloads: ReloadCounts,
}

/// Number of reloads by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadCounts {
    pub applied: u64,
    pub rejected: u64,
    pub unchanged: u64,
}

impl History {
    pub fn new(first: &Arc<Generation>) -> History {
        History {
            started: SystemTime::now(),
            generations: vec![Arc::downgrade(first)],
            rejected: None,
            resolved_at: None,
            reloads: ReloadCounts::default(),
        }
    }

    /// Returns the number of turns that stay on earlier generations.
    pub fn record_applied(&mut self, next: &Arc<Generation>) -> usize {
        self.reloads.applied += 1;
        self.resolve();
        self.generations.retain(|g| g.strong_count() > 0);
        let staying = self.live_generations().iter().map(|g| g.turns_in_flight()).sum();
        self.generations.push(Arc::downgrade(next));
        staying
    }

    /// Returns whether the watcher saw a rejected set being reverted, which is worth a log line. Reloads by the watcher
    /// are not counted as unchanged: it also checks when no file of the set changed.
    pub fn record_unchanged(&mut self, cause: Cause) -> bool {
        self.reloads.unchanged += u64::from(cause != Cause::Watch);
        let was_rejected = self.unresolved().is_some();
        self.resolve();
        was_rejected && cause == Cause::Watch
    }

    pub fn record_rejected(&mut self, digest: String, rejected: &Arc<RejectedSet>) {
        self.reloads.rejected += 1;
        self.rejected = Some((digest, rejected.clone()));
        self.resolved_at = None;
    }

    /// The last rejection, if this set caused it and the files have not been valid since.
    pub fn known_rejection(&self, digest: &str) -> Option<Arc<RejectedSet>> {
        let (known, rejected) = self.unresolved()?;
        (known == digest).then(|| rejected.clone())
    }

    fn unresolved(&self) -> Option<&(String, Arc<RejectedSet>)> {
        self.rejected.as_ref().filter(|_| self.resolved_at.is_none())
    }

    fn resolve(&mut self) {
        if self.unresolved().is_some() {
            self.resolved_at = Some(SystemTime::now());
        }
    }

    fn live_generations(&self) -> Vec<Arc<Generation>> {
        self.generations.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Reloader {
    pub fn reload_counts(&self) -> ReloadCounts {
        self.history().reloads
    }

    /// Turns in flight, over all generations.
    pub fn turns_in_flight(&self) -> usize {
        self.history().live_generations().iter().map(|g| g.turns_in_flight()).sum()
    }

    pub fn generations_in_memory(&self) -> usize {
        self.history().generations.iter().filter(|g| g.strong_count() > 0).count()
    }

    /// The rejected set that is still on disk; `None` once the files are valid again.
    pub fn current_rejection(&self) -> Option<Arc<RejectedSet>> {
        self.history().unresolved().map(|(_, rejected)| rejected.clone())
    }

    /// The body of `GET /status`.
    pub fn status(&self, version: &str) -> Value {
        let current = self.current();
        let history = self.history();
        let ReloadCounts { applied, rejected, unchanged } = history.reloads;
        let live = history.live_generations();
        let last_rejected = history.rejected.as_ref().map(|(_, rejected)| {
            let mut summary = rejected_summary(rejected);
            summary["resolved_at"] = history.resolved_at.map(format_time).into();
            summary
        });
        json!({
            "version": version,
            "started_at": format_time(history.started),
            // Whether the files on disk are the ones in use.
            "config_state": if history.unresolved().is_some() { "rejected" } else { "applied" },
            "generation": generation_details(&current),
            "last_rejected": last_rejected,
            "needs_restart": needs_restart(&current),
            "turns_in_flight": live.iter().map(|g| g.turns_in_flight()).sum::<usize>(),
            "generations": live.iter().map(|g| generation_summary(g)).collect::<Vec<_>>(),
            "reloads": { "applied": applied, "rejected": rejected, "unchanged": unchanged },
        })
    }
}

impl ReloadOutcome {
    pub fn word(&self) -> &'static str {
        match self {
            ReloadOutcome::Applied(_) => "applied",
            ReloadOutcome::Unchanged(_) => "unchanged",
            ReloadOutcome::Rejected(_) => "rejected",
        }
    }

    /// The body of the response of `POST /admin/reload`. `current` is the generation that serves new requests.
    pub fn to_json(&self, current: &Generation) -> Value {
        let mut body = json!({ "outcome": self.word(), "generation": generation_summary(current) });
        match self {
            ReloadOutcome::Applied(generation) | ReloadOutcome::Unchanged(generation) => {
                body["needs_restart"] = needs_restart(generation);
            }
            ReloadOutcome::Rejected(rejected) => body["rejected"] = rejected_summary(rejected),
        }
        body
    }
}

fn generation_summary(generation: &Generation) -> Value {
    json!({
        "number": generation.number,
        "hash": generation.digest,
        "applied_at": format_time(generation.applied_at),
        "turns_in_flight": generation.turns_in_flight(),
    })
}

fn generation_details(generation: &Generation) -> Value {
    let sources = &generation.plan.sources;
    let mut details = generation_summary(generation);
    details["cause"] = generation.cause.name().into();
    details["duration_ms"] = generation.duration_ms.into();
    details["files"] = sources.iter().map(|(_, s)| s.shown.as_str()).collect();
    details["layers"] = origins::layers(sources).into();
    for kind in OriginKind::ALL {
        details[kind.plural()] = defined(kind, &generation.plan);
    }
    details["warnings"] = diagnostics(&generation.warnings, sources);
    details
}

/// What the set defines of one kind, with the layer and the line that it comes from.
fn defined(kind: OriginKind, plan: &Plan) -> Value {
    let entry = |origin: &Origin| {
        let mut entry = json!({
            "name": origin.name, "value": origin.value,
            "layer": origin.layer(&plan.sources), "defined_at": origin.place(&plan.sources),
        });
        if let Some(route) = &origin.route {
            entry["route"] = route.as_str().into();
        }
        entry
    };
    origins::origins(plan).iter().filter(|origin| origin.kind == kind).map(entry).collect()
}

fn rejected_summary(rejected: &RejectedSet) -> Value {
    let error = &rejected.error;
    json!({
        "rejected_at": format_time(rejected.rejected_at),
        "cause": rejected.cause.name(),
        "hash": rejected.digest,
        "duration_ms": rejected.duration_ms,
        "reason": error.summary(),
        "errors": error.diagnostics.iter().filter(|d| d.severity() == Severity::Error).count(),
        "diagnostics": diagnostics(&error.diagnostics, &error.sources),
    })
}

/// Maximum number of diagnostics in a document. More are usually one mistake reported many times; the log has them all.
const MAX_DIAGNOSTICS: usize = 100;

fn diagnostics(diagnostics: &[Diagnostic], sources: &Sources) -> Value {
    diagnostics.iter().take(MAX_DIAGNOSTICS).map(|d| diagnostic_json(d, sources)).collect()
}

fn needs_restart(generation: &Generation) -> Value {
    let entry = |NeedsRestart { setting, location, running, configured }: &NeedsRestart| json!({ "setting": setting, "location": location, "running": running, "configured": configured });
    generation.needs_restart.iter().map(entry).collect()
}

/// `2026-01-01T00:00:00.007Z`
fn format_time(time: SystemTime) -> String {
    format!("{:.3}", Timestamp::try_from(time).unwrap_or_default())
}

#[cfg(test)]
#[path = "../../tests/unit/reload_status.rs"]
mod tests;
