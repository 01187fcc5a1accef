//! The work that a load may take: a number of steps, and a sign to stop for whoever measures the time.
//!
//! Limits of single files do not bound what they cost together: an order can be proved only by exploring its states,
//! and every variant of a dialect is compiled, rendered and replayed. So everything that is done for a set spends steps
//! of one budget. Steps are counted, not timed: a set that is accepted on one machine is accepted on all.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Far above what any real set needs: the embedded set spends about a fortieth.
const MAX_STEPS: u64 = 20_000_000;

#[derive(Debug)]
pub struct WorkBudget {
    total: u64,
    spent: AtomicU64,
    timed_out: AtomicBool,
    activity: Mutex<Activity>,
}

/// What the load is doing, for the message when it has to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The path inside the set; empty if it concerns the set as a whole.
    pub file: String,
    /// Completes the sentence "it was …": `compiling the dialect`.
    pub doing: String,
}

/// Why there is nothing left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    Steps(u64),
    Time,
}

impl Default for WorkBudget {
    fn default() -> Self {
        WorkBudget::new(MAX_STEPS)
    }
}

impl WorkBudget {
    pub fn new(steps: u64) -> WorkBudget {
        WorkBudget {
            total: steps,
            spent: AtomicU64::new(0),
            timed_out: AtomicBool::new(false),
            activity: Mutex::new(Activity { doing: "reading its files".to_owned(), ..Activity::default() }),
        }
    }

    /// Counts steps. False: stop, what is found from now on does not count.
    pub fn spend(&self, steps: u64) -> bool {
        self.spent.fetch_add(steps, Ordering::Relaxed);
        self.exhausted().is_none()
    }

    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// How many steps are left.
    pub fn left(&self) -> u64 {
        self.total.saturating_sub(self.spent())
    }

    /// Ends the load at its next step. Called from another thread, because the core has no clock.
    pub fn time_out(&self) {
        self.timed_out.store(true, Ordering::Relaxed);
    }

    pub fn exhausted(&self) -> Option<Exhausted> {
        if self.spent() > self.total {
            Some(Exhausted::Steps(self.total))
        } else if self.timed_out.load(Ordering::Relaxed) {
            Some(Exhausted::Time)
        } else {
            None
        }
    }

    /// Records what happens next. Once the budget is exhausted, the last activity remains.
    pub fn begin(&self, file: &str, doing: impl Into<String>) {
        if self.exhausted().is_none() {
            *self.lock() = Activity { file: file.to_owned(), doing: doing.into() };
        }
    }

    pub fn activity(&self) -> Activity {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
