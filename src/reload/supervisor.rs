//! Runs a load on a thread of its own: with a known stack, a limit for the time without progress, and a reason if it does not
//! return.
//!
//! All loads run on the same thread, because the allocator keeps memory for each thread: docs/design/0012.
//!
//! The budget stops a load at its next step. What a library does between two steps cannot be stopped: then the thread is
//! left behind, the set is refused, and the process goes on. Two such threads are the most that is left behind.

use super::generation::SetError;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::{LOAD_STACK_BYTES, SourceFile, WorkBudget, exhausted};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a load may take for one step. The number of steps is limited by the budget: a machine that is busy with
/// something else makes a load slow, and not wrong.
const STALL_LIMIT: Duration = Duration::from_secs(60);
/// The last resort.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// How long a load may take to notice that its time is over.
const GRACE: Duration = Duration::from_secs(5);
const MAX_LEFT_BEHIND: usize = 2;

/// Runs the loads of a process, one after the other.
pub struct Supervisor {
    stall_limit: Duration,
    time_limit: Duration,
    grace: Duration,
    /// The thread, if it was needed before and was not left behind.
    thread: Mutex<Option<Sender<Job>>>,
    /// Loads that took too long and are still running.
    left_behind: Arc<AtomicUsize>,
}

type Job = Box<dyn FnOnce() + Send>;

/// Whether somebody still waits for a load. Changed only under its lock, so that a load is counted as left behind
/// exactly as long as it runs unattended.
#[derive(Clone, Copy, PartialEq)]
enum Attention {
    Waiting,
    Left,
}

impl Default for Supervisor {
    fn default() -> Self {
        Supervisor {
            stall_limit: STALL_LIMIT,
            time_limit: TIME_LIMIT,
            grace: GRACE,
            thread: Mutex::default(),
            left_behind: Arc::default(),
        }
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
        let budget = Arc::new(WorkBudget::default());
        let attention = Arc::new(Mutex::new(Attention::Waiting));
        let (sender, result) = mpsc::channel();
        let job: Job = {
            let (files, budget, attention) = (files.clone(), budget.clone(), attention.clone());
            let left_behind = self.left_behind.clone();
            Box::new(move || {
                let loaded = catch_unwind(AssertUnwindSafe(|| load(&files, &budget)));
                let attention = attention.lock().unwrap_or_else(PoisonError::into_inner);
                match *attention {
                    // The receiver exists as long as somebody waits.
                    Attention::Waiting => drop(sender.send(loaded)),
                    Attention::Left => drop(left_behind.fetch_sub(1, Ordering::Relaxed)),
                }
            })
        };
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = start(&mut thread, job) {
            let message = format!("cannot start a thread to load the set: {error}");
            return Err(one_error(Diagnostic::new(Code::Unreadable, Span::NOWHERE, message), Sources::default()));
        }
        let in_time = self.wait(&result, &budget).or_else(|_| {
            budget.time_out();
            result.recv_timeout(self.grace)
        });
        let loaded = in_time.or_else(|_| {
            let mut attention = attention.lock().unwrap_or_else(PoisonError::into_inner);
            // It may have ended just now.
            result.try_recv().inspect_err(|_| {
                *attention = Attention::Left;
                // The next load gets a thread of its own.
                *thread = None;
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

impl Supervisor {
    /// Waits as long as the load makes progress.
    fn wait<T>(&self, result: &Receiver<T>, budget: &WorkBudget) -> Result<T, RecvTimeoutError> {
        let began = Instant::now();
        loop {
            let spent = budget.spent();
            let left = self.time_limit.saturating_sub(began.elapsed());
            let received = result.recv_timeout(self.stall_limit.min(left));
            let is_stalled = budget.spent() == spent || began.elapsed() >= self.time_limit;
            if received.is_ok() || is_stalled {
                return received;
            }
        }
    }
}

/// Hands the job to the thread, or to a new one. A thread ends when its sender is dropped.
fn start(thread: &mut Option<Sender<Job>>, job: Job) -> io::Result<()> {
    let mut job = Some(job);
    if let Some(sender) = thread
        && let Some(waiting) = job.take()
        && let Err(SendError(returned)) = sender.send(waiting)
    {
        job = Some(returned);
    }
    job.map_or(Ok(()), |job| spawn(thread, job))
}

fn spawn(thread: &mut Option<Sender<Job>>, job: Job) -> io::Result<()> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let work = move || jobs.iter().for_each(|job| job());
    thread::Builder::new().name("load".to_owned()).stack_size(LOAD_STACK_BYTES).spawn(work)?;
    let _ = sender.send(job);
    *thread = Some(sender);
    Ok(())
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
