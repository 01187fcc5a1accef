//! Builder for the entries of a map with distinct keys.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Tree;

/// Up to this size a linear search is faster than hashing. Above it, linear search would take quadratic time on texts
/// with many keys.
const LINEAR_LIMIT: usize = 16;

#[derive(Default)]
pub(crate) struct Members {
    entries: Vec<(Arc<str>, Tree)>,
    /// The index of each key, filled above `LINEAR_LIMIT` entries.
    positions: HashMap<Arc<str>, usize>,
}

impl Members {
    /// Of a duplicate key, the last value is kept at the position of the first.
    pub(crate) fn put(&mut self, key: Arc<str>, value: Tree) {
        match self.position(&key) {
            Some(position) => self.entries[position].1 = value,
            None => self.push(key, value),
        }
    }

    pub(crate) fn into_entries(self) -> Vec<(Arc<str>, Tree)> {
        self.entries
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() > LINEAR_LIMIT {
            self.positions.get(key).copied()
        } else {
            self.entries.iter().position(|(name, _)| &**name == key)
        }
    }

    fn push(&mut self, key: Arc<str>, value: Tree) {
        let position = self.entries.len();
        if position == LINEAR_LIMIT {
            let known = self.entries.iter().enumerate();
            self.positions = known.map(|(at, (name, _))| (name.clone(), at)).collect();
        }
        if position >= LINEAR_LIMIT {
            self.positions.insert(key.clone(), position);
        }
        self.entries.push((key, value));
    }
}
