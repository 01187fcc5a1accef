//! The memory of what all turns in flight keep of upstream responses.

use crate::domain::{Fault, FaultKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The sum over all turns.
#[derive(Debug, Default)]
pub struct BufferedBytes(AtomicUsize);

/// The part of one turn. Dropping it gives the memory back.
#[derive(Debug)]
pub struct BufferedShare {
    all: Arc<BufferedBytes>,
    counted: usize,
}

/// A turn is counted in steps of this size, so that most events change nothing that turns share.
const STEP: usize = 16 * 1024;

impl BufferedBytes {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Rejects a request while the turns in flight need more than the limit.
    pub fn check(&self, limit: usize) -> Result<(), Fault> {
        match self.get() <= limit {
            true => Ok(()),
            false => {
                let message = "the gateway is out of memory for more responses";
                Err(Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) })
            }
        }
    }
}

impl BufferedShare {
    pub fn of(all: &Arc<BufferedBytes>) -> BufferedShare {
        BufferedShare { all: all.clone(), counted: 0 }
    }

    /// Sets what the turn keeps now.
    pub fn set(&mut self, bytes: usize) {
        let steps = bytes / STEP * STEP;
        if steps > self.counted {
            self.all.0.fetch_add(steps - self.counted, Ordering::Relaxed);
        } else if steps < self.counted {
            self.all.0.fetch_sub(self.counted - steps, Ordering::Relaxed);
        }
        self.counted = steps;
    }
}

impl Drop for BufferedShare {
    fn drop(&mut self) {
        self.set(0);
    }
}
