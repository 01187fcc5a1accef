//! The limit on concurrent turns.

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
    ) -> Option<ConcurrencySlot> {
        let slot = ConcurrencySlot { turns_in_flight: turns_in_flight.clone(), _in_flight: generation.begin_turn() };
        (turns_in_flight.fetch_add(1, Ordering::Relaxed) < limit).then_some(slot)
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        self.turns_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
