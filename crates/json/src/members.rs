//! Collecting the entries of a map, each key once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Tree;

/// Up to here comparing a key with every other is faster than hashing it. Beyond, it would let a
/// text with many keys buy quadratic time.
const FEW: usize = 16;

#[derive(Default)]
pub(crate) struct Members {
    entries: Vec<(Arc<str>, Tree)>,
    /// Where each key stands, once there are more than a few.
    places: HashMap<Arc<str>, usize>,
}

impl Members {
    /// The last value of a key wins, at the place of its first.
    pub(crate) fn put(&mut self, key: Arc<str>, value: Tree) {
        match self.place(&key) {
            Some(place) => self.entries[place].1 = value,
            None => self.push(key, value),
        }
    }

    pub(crate) fn into_entries(self) -> Vec<(Arc<str>, Tree)> {
        self.entries
    }

    fn place(&self, key: &str) -> Option<usize> {
        if self.entries.len() > FEW {
            self.places.get(key).copied()
        } else {
            self.entries.iter().position(|(name, _)| &**name == key)
        }
    }

    fn push(&mut self, key: Arc<str>, value: Tree) {
        let place = self.entries.len();
        if place == FEW {
            let known = self.entries.iter().enumerate();
            self.places = known.map(|(at, (name, _))| (name.clone(), at)).collect();
        }
        if place >= FEW {
            self.places.insert(key.clone(), place);
        }
        self.entries.push((key, value));
    }
}
