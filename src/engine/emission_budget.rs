//! How much rules may emit for one document, and whether anybody still waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The default is unlimited: the events of a backend have a size limit, and each is small.
#[derive(Clone, Debug)]
pub struct EmissionBudget {
    left: usize,
    cancelled: Option<Cancelled>,
    /// Where the budget ended: the path of the element that was one too many.
    exceeded_at: Option<String>,
}

/// Set once nobody waits for the result any more.
#[derive(Clone, Debug, Default)]
pub struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for EmissionBudget {
    fn default() -> EmissionBudget {
        EmissionBudget { left: usize::MAX, cancelled: None, exceeded_at: None }
    }
}

impl EmissionBudget {
    pub fn new(emissions: usize, cancelled: Option<Cancelled>) -> EmissionBudget {
        EmissionBudget { left: emissions, cancelled, exceeded_at: None }
    }

    /// False if nothing is left.
    pub fn take_one(&mut self, path: impl FnOnce() -> String) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if self.exceeded_at.is_none() => self.exceeded_at = Some(path()),
            None => {}
        }
        self.exceeded_at.is_none()
    }

    /// Whether the rest of the document need not be read.
    pub fn is_stopped(&self) -> bool {
        self.exceeded_at.is_some() || self.is_cancelled()
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(Cancelled::is_set)
    }

    pub fn exceeded_at(&self) -> Option<&str> {
        self.exceeded_at.as_deref()
    }
}
