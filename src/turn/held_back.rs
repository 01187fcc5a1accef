//! Events that wait until the open call of their choice closes (policy `items_overlap: serial`), or are dropped because
//! they follow a call (policy `tail_after_tools`).

use super::{OnMoment, Turn};
use crate::domain::Event;

impl Turn {
    /// Policy `items_overlap: serial`: text and reasoning wait until the open call of their choice is closed.
    pub(super) fn hold_back(&mut self, event: Event, on_moment: &mut OnMoment) -> Option<Event> {
        let choice = match &event {
            Event::Text { choice, .. }
            | Event::Refusal { choice, .. }
            | Event::Reasoning { choice, .. }
            | Event::Annotation { choice, .. }
            | Event::Logprobs { choice, .. } => *choice,
            Event::Tool { .. } | Event::Batch { .. } | Event::AwaitResults { .. } | Event::Close { .. } => {
                return Some(event);
            }
            Event::Start { .. } | Event::Usage { .. } | Event::Extra { .. } | Event::Finish { .. } => {
                return Some(event);
            }
            Event::MetadataKeys { .. } | Event::FinishHint { .. } | Event::Fault { .. } | Event::End => {
                return Some(event);
            }
        };
        let is_text = !matches!(event, Event::Reasoning { .. });
        if is_text && self.is_dropped_tail(choice) {
            return None;
        }
        if !self.must_wait_for_call(choice, on_moment) {
            // Earlier events come first.
            self.release_held_back(choice, on_moment);
            return (!self.ended).then_some(event);
        }
        let size = size_of::<Event>() + event.heap_bytes();
        if self.charge(size, on_moment) {
            self.choices[choice].held_back.push(event);
        }
        None
    }

    /// Processes the events that were held back, unless a call is open.
    pub(super) fn release_held_back(&mut self, choice: usize, on_moment: &mut OnMoment) {
        // The first check is for the hot path: without the policy nothing is ever held back.
        if self.choices.get(choice).is_none_or(|c| c.held_back.is_empty())
            || self.ended
            || self.open_call_index(choice).is_some()
        {
            return;
        }
        let held_back = std::mem::take(&mut self.choices[choice].held_back);
        for event in held_back {
            // It is charged again for what the turn keeps of it.
            self.release(size_of::<Event>() + event.heap_bytes());
            self.advance(event, on_moment);
        }
    }
}
