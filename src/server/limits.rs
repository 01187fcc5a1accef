//! The limit on concurrent turns.

use crate::domain::{Fault, FaultKind};
use crate::reload::{Generation, InFlight};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of the turns that may be in flight at once. Dropping it releases the slot.
pub struct ConcurrencySlot {
    turns_in_flight: Arc<AtomicUsize>,
    _in_flight: InFlight,
}

impl ConcurrencySlot {
    pub fn acquire(
        turns_in_flight: &Arc<AtomicUsize>,
        limit: usize,
        generation: &Arc<Generation>,
    ) -> Result<ConcurrencySlot, Fault> {
        let slot = ConcurrencySlot { turns_in_flight: turns_in_flight.clone(), _in_flight: generation.begin_turn() };
        if turns_in_flight.fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(slot);
        }
        let requests = if limit == 1 { "request" } else { "requests" };
        let message = format!("concurrency limit reached ({limit} {requests} in flight)");
        Err(Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) })
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        self.turns_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
