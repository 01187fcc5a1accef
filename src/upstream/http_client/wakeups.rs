//! Wakes the task of a turn for its connection.
//!
//! hyper's connection and body wake each other through the waker of the connection. Both are polled by the same task, one
//! after the other, so a wake while they are polled means only that they have to be polled once more: the task is not
//! scheduled for it.

use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Wake, Waker};

#[derive(Debug, Default)]
pub struct Wakeups {
    state: AtomicU8,
    task: AtomicWaker,
}

const WAITING: u8 = 0;
const POLLING: u8 = 1;
/// A wake arrived since the poll began.
const WOKEN: u8 = 2;

impl Wakeups {
    /// The task that is woken from now on.
    pub fn set_task(&self, task: &Waker) {
        self.task.register(task);
    }

    pub fn begin_poll(&self) {
        self.state.store(POLLING, Ordering::SeqCst);
    }

    /// Whether nothing was woken since the poll began, so that the task can wait.
    pub fn end_poll(&self) -> bool {
        self.state.swap(WAITING, Ordering::SeqCst) == POLLING
    }

    /// Schedules the task.
    pub fn wake_task(&self) {
        self.task.wake();
    }
}

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let while_polling = self.state.compare_exchange(POLLING, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if while_polling == Err(WAITING) {
            self.task.wake();
        }
    }
}
