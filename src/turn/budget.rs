//! The memory budget of a turn: everything that a turn keeps is counted with what it costs, because backends are not
//! trusted. A part of one character costs a hundred times its text.

use super::{OnMoment, Turn};
use crate::domain::{Fault, FaultKind, Item, Part, Tree};
use std::mem::size_of;

/// Limits of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The memory of everything that a turn keeps.
    pub bytes: usize,
    pub choices: usize,
    pub items: usize,
    /// In one choice. A delta is compared with every call, so that many of them would cost quadratic time.
    pub calls: usize,
    /// The arguments of one call, in bytes.
    pub arguments: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 64 << 20, choices: 128, items: 10_000, calls: 1_000, arguments: 64 << 20 }
    }
}

/// An item: its id is generated, or the backend's, which is short.
pub(super) const ITEM_BYTES: usize = size_of::<Item>() + 128;
pub(super) const PART_BYTES: usize = size_of::<Part>() + 2 * Tree::ALLOCATION_BYTES;

impl Turn {
    /// The memory of what the turn keeps.
    pub fn kept_bytes(&self) -> usize {
        self.bytes
    }

    /// Counts memory that the turn keeps from now on. Returns false if a limit is exceeded; the turn has then failed.
    pub(super) fn charge(&mut self, bytes: usize, on_moment: &mut OnMoment) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let message = if self.bytes > self.limits.bytes {
            let limit = self.limits.bytes;
            format!("the backend's response needs more than {limit} bytes of memory, the limit of this gateway")
        } else if self.state.items.len() >= self.limits.items {
            format!("the backend's response has {} items, more than this gateway accepts", self.state.items.len())
        } else {
            return true;
        };
        self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
        false
    }

    /// False if the choice has as many calls as it may have; the turn has then failed.
    pub(super) fn may_add_call(&mut self, choice: usize, on_moment: &mut OnMoment) -> bool {
        let limit = self.limits.calls;
        if self.choices[choice].calls.len() < limit {
            return true;
        }
        let message = format!("the backend's response has more than {limit} tool calls, the limit of this gateway");
        self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
        false
    }

    pub fn set_argument_limit(&mut self, bytes: usize) {
        self.limits.arguments = bytes;
    }

    /// False if the arguments of a call are too large; the turn has then failed.
    pub(super) fn may_keep_arguments(&mut self, bytes: usize, on_moment: &mut OnMoment) -> bool {
        let limit = self.limits.arguments;
        if bytes <= limit {
            return true;
        }
        let message = format!("the arguments of a tool call have more than {limit} bytes, the limit of this gateway");
        self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
        false
    }

    /// Counts memory where the turn cannot fail. The next delta is charged, and fails it.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Memory that was charged and is free again.
    pub(super) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
