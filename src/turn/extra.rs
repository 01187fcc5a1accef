//! Vendor fields of a response, such as a system fingerprint: kept by name for the dialects that read them.

use super::{OnMoment, Turn};
use crate::domain::{Fault, FaultKind, Tree};

/// Different names in one response: of the response itself, and of each choice.
const MAX_NAMES: usize = 64;

impl Turn {
    /// A later value of the same name replaces the earlier one. It opens nothing: a field is no output.
    pub(super) fn extra(&mut self, choice: Option<usize>, name: &str, value: Tree, on_moment: &mut OnMoment) {
        if choice.is_some_and(|choice| choice >= self.limits.choices) {
            return;
        }
        let size = name.len() + value.heap_bytes() + 2 * Tree::ALLOCATION_BYTES;
        if !self.charge(size, on_moment) {
            return;
        }
        let fields = match choice {
            Some(choice) => self.state.choice_extra.entry(choice).or_insert_with(|| Tree::Map(Vec::new())),
            None => self.state.extra.get_or_insert_with(|| Tree::Map(Vec::new())),
        };
        let Tree::Map(fields) = fields else { return };
        match fields.iter().position(|(known, _)| **known == *name) {
            Some(known) => fields[known].1 = value,
            None if fields.len() < MAX_NAMES => fields.push((name.into(), value)),
            None => {
                let message = format!("the backend's response has more than {MAX_NAMES} vendor fields");
                self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
            }
        }
    }
}
