//! The text that a choice has received, with its blocks: snapshots of a backend are compared with it.

use super::choice_text::Target;
use crate::domain::Tree;
use std::mem::size_of;

/// By item and part of the backend, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct ReceivedText {
    runs: Vec<(Target, String)>,
    pub bytes: usize,
}

impl ReceivedText {
    pub fn push(&mut self, target: &Target, text: &str) {
        self.bytes += text.len();
        match self.runs.last_mut() {
            Some((last, so_far)) if last == target => so_far.push_str(text),
            _ => {
                self.bytes += size_of::<(Target, String)>() + 2 * Tree::ALLOCATION_BYTES;
                self.bytes += target.item.as_ref().map_or(0, String::len);
                self.runs.push((target.clone(), text.to_owned()));
            }
        }
    }

    /// All text of this item and part; without an item or part, of all of them.
    pub fn of(&self, target: &Target) -> String {
        let matches = |run: &&(Target, String)| {
            target.item.as_ref().is_none_or(|item| run.0.item.as_ref() == Some(item))
                && target.part.is_none_or(|part| run.0.part == Some(part))
        };
        self.runs.iter().filter(matches).map(|(_, text)| text.as_str()).collect()
    }
}
