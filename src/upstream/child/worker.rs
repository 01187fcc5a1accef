//! A worker as the rest of the gateway knows it: its commands, and what is known about its process.

use super::turn_queue::TurnSender;
use crate::domain::Tree;
use crate::engine::conversation::{OutgoingCall, SessionValues};
use crate::mapping::config::backend::BackendPlan;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

/// Identifies a turn on a worker.
pub type TurnId = u64;

pub enum WorkerCommand {
    Open {
        turn: TurnId,
        plan: Arc<BackendPlan>,
        messages: TurnSender,
        closing: ClosingMark,
    },
    Call {
        turn: TurnId,
        call: OutgoingCall,
    },
    /// The client's turn is finished: cancel the turn, but pass on its messages.
    Finish(TurnId),
    /// Nobody reads the turn any more.
    Close(TurnId),
    /// No new turns follow: end with the last turn.
    Retire,
    Stop,
}

/// Marks a turn as being closed. It is counted once: by its client, before the next turn can ask for a place, or by its
/// worker.
#[derive(Clone, Debug, Default)]
pub struct ClosingMark(Arc<AtomicBool>);

impl ClosingMark {
    pub fn set(&self, status: &WorkerStatus) {
        if !self.0.swap(true, Ordering::Relaxed) {
            status.closing.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A process that has answered the calls of its session.
#[derive(Debug)]
pub struct Worker {
    pub commands: UnboundedSender<WorkerCommand>,
    pub values: SessionValues,
    pub status: Arc<WorkerStatus>,
}

/// What is known about a process from outside its task.
#[derive(Debug, Default)]
pub struct WorkerStatus {
    pub pid: OnceLock<u32>,
    /// Turns that are not closed yet.
    pub turns: AtomicUsize,
    /// Those of them that no client reads any more: the process still has to cancel and close them.
    pub closing: AtomicUsize,
    /// Turns so far.
    pub served: AtomicUsize,
    /// Lines that are no messages of JSON-RPC.
    pub garbage_lines: AtomicU64,
    /// Changed when the process has closed a turn.
    pub changes: watch::Sender<u64>,
    exit: Mutex<Option<String>>,
}

impl Worker {
    /// Why its turns have ended.
    pub fn exit_reason(&self) -> String {
        self.status.exit_reason()
    }
}

impl WorkerStatus {
    pub fn new(changes: watch::Sender<u64>) -> WorkerStatus {
        WorkerStatus { changes, ..WorkerStatus::default() }
    }

    /// Turns that clients read.
    pub fn active(&self) -> usize {
        self.turns.load(Ordering::Relaxed).saturating_sub(self.closing.load(Ordering::Relaxed))
    }

    pub fn exit_reason(&self) -> String {
        let exit = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
        let how = exit.as_ref().map_or(String::new(), |how| format!(" ({how})"));
        format!("the worker process has ended{how}")
    }

    pub fn set_exit(&self, how: &str) {
        *self.exit.lock().unwrap_or_else(PoisonError::into_inner) = Some(how.to_owned());
    }
}

/// Reports once whether the session was established: with what its calls kept, or with the reason why not.
pub type ReadyReport = oneshot::Sender<Result<Tree, String>>;
