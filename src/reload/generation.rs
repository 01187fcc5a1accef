//! One loaded, checked, immutable set of mappings; a request keeps the one it began with.

use super::{Cause, NeedsRestart, embedded};
use crate::diagnostics::{Code, Diagnostic, Severity, Sources, Span, render_all, visible};
use crate::mapping::{FileText, Overrides, Plan, load_after};
use crate::verify;
use sha2::{Digest, Sha256};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

#[derive(Debug)]
pub struct Generation {
    pub number: u64,
    /// Of the texts, so that the same set saved again changes nothing.
    pub hash: u64,
    /// The same for people and for other programs: the same texts give the same digest anywhere.
    pub digest: String,
    pub plan: Plan,
    pub warnings: Vec<Diagnostic>,
    pub applied_at: SystemTime,
    pub cause: Cause,
    /// To read, check and prove it.
    pub took_ms: u64,
    /// What stands in its files and is not in force.
    pub needs_restart: Vec<NeedsRestart>,
    turns: AtomicUsize,
}

/// A turn that a generation answers.
pub struct Turn(Arc<Generation>);

impl Generation {
    /// Counted until it is dropped.
    pub fn turn(self: &Arc<Self>) -> Turn {
        self.turns.fetch_add(1, Ordering::Relaxed);
        Turn(self.clone())
    }

    /// Turns under way.
    pub fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    /// What may serve and is odd all the same.
    pub fn tell_warnings(&self) {
        let mut warnings = self.warnings.iter().filter(|d| d.severity() == Severity::Warning);
        if let Some(first) = warnings.next() {
            let (count, place) = (1 + warnings.count(), self.plan.sources.show(first.span));
            let (code, message) = (first.code.as_str(), &first.message);
            let all = if count == 1 { "1 warning".to_owned() } else { format!("{count} warnings, the first") };
            tracing::warn!("generation {}: {all} ({code} at {place}): {message}", self.number);
        }
    }

    /// `dialects/chat.yaml changed`, as far as a line has room.
    pub fn changed_since(&self, earlier: &Generation) -> String {
        const SHOWN: usize = 3;
        let (new, old) = (&self.plan.sources, &earlier.plan.sources);
        let text =
            |sources: &Sources, name: &str| sources.iter().find(|(_, s)| s.name == name).map(|(_, s)| s.text.clone());
        let mut changed = Vec::new();
        for (_, source) in new.iter() {
            match text(old, &source.name) {
                None => changed.push(format!("{} added", source.name)),
                Some(before) if before != source.text => changed.push(format!("{} changed", source.name)),
                Some(_) => {}
            }
        }
        let gone = old.iter().filter(|(_, s)| text(new, &s.name).is_none());
        changed.extend(gone.map(|(_, s)| format!("{} removed", s.name)));
        let more = changed.len().saturating_sub(SHOWN);
        changed.truncate(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        changed.join(", ") + &more
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a set did not become a generation.
#[derive(Debug)]
pub struct Refusal {
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Arc<Sources>,
}

impl Refusal {
    pub fn render(&self, colour: bool) -> String {
        render_all(&self.diagnostics, &self.sources, colour)
    }

    /// `1 error in dialects/chat.yaml (RF104 at 10:69)`: what a log line has room for.
    pub fn brief(&self) -> String {
        let count = self.diagnostics.len();
        let Some(first) = self.diagnostics.first() else { return "no reason was found".into() };
        let errors = if count == 1 { "1 error".into() } else { format!("{count} errors, the first") };
        let (code, message) = (first.code.as_str(), &first.message);
        // What is wrong with the set as a whole stands in none of its files.
        let Some(source) = self.sources.get(first.span.file) else { return format!("{errors} ({code}): {message}") };
        // Nor does what is wrong with a file as a whole stand in one of its lines.
        let at = visible(source, first.span).map(|span| self.sources.place(span));
        let at = at.map_or(String::new(), |place| format!(" at {}:{}", place.line, place.column));
        format!("{errors} in {} ({code}{at}): {message}", source.shown)
    }
}

pub fn hash(files: &[FileText]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file.name, &file.text).hash(&mut hasher);
    }
    hasher.finish()
}

/// The same for files that cannot be read: what is wrong with them.
pub fn hash_of(refusal: &Refusal) -> u64 {
    let mut hasher = DefaultHasher::new();
    refusal.diagnostics.iter().for_each(|d| d.message.hash(&mut hasher));
    hasher.finish()
}

pub fn digest(files: &[FileText]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.name.as_bytes());
        hasher.update([0]);
        hasher.update(file.text.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// A set that had schemas of its own and has none is half of one: with those of the binary it would mean something else.
pub fn lost_schemas(files: &[FileText], now: &Generation) -> Option<Refusal> {
    let own = |name: &str, shown: &str| name.starts_with("schemas/") && !shown.starts_with(embedded::SHOWN);
    let had = now.plan.sources.iter().any(|(_, s)| own(&s.name, &s.shown));
    if !had || files.iter().any(|f| own(&f.name, &f.shown)) {
        return None;
    }
    let message = "the set had schemas of its own, and has none any more";
    let help = "put the folder schemas/ back, or restart to go on with those in the binary";
    let diagnostic = Diagnostic::new(Code::Unreadable, Span::NOWHERE, message).help(help);
    Some(Refusal { diagnostics: vec![diagnostic], sources: Arc::default() })
}

/// Loads, checks, and runs the tests that stand beside the mappings.
pub fn build(
    files: &[FileText],
    number: u64,
    earlier: Option<&Plan>,
    overrides: &Overrides,
) -> Result<Generation, Refusal> {
    let loaded = load_after(files, earlier, overrides);
    let Some(plan) = loaded.plan else {
        return Err(Refusal { diagnostics: loaded.diagnostics, sources: loaded.sources });
    };
    let failed = verify::findings(&plan);
    if !failed.is_empty() {
        return Err(Refusal { diagnostics: failed, sources: loaded.sources });
    }
    Ok(Generation {
        number,
        hash: hash(files),
        digest: digest(files),
        plan,
        warnings: loaded.diagnostics,
        applied_at: SystemTime::now(),
        cause: Cause::Start,
        took_ms: 0,
        needs_restart: Vec::new(),
        turns: AtomicUsize::new(0),
    })
}
