//! Reads, checks and swaps mapping sets. A set with one bad file is rejected as a whole, and the current generation
//! keeps serving.

use super::embedded;
use super::generation::{self, Generation, SetError};
use super::pinned::PinnedSettings;
use super::read_error::ReadError;
use super::set_reader::Layers;
use super::status::History;
use super::supervisor::Supervisor;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::{Overrides, SourceFile, WorkBudget};
use arc_swap::ArcSwap;
use reframe_allocator::return_free_memory;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

/// Holds the current generation and replaces it on reload.
pub struct Reloader {
    layers: Layers,
    overrides: Arc<Overrides>,
    current: ArcSwap<Generation>,
    pinned: Arc<PinnedSettings>,
    supervisor: Supervisor,
    /// One reload at a time.
    reloading: Mutex<()>,
    history: Mutex<History>,
    /// Where reports are printed.
    printer: OnceLock<fn(&str)>,
}

/// Returns the memory of a load to the system when it is dropped.
struct ReturnFreeMemory;

impl Drop for ReturnFreeMemory {
    fn drop(&mut self) {
        return_free_memory();
    }
}

/// What triggered a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Start,
    /// The file watcher reported a change.
    Watch,
    Signal,
    Admin,
}

#[derive(Debug)]
pub enum ReloadOutcome {
    Applied(Arc<Generation>),
    /// The files are identical to those of the current generation.
    Unchanged(Arc<Generation>),
    Rejected(Arc<RejectedSet>),
}

/// A set that did not become a generation.
#[derive(Debug)]
pub struct RejectedSet {
    pub error: SetError,
    pub rejected_at: SystemTime,
    pub cause: Cause,
    /// Digest of the file texts, if they could be read.
    pub digest: Option<String>,
    pub duration_ms: u64,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::Start => "start",
            Cause::Watch => "watch",
            Cause::Signal => "signal",
            Cause::Admin => "admin",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Reloader {
    /// Loads the first generation. There is no fallback: if the set is rejected, the server does not start.
    pub fn open(layers: Layers, overrides: Overrides) -> Result<Arc<Reloader>, SetError> {
        let started = Instant::now();
        let files = read_set(&layers)?;
        let (supervisor, overrides) = (Supervisor::default(), Arc::new(overrides));
        let settings = overrides.clone();
        let build =
            move |files: &[SourceFile], budget: &WorkBudget| generation::build(files, 1, None, &settings, None, budget);
        let mut first = supervisor.run(&files.into(), build)??;
        first.duration_ms = started.elapsed().as_millis() as u64;
        return_free_memory();
        let first = Arc::new(first);
        let history = Mutex::new(History::new(&first));
        let pinned = Arc::new(PinnedSettings::of(&first.plan.gateway));
        let (current, reloading) = (ArcSwap::from(first), Mutex::default());
        Ok(Arc::new(Reloader {
            layers,
            overrides,
            current,
            pinned,
            supervisor,
            reloading,
            history,
            printer: OnceLock::new(),
        }))
    }

    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Reads the whole set, checks it, runs its tests, verifies its frames, and makes it the current generation. Any
    /// error rejects the set as a whole.
    pub fn reload(&self, cause: Cause) -> ReloadOutcome {
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        // After the generation before, if no turn uses it.
        let _freed = ReturnFreeMemory;
        let now = self.current();
        // Before the digest: the embedded schemas that would be used instead may have the same texts.
        let read = read_set(&self.layers).and_then(|files| {
            generation::check_own_schemas(&files, &now)?;
            Ok(generation::share_texts(files, &now))
        });
        let digest = match &read {
            Ok(files) => generation::digest(files),
            Err(error) => generation::error_digest(error),
        };
        if digest == now.digest {
            if self.history().record_unchanged(cause) {
                tracing::info!(%cause, "generation {} unchanged: the files are valid again", now.number);
            } else if cause == Cause::Signal {
                tracing::info!(%cause, "generation {} unchanged: its files have not changed", now.number);
            }
            return ReloadOutcome::Unchanged(now);
        }
        // The watcher re-reads an unchanged bad set many times; report it once. A signal or an admin request always
        // gets the full report.
        if let Some(known) = self.history().known_rejection(&digest).filter(|_| cause == Cause::Watch) {
            return ReloadOutcome::Rejected(known);
        }
        let number = now.number + 1;
        let shown_digest = read.is_ok().then(|| digest.clone());
        let built = read.and_then(|files| {
            let (earlier, overrides, pinned) = (now.clone(), self.overrides.clone(), self.pinned.clone());
            let build = move |files: &[SourceFile], budget: &WorkBudget| {
                generation::build(files, number, Some(&earlier), &overrides, Some(&pinned), budget)
            };
            self.supervisor.run(&files.into(), build)?
        });
        let mut next = match built {
            Ok(next) => next,
            Err(error) => return self.reject(error, (digest, shown_digest), cause, started),
        };
        next.cause = cause;
        next.duration_ms = started.elapsed().as_millis() as u64;
        let next = Arc::new(next);
        self.current.store(next.clone());
        let changed = next.changed_since(&now);
        let on_older_generations = self.history().record_applied(&next);
        let stay = match on_older_generations {
            0 => String::new(),
            1 => "; 1 turn in flight stays on its generation".to_owned(),
            n => format!("; {n} turns in flight stay on their generations"),
        };
        tracing::info!(%cause, duration_ms = next.duration_ms, "generation {number} applied: {changed}{stay}");
        next.log_warnings();
        for need in &next.needs_restart {
            tracing::warn!("generation {number} does not apply a setting that needs a restart: {need}");
        }
        ReloadOutcome::Applied(next)
    }

    fn reject(&self, error: SetError, set: (String, Option<String>), cause: Cause, started: Instant) -> ReloadOutcome {
        let duration_ms = started.elapsed().as_millis() as u64;
        let (known_by, digest) = set;
        let rejected = Arc::new(RejectedSet { error, rejected_at: SystemTime::now(), cause, digest, duration_ms });
        // Before the log line: a reader of the log must find the rejection in /status.
        self.history().record_rejected(known_by, &rejected);
        let now = self.current();
        let see = now.plan.gateway.status_path().map_or(String::new(), |path| format!("; see {path}"));
        let (number, error) = (now.number, &rejected.error);
        tracing::warn!(%cause, "reload rejected, still on generation {number}: {}{see}", error.summary());
        self.print(&error.render(false));
        ReloadOutcome::Rejected(rejected)
    }

    /// Prints reports with this, such as after the lines of the log before them. By default they go to standard error.
    pub fn print_with(&self, printer: fn(&str)) {
        let _ = self.printer.set(printer);
    }

    fn print(&self, report: &str) {
        match self.printer.get() {
            Some(print) => print(report),
            None => drop(writeln!(io::stderr(), "{report}")),
        }
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of attempts to read a set that changes while it is being read.
const MAX_READS: usize = 5;

/// Reads the files of a set. Files that are replaced together (a ConfigMap swap, a checkout) may be caught half way,
/// some old and some new, so the set is read until two consecutive reads are identical.
pub fn read_set(layers: &Layers) -> Result<Vec<SourceFile>, SetError> {
    let embedded = embedded::files();
    let mut last = layers.read(&embedded);
    let mut agreed = false;
    for _ in 1..MAX_READS {
        let again = layers.read(&embedded);
        agreed = again == last;
        last = again;
        if agreed {
            break;
        }
    }
    if !agreed {
        let message = "the files of the set changed while they were read";
        let diagnostic = Diagnostic::new(Code::Unreadable, Span::NOWHERE, message).help("they will be read again soon");
        return Err(SetError { diagnostics: vec![diagnostic], sources: Arc::default() });
    }
    last.map_err(|errors| {
        let mut sources = Sources::default();
        let diagnostics = errors.into_iter().map(|ReadError { code, path, message, excerpt: (text, at) }| {
            let invalid_char = text[at..].chars().next().map_or(0, char::len_utf8);
            let span = path
                .map_or(Span::NOWHERE, |path| Span::new(sources.add("", path, Arc::from(text)), at, at + invalid_char));
            Diagnostic::new(code, span, message)
        });
        let diagnostics = diagnostics.collect();
        SetError { diagnostics, sources: Arc::new(sources) }
    })
}
