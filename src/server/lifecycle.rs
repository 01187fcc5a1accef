//! The life of the server: ready, draining, and the end of the turns that are still in flight.

use crate::domain::{Fault, FaultKind};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Shared by all requests.
#[derive(Default)]
pub struct Lifecycle {
    /// The server is about to stop: it is not ready for more work.
    stopping: AtomicBool,
    /// New turns are rejected.
    draining: AtomicBool,
    cut: Arc<Cut>,
}

/// The end of the time that turns in flight have.
#[derive(Default)]
struct Cut {
    is_due: AtomicBool,
    due: Arc<Notify>,
}

/// Wakes a turn when the time of turns in flight is over. Costs an atomic load per wait.
pub struct CutWatch {
    cut: Arc<Cut>,
    notified: Option<Pin<Box<OwnedNotified>>>,
    /// The task that is registered.
    waker: Option<Waker>,
}

impl Lifecycle {
    /// Whether the server takes new work. A rejected reload changes nothing: the current generation serves on.
    pub fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Relaxed)
    }

    /// The first stop signal: not ready, but still serving, so that a load balancer can notice.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// New turns are rejected from now on; turns in flight go on.
    pub fn drain(&self) {
        self.stop();
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Ends the turns in flight with a failure.
    pub fn cut(&self) {
        self.drain();
        self.cut.is_due.store(true, Ordering::SeqCst);
        self.cut.due.notify_waiters();
    }

    pub fn check_accepts(&self) -> Result<(), Fault> {
        match self.draining.load(Ordering::Relaxed) {
            true => Err(Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, "the gateway is stopping") }),
            false => Ok(()),
        }
    }

    pub fn watch_cut(&self) -> CutWatch {
        CutWatch { cut: self.cut.clone(), notified: None, waker: None }
    }
}

impl CutWatch {
    /// The fault of a turn if its time is over. Registers the task, which is woken then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            let due = &self.cut.due;
            let notified = self.notified.get_or_insert_with(|| Box::pin(due.clone().notified_owned()));
            let _ = notified.as_mut().poll(cx);
            self.waker = Some(cx.waker().clone());
        }
        // After the registration: a cut before it would not wake the task.
        self.cut.is_due.load(Ordering::SeqCst).then(|| {
            let message = "the gateway was stopped before the response was complete";
            Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) }
        })
    }
}
