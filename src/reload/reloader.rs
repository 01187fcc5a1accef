//! Read, check, swap: a set with one bad file changes nothing that runs.

use super::embedded;
use super::generation::{self, Generation, Refusal};
use super::pinned::AtStart;
use super::set_reader::{Layers, ReadError};
use super::status::History;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::{FileText, Overrides};
use arc_swap::ArcSwap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

/// The generation that serves, and how it is replaced.
pub struct Store {
    layers: Layers,
    overrides: Overrides,
    current: ArcSwap<Generation>,
    at_start: AtStart,
    /// One reload at a time.
    reloading: Mutex<()>,
    history: Mutex<History>,
}

/// Who asked for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Start,
    /// Something in a folder changed.
    Watch,
    Signal,
    Admin,
}

/// What came of a reload.
#[derive(Debug)]
pub enum Outcome {
    Applied(Arc<Generation>),
    /// The files are those of the generation that serves.
    Unchanged(Arc<Generation>),
    Refused(Arc<Refused>),
}

/// A set that did not become a generation, and when.
#[derive(Debug)]
pub struct Refused {
    pub refusal: Refusal,
    pub at: SystemTime,
    pub cause: Cause,
    /// Of its texts, if they could be read.
    pub digest: Option<String>,
    pub took_ms: u64,
}

impl Cause {
    pub fn word(self) -> &'static str {
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
        f.write_str(self.word())
    }
}

impl Store {
    /// The first generation. Without one there is nothing to serve.
    pub fn open(layers: Layers, overrides: Overrides) -> Result<Arc<Store>, Refusal> {
        let begun = Instant::now();
        let files = read(&layers)?;
        let mut first = generation::build(&files, 1, None, &overrides)?;
        first.cause = Cause::Start;
        first.took_ms = begun.elapsed().as_millis() as u64;
        let first = Arc::new(first);
        let history = Mutex::new(History::new(&first));
        let at_start = AtStart::of(&first.plan.gateway);
        let current = ArcSwap::from(first);
        Ok(Arc::new(Store { layers, overrides, current, at_start, reloading: Mutex::default(), history }))
    }

    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Reads the whole set, checks it, runs its tests, proves its frames; then it serves. With anything wrong in it
    /// nothing changes.
    pub fn reload(&self, cause: Cause) -> Outcome {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let now = self.current();
        // What changes all the time is looked at all the time, and a bad set is told once. Who asks is told.
        let told = |hash| self.history().is_refused(hash).filter(|_| cause == Cause::Watch).map(Outcome::Refused);
        let files = match read(&self.layers) {
            Ok(files) => files,
            Err(refusal) => {
                let hash = generation::hash_of(&refusal);
                return told(hash).unwrap_or_else(|| self.refuse(refusal, (hash, None), cause, begun));
            }
        };
        let hash = generation::hash(&files);
        if hash == now.hash {
            if self.history().unchanged(cause) {
                tracing::info!(%cause, "generation {} stays: its files are as they were", now.number);
            }
            return Outcome::Unchanged(now);
        }
        if let Some(known) = told(hash) {
            return known;
        }
        if let Some(refusal) = generation::lost_schemas(&files, &now) {
            return self.refuse(refusal, (hash, Some(generation::digest(&files))), cause, begun);
        }
        let mut next = match generation::build(&files, now.number + 1, Some(&now.plan), &self.overrides) {
            Ok(next) => next,
            Err(refusal) => {
                let digest = generation::digest(&files);
                return self.refuse(refusal, (hash, Some(digest)), cause, begun);
            }
        };
        next.needs_restart = self.at_start.hold(&mut next.plan);
        next.cause = cause;
        next.took_ms = begun.elapsed().as_millis() as u64;
        let next = Arc::new(next);
        self.current.store(next.clone());
        let (number, changed) = (next.number, next.changed_since(&now));
        let staying = self.history().applied(&next);
        let stay = match staying {
            0 => String::new(),
            1 => "; 1 running turn stays on the generation it began with".to_owned(),
            n => format!("; {n} running turns stay on the generation they began with"),
        };
        tracing::info!(%cause, took_ms = next.took_ms, "generation {number} applied: {changed}{stay}");
        next.tell_warnings();
        for need in &next.needs_restart {
            tracing::warn!("generation {number} leaves out what is read at the start only: {need}");
        }
        Outcome::Applied(next)
    }

    fn refuse(&self, refusal: Refusal, set: (u64, Option<String>), cause: Cause, begun: Instant) -> Outcome {
        let took_ms = begun.elapsed().as_millis() as u64;
        let (hash, digest) = set;
        let refused = Arc::new(Refused { refusal, at: SystemTime::now(), cause, digest, took_ms });
        // First, so that who reads the log finds it in the status.
        self.history().refused(hash, &refused);
        let now = self.current();
        let see = now.plan.gateway.status_path().map_or(String::new(), |path| format!("; see {path}"));
        let (number, refusal) = (now.number, &refused.refusal);
        tracing::warn!(%cause, "reload refused, still on generation {number}: {}{see}", refusal.brief());
        let _ = writeln!(io::stderr(), "{}", refusal.render(false));
        Outcome::Refused(refused)
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of a file that is no text only the line that cannot be read is kept, at its place.
fn place(error: &ReadError, sources: &mut Sources) -> Span {
    let Some(path) = error.path() else { return Span::NOWHERE };
    match error {
        ReadError::NotUtf8 { line, column, text, .. } => {
            let above = "\n".repeat(line - 1);
            let before: String = text.chars().take(column - 1).collect();
            let start = above.len() + before.len();
            Span::new(sources.add("", path, Arc::from(above + text)), start, start + '\u{fffd}'.len_utf8())
        }
        ReadError::Io { .. } | ReadError::TooBig { .. } | ReadError::TooMany { .. } => {
            Span::new(sources.add("", path, Arc::from("")), 0, 0)
        }
    }
}

/// How often a set may change while it is being read.
const READINGS: usize = 5;

/// The files of a set, or what cannot be read. Files that are replaced together (a ConfigMap's swap, a checkout) may be
/// caught in the middle, some old and some new; so they are read until two readings agree.
pub fn read(layers: &Layers) -> Result<Vec<FileText>, Refusal> {
    let embedded = embedded::files();
    let mut last = layers.read(&embedded);
    let mut agreed = false;
    for _ in 1..READINGS {
        let again = layers.read(&embedded);
        agreed = again == last;
        last = again;
        if agreed {
            break;
        }
    }
    if !agreed {
        let message = "the files of the set change while they are read";
        let diagnostic = Diagnostic::new(Code::Unreadable, Span::NOWHERE, message).help("they are read again soon");
        return Err(Refusal { diagnostics: vec![diagnostic], sources: Arc::default() });
    }
    last.map_err(|errors| {
        let mut sources = Sources::default();
        let diagnostics = errors.into_iter().map(|error| {
            let span = place(&error, &mut sources);
            let code = match error {
                ReadError::TooBig { .. } | ReadError::TooMany { .. } => Code::Budget,
                ReadError::Io { .. } | ReadError::NotUtf8 { .. } => Code::Unreadable,
            };
            Diagnostic::new(code, span, error.to_string())
        });
        let diagnostics = diagnostics.collect();
        Refusal { diagnostics, sources: Arc::new(sources) }
    })
}
