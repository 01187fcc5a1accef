//! Runs a load on a thread of its own: with a known stack, a limit for its time, and a reason if it does not return.
//!
//! The budget stops a load at its next step. What a library does between two steps cannot be stopped: then the thread is
//! left behind, the set is refused, and the process goes on. Two such threads are the most that is left behind.

use super::generation::SetError;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::{SourceFile, WorkBudget, exhausted};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Every recursion of a load is over something with a limited depth, and needs a small part of this.
const STACK_BYTES: usize = 32 * 1024 * 1024;
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long a load whose time is over may take to notice it.
const GRACE: Duration = Duration::from_secs(5);
const MAX_LEFT_BEHIND: usize = 2;

/// Runs the loads of a process, one after the other.
pub struct Supervisor {
    max_steps: Option<u64>,
    time_limit: Duration,
    grace: Duration,
    /// Loads that took too long and are still running.
    left_behind: Arc<AtomicUsize>,
}

/// Whether somebody still waits for a load. Changed only under its lock, so that a load is counted as left behind
/// exactly as long as it runs unattended.
#[derive(Clone, Copy, PartialEq)]
enum Attention {
    Waiting,
    Left,
}

impl Default for Supervisor {
    fn default() -> Self {
        let left_behind = Arc::default();
        Supervisor { max_steps: None, time_limit: TIME_LIMIT, grace: GRACE, left_behind }
    }
}

impl Supervisor {
    /// Runs `load` with the files of a set. The error is one diagnostic, at the file that the load was busy with.
    pub fn run<T: Send + 'static>(
        &self,
        files: &Arc<[SourceFile]>,
        load: impl FnOnce(&[SourceFile], &WorkBudget) -> T + Send + 'static,
    ) -> Result<T, SetError> {
        if self.left_behind.load(Ordering::Relaxed) >= MAX_LEFT_BEHIND {
            let message = format!("{MAX_LEFT_BEHIND} earlier loads took too long and are still running");
            let diagnostic = Diagnostic::new(Code::TooMuchWork, Span::NOWHERE, message);
            return Err(one_error(diagnostic.help("restart the process to load another set"), Sources::default()));
        }
        let budget = Arc::new(self.max_steps.map_or_else(WorkBudget::default, WorkBudget::new));
        let attention = Arc::new(Mutex::new(Attention::Waiting));
        let (sender, result) = mpsc::channel();
        let started = {
            let (files, budget, attention) = (files.clone(), budget.clone(), attention.clone());
            let left_behind = self.left_behind.clone();
            thread::Builder::new().name("load".to_owned()).stack_size(STACK_BYTES).spawn(move || {
                let loaded = catch_unwind(AssertUnwindSafe(|| load(&files, &budget)));
                let attention = attention.lock().unwrap_or_else(PoisonError::into_inner);
                match *attention {
                    // The receiver exists as long as somebody waits.
                    Attention::Waiting => drop(sender.send(loaded)),
                    Attention::Left => drop(left_behind.fetch_sub(1, Ordering::Relaxed)),
                }
            })
        };
        if let Err(error) = started {
            let message = format!("cannot start a thread to load the set: {error}");
            return Err(one_error(Diagnostic::new(Code::Unreadable, Span::NOWHERE, message), Sources::default()));
        }
        let in_time = result.recv_timeout(self.time_limit).or_else(|_| {
            budget.time_out();
            result.recv_timeout(self.grace)
        });
        let loaded = in_time.or_else(|_| {
            let mut attention = attention.lock().unwrap_or_else(PoisonError::into_inner);
            // It may have ended just now.
            result.try_recv().inspect_err(|_| {
                *attention = Attention::Left;
                self.left_behind.fetch_add(1, Ordering::Relaxed);
            })
        });
        let sources = || sources_of(files);
        match loaded {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(panic)) => Err(one_error(panicked(&*panic, &budget, &sources()), sources())),
            Err(_) => Err(one_error(exhausted::timed_out(&budget, &sources()), sources())),
        }
    }
}

fn sources_of(files: &[SourceFile]) -> Sources {
    let mut sources = Sources::default();
    for file in files {
        sources.add(file.name.as_str(), file.shown.as_str(), file.text.clone());
    }
    sources
}

fn one_error(diagnostic: Diagnostic, sources: Sources) -> SetError {
    SetError { diagnostics: vec![diagnostic], sources: Arc::new(sources) }
}

/// A defect of this program: the set that brings it to light is refused, with the reason.
fn panicked(panic: &(dyn Any + Send), budget: &WorkBudget, sources: &Sources) -> Diagnostic {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    exhausted::panicked(text.unwrap_or("no reason is known"), budget, sources)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/reload_supervisor.rs"]
mod tests;
