//! One loaded, checked, immutable set of mappings. A request keeps the generation it started with.

use super::path_table::PathTable;
use super::pinned::PinnedSettings;
use super::{Cause, NeedsRestart, embedded};
use crate::diagnostics::{Code, Diagnostic, Severity, Source, Sources, Span, render_all, visible_span};
use crate::mapping::source::layout::SetFile;
use crate::mapping::{Before, CheckedSet, Overrides, Plan, SourceFile, WorkBudget, load_after};
use crate::verify;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

#[derive(Debug)]
pub struct Generation {
    pub number: u64,
    /// Digest of the file texts. Saving an unchanged set does not create a new generation.
    pub digest: String,
    pub plan: Plan,
    pub paths: PathTable,
    pub warnings: Vec<Diagnostic>,
    pub applied_at: SystemTime,
    pub cause: Cause,
    /// Time to read, check and verify the set.
    pub duration_ms: u64,
    /// Settings that differ in the files but take effect only after a restart.
    pub needs_restart: Vec<NeedsRestart>,
    turns_in_flight: AtomicUsize,
}

/// Counts one turn of a generation as in flight until it is dropped.
pub struct InFlight(Arc<Generation>);

impl Generation {
    pub fn begin_turn(self: &Arc<Self>) -> InFlight {
        self.turns_in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    pub fn turns_in_flight(&self) -> usize {
        self.turns_in_flight.load(Ordering::Relaxed)
    }

    /// Logs the number of warnings and the first of them, on one line.
    pub fn log_warnings(&self) {
        for unknown in &self.plan.gateway.unknown_variables {
            let near = unknown.did_you_mean.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            tracing::warn!("no profile names the environment variable `{}`{near}", unknown.name);
        }
        let mut warnings = self.warnings.iter().filter(|d| d.severity() == Severity::Warning);
        if let Some(first) = warnings.next() {
            let (count, place) = (1 + warnings.count(), self.plan.sources.show(first.span));
            let (code, message) = (first.code.as_str(), &first.message);
            let all = if count == 1 { "1 warning".to_owned() } else { format!("{count} warnings, the first") };
            tracing::warn!("generation {}: {all} ({code} at {place}): {message}", self.number);
        }
    }

    /// `dialects/chat.yaml changed`: the first few files that differ, for one log line.
    pub fn changed_since(&self, earlier: &Generation) -> String {
        const MAX_FILES: usize = 3;
        let (new, old) = (&self.plan.sources, &earlier.plan.sources);
        // Several layers may have a file of the same name.
        let has = |sources: &Sources, name: &str| sources.iter().any(|(_, s)| s.name == name);
        let mut changed = Vec::new();
        for (_, source) in new.iter() {
            let is_same = |before: &Source| before.name == source.name && before.text == source.text;
            match has(old, &source.name) {
                false => changed.push(format!("{} added", source.name)),
                true if !old.iter().any(|(_, before)| is_same(before)) => {
                    changed.push(format!("{} changed", source.name));
                }
                true => {}
            }
        }
        let removed = old.iter().filter(|(_, s)| !has(new, &s.name));
        changed.extend(removed.map(|(_, s)| format!("{} removed", s.name)));
        let more = changed.len().saturating_sub(MAX_FILES);
        changed.truncate(MAX_FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        changed.join(", ") + &more
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.turns_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a set did not become a generation.
#[derive(Debug)]
pub struct SetError {
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Arc<Sources>,
}

impl SetError {
    pub fn render(&self, colour: bool) -> String {
        render_all(&self.diagnostics, &self.sources, colour)
    }

    /// One line for the log: `1 error in dialects/chat.yaml (RF104 at 10:69): no variable …`.
    pub fn summary(&self) -> String {
        let count = self.diagnostics.len();
        let Some(first) = self.diagnostics.first() else { return "no diagnostics".into() };
        let errors = if count == 1 { "1 error".into() } else { format!("{count} errors, the first") };
        let (code, message) = (first.code.as_str(), &first.message);
        // An error of the set as a whole has no file.
        let Some(source) = self.sources.get(first.span.file) else { return format!("{errors} ({code}): {message}") };
        // An error of a file as a whole has no line.
        let at = visible_span(source, first.span).map(|span| self.sources.location(span));
        let at = at.map_or(String::new(), |place| format!(" at {}:{}", place.line, place.column));
        format!("{errors} in {} ({code}{at}): {message}", source.shown)
    }
}

pub fn digest(files: &[SourceFile]) -> String {
    text_digest(files.iter().flat_map(|file| [&*file.name, &*file.text]))
}

/// Identifies a set that cannot be read: by its error messages, because there are no texts.
pub fn error_digest(error: &SetError) -> String {
    text_digest(error.diagnostics.iter().map(|d| d.message.as_str()))
}

fn text_digest<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text);
        hasher.update([0]);
    }
    hasher.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// An error if the current generation has its own schemas and the new set has none. The folder was probably caught in
/// the middle of a copy; falling back to the embedded schemas would silently change the meaning of the set.
pub fn check_own_schemas(files: &[SourceFile], now: &Generation) -> Result<(), SetError> {
    let own = |name: &str, shown: &str| SetFile::Schema.matches(name) && !shown.starts_with(embedded::PATH_PREFIX);
    let had = now.plan.sources.iter().any(|(_, s)| own(&s.name, &s.shown));
    if !had || files.iter().any(|f| own(&f.name, &f.shown)) {
        return Ok(());
    }
    let message = "the set had its own schemas, and they are missing now";
    let help = "restore the folder schemas/, or restart to use the embedded schemas";
    let diagnostic = Diagnostic::new(Code::Unreadable, Span::NOWHERE, message).help(help);
    Err(SetError { diagnostics: vec![diagnostic], sources: Arc::default() })
}

/// The files, with the texts of the current generation where they are equal: two generations share them in memory.
pub fn share_texts(mut files: Vec<SourceFile>, now: &Generation) -> Vec<SourceFile> {
    let known: HashMap<&str, &Arc<str>> = now.plan.sources.iter().map(|(_, s)| (s.shown.as_str(), &s.text)).collect();
    for file in &mut files {
        if let Some(text) = known.get(file.shown.as_str()).filter(|text| ***text == file.text) {
            file.text = (*text).clone();
        }
    }
    files
}

/// Loads and checks a set and runs its `*.test.yaml` files, except for what is as it was in the embedded set or in the
/// earlier generation and no route uses. The first generation has no pinned settings.
pub fn build(
    files: &[SourceFile],
    number: u64,
    earlier: Option<&Generation>,
    overrides: &Overrides,
    pinned: Option<&PinnedSettings>,
    budget: &WorkBudget,
) -> Result<Generation, SetError> {
    let embedded = embedded::files();
    let mut before =
        Before { plan: earlier.map(|earlier| &earlier.plan), checked: vec![CheckedSet::of_files(&embedded)] };
    let has_no_warnings = |earlier: &&Generation| earlier.warnings.iter().all(|d| d.severity() == Severity::Note);
    before.checked.extend(earlier.filter(has_no_warnings).map(|earlier| CheckedSet::of_plan(&earlier.plan)));
    let loaded = load_after(files, &before, overrides, budget);
    let Some(mut plan) = loaded.plan else {
        return Err(SetError { diagnostics: loaded.diagnostics, sources: loaded.sources });
    };
    let failed = verify::verify_within(&plan, budget).found;
    if !failed.is_empty() {
        return Err(SetError { diagnostics: failed, sources: loaded.sources });
    }
    plan.keep_what_turns_need();
    let needs_restart = pinned.map(|pinned| pinned.restore(&mut plan)).unwrap_or_default();
    let paths = PathTable::new(&plan.gateway).map_err(|error| {
        let diagnostic = Diagnostic::new(Code::UnknownValue, Span::NOWHERE, format!("gateway.yaml: {error}"));
        SetError { diagnostics: vec![diagnostic], sources: loaded.sources }
    })?;
    Ok(Generation {
        number,
        digest: digest(files),
        plan,
        paths,
        warnings: loaded.diagnostics,
        applied_at: SystemTime::now(),
        cause: Cause::Start,
        duration_ms: 0,
        needs_restart,
        turns_in_flight: AtomicUsize::new(0),
    })
}
