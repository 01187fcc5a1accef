//! The standard input of a child process: calls with their ids, and what is expected of their answers.

use super::turn_entry::Pending;
use crate::domain::Tree;
use crate::engine::conversation::OutgoingCall;
use crate::mapping::config::backend::BackendPlan;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub struct CallWriter {
    plan: Arc<BackendPlan>,
    output: UnboundedSender<Vec<u8>>,
    input: Arc<InputQueue>,
    /// The calls without an answer, by id.
    pending: HashMap<u64, Pending>,
    /// Since when there are calls without an answer.
    pending_since: Instant,
    next_id: u64,
}

/// What waits for the process to read it.
struct InputQueue {
    bytes: AtomicUsize,
    /// The process has closed its input.
    is_closed: AtomicBool,
    /// When something was last read, or the queue was empty.
    last_read: Mutex<Instant>,
}

impl InputQueue {
    fn new() -> InputQueue {
        let last_read = Mutex::new(Instant::now());
        InputQueue { bytes: AtomicUsize::new(0), is_closed: AtomicBool::new(false), last_read }
    }

    fn push(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.set_read();
        }
    }

    fn pop(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.set_read();
    }

    fn set_read(&self) {
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn unread_for(&self) -> Duration {
        match self.bytes.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            _ => self.last_read.lock().unwrap_or_else(PoisonError::into_inner).elapsed(),
        }
    }
}

impl CallWriter {
    /// Call inside the runtime.
    pub fn start(stdin: ChildStdin, plan: Arc<BackendPlan>) -> CallWriter {
        let (output, lines) = unbounded_channel();
        let input = Arc::new(InputQueue::new());
        tokio::spawn(write_lines(stdin, lines, input.clone()));
        CallWriter { plan, output, input, pending: HashMap::new(), pending_since: Instant::now(), next_id: 1 }
    }

    /// The bytes that the process has not read yet.
    pub fn queued_bytes(&self) -> usize {
        self.input.bytes.load(Ordering::Relaxed)
    }

    pub fn is_closed(&self) -> bool {
        self.input.is_closed.load(Ordering::Relaxed)
    }

    /// For how long the process has read nothing although something waits for it.
    pub fn unread_for(&self) -> Duration {
        self.input.unread_for()
    }

    /// For how long the process has written nothing although calls wait for their answers.
    pub fn unanswered_for(&self, last_output: Instant) -> Duration {
        match self.pending.is_empty() {
            true => Duration::ZERO,
            false => self.pending_since.max(last_output).elapsed(),
        }
    }

    /// What the answer with this id belongs to.
    pub fn take(&mut self, id: &Tree) -> Option<Pending> {
        self.pending.remove(&id.as_u64()?)
    }

    /// Forgets calls with answers that nobody expects any more.
    pub fn retain(&mut self, is_expected: impl Fn(&Pending) -> bool) {
        self.pending.retain(|_, pending| is_expected(pending));
    }

    /// Sends a call, and returns its id; `None` for a notification.
    pub fn call(&mut self, call: OutgoingCall, pending: Pending) -> Option<u64> {
        let id = call.is_answered.then_some(self.next_id);
        if let Some(id) = id {
            self.next_id += 1;
            if self.pending.is_empty() {
                self.pending_since = Instant::now();
            }
            self.pending.insert(id, pending);
        }
        let id_member = id.map(|id| ("id", Tree::from(id.cast_signed())));
        let params = call.params.map(|params| ("params", params));
        self.send(id_member.into_iter().chain([("method", Tree::from(call.method))]).chain(params));
        id
    }

    pub fn send(&self, members: impl IntoIterator<Item = (&'static str, Tree)>) {
        let fixed = self.plan.conversation.as_ref().map_or(&[] as &[_], |c| c.members.as_slice());
        let fixed = fixed.iter().map(|(name, value)| (name.clone(), value.clone()));
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
        let mut line = Tree::map(fixed.chain(members)).to_json().into_bytes();
        line.push(b'\n');
        self.input.push(line.len());
        // It fails if the process has closed its input; the end of its output follows.
        let _ = self.output.send(line);
    }
}

/// A process that does not read its input must not stop the worker, so the input has a task of its own.
async fn write_lines(mut stdin: ChildStdin, mut lines: UnboundedReceiver<Vec<u8>>, input: Arc<InputQueue>) {
    while let Some(line) = lines.recv().await {
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            let Ok(written @ 1..) = stdin.write(rest).await else {
                // Most often it has ended, which its output shows first.
                input.is_closed.store(true, Ordering::Relaxed);
                return;
            };
            rest = rest.get(written..).unwrap_or_default();
            input.pop(written);
        }
    }
}
