//! Builder for the entries of a map with distinct keys.

use std::collections::HashMap;

use crate::{Text, Tree};

/// Up to this size a linear search is faster than hashing. Above it, linear search would take quadratic time on texts
/// with many keys.
pub(crate) const LINEAR_LIMIT: usize = 16;

#[derive(Default)]
pub(crate) struct Members {
    entries: Vec<(Text, Tree)>,
    /// The index of each key, filled above `LINEAR_LIMIT` entries.
    positions: Option<HashMap<Text, usize>>,
    /// One bit for every key so far; see [`bit`].
    seen: u64,
}

/// One of 64 bits, by the length and the ends of the key. The keys of most maps have different bits, so that no other
/// key needs to be compared.
fn bit(key: &[u8]) -> u64 {
    let end = |byte: Option<&u8>| usize::from(byte.copied().unwrap_or_default());
    let hash = key.len().wrapping_mul(29) ^ end(key.first()).wrapping_mul(5) ^ end(key.last()).wrapping_mul(11);
    1 << (hash & 63)
}

/// What the first key reserves, as it would without: in one step, and without a check of what is there already.
pub(crate) const FIRST_CAPACITY: usize = 4;

impl Members {
    /// Of a duplicate key, the last value is kept at the position of the first.
    pub(crate) fn put(&mut self, key: Text, value: Tree) {
        let bit = bit(key.as_bytes());
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        match if is_new { None } else { self.position(&key) } {
            Some(position) => self.entries[position].1 = value,
            None => self.push(key, value),
        }
    }

    pub(crate) fn into_entries(self) -> Vec<(Text, Tree)> {
        self.entries
    }

    fn position(&self, key: &str) -> Option<usize> {
        match &self.positions {
            Some(positions) => positions.get(key).copied(),
            None => self.entries.iter().position(|(name, _)| &**name == key),
        }
    }

    fn push(&mut self, key: Text, value: Tree) {
        let position = self.entries.len();
        if position == 0 {
            self.entries = Vec::with_capacity(FIRST_CAPACITY);
        }
        if position == LINEAR_LIMIT {
            let known = self.entries.iter().enumerate();
            self.positions = Some(known.map(|(at, (name, _))| (name.clone(), at)).collect());
        }
        if let Some(positions) = &mut self.positions {
            positions.insert(key.clone(), position);
        }
        self.entries.push((key, value));
    }
}
