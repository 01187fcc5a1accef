//! Message items: text, refusals, annotations and log-probabilities.

use super::budget::PART_BYTES;
use super::choice_state::PendingLogprobs;
use super::{OnMoment, Turn, deltas};
use crate::domain::policy::EmptyMessageItem;
use crate::domain::{
    Annotation, Delta, ItemKind, ItemState, Logprobs, Moment, MomentKind, Part, PartAnnotation, PartKind, TokenLogprob,
};
use std::sync::Arc;

/// The item and part that a text delta belongs to, in the backend's numbering.
#[derive(Debug)]
pub(super) struct TextTarget {
    pub item: Option<String>,
    pub part: Option<usize>,
    pub kind: PartKind,
    /// A call that is written as text.
    pub is_call_block: bool,
}

impl TextTarget {
    pub fn of(kind: PartKind) -> TextTarget {
        TextTarget { item: None, part: None, kind, is_call_block: false }
    }
}

impl Turn {
    pub(super) fn text(&mut self, choice: usize, mut target: TextTarget, delta: Delta, on_moment: &mut OnMoment) {
        if self.is_late(choice) {
            return;
        }
        // The first delta of a turn may end with half of a surrogate pair, which is stored in the choice.
        if matches!(delta, Delta::AppendSurrogates(_)) && !self.ensure_choice(choice, on_moment) {
            return;
        }
        let delta = match self.choices.get_mut(choice) {
            Some(choice_state) => deltas::join_surrogates(&mut choice_state.text_surrogate, delta),
            None => delta,
        };
        let text = deltas::new_suffix(delta, || self.text_so_far(choice, &target));
        if text.is_empty() || !self.charge(text.len(), on_moment) || !self.ensure_choice(choice, on_moment) {
            return;
        }
        let item = self.message_for(choice, target.item.take(), on_moment);
        let part = self.part_for(choice, item, &target, on_moment);
        self.state.items[item].parts[part].text.push_str(&text);
        let moment = if target.kind == PartKind::Refusal { MomentKind::RefusalDelta } else { MomentKind::TextDelta };
        let mut moment = Moment::part(moment, choice, item, part, text);
        moment.logprobs = self.take_logprobs(choice, item, part);
        on_moment(&self.state, &moment);
    }

    /// The log-probabilities of this text. The part keeps them only if the dialect reads them later.
    fn take_logprobs(&mut self, choice: usize, item: usize, part: usize) -> Option<Arc<[TokenLogprob]>> {
        let of_choice = std::mem::take(&mut self.choices[choice].logprobs);
        let PendingLogprobs { tokens, bytes } = match of_choice.tokens {
            Some(_) => of_choice,
            None => std::mem::take(&mut self.first_logprobs),
        };
        match &tokens {
            Some(tokens) if self.keep_logprobs => self.state.items[item].parts[part].logprobs.push(tokens.clone()),
            Some(_) => self.release(bytes),
            None => {}
        }
        tokens
    }

    /// The text so far of the target item (by default the last message), for comparison with a snapshot.
    fn text_so_far(&self, choice: usize, target: &TextTarget) -> String {
        let Some(item) = self.last_item(choice, target.item.as_deref(), ItemKind::Message) else {
            return String::new();
        };
        let matches = |p: &&Part| {
            p.kind == target.kind && !p.is_call_block && target.part.is_none_or(|n| p.backend_index == Some(n))
        };
        item.parts.iter().filter(matches).map(|p| p.text.as_str()).collect()
    }

    fn message_for(&mut self, choice: usize, key: Option<String>, on_moment: &mut OnMoment) -> usize {
        let choice_state = &mut self.choices[choice];
        if let Some(item) = choice_state.message {
            let named = choice_state.keys.iter().rev().find(|(_, i)| *i == item).map(|(k, _)| k.as_str());
            match (&key, named) {
                (None, _) => return item,
                (Some(key), Some(named)) if key == named => return item,
                (Some(key), None) => {
                    choice_state.keys.push((key.clone(), item));
                    return item;
                }
                (Some(_), Some(_)) if !self.policies.closes_when_complete() => return item,
                (Some(_), Some(_)) => {}
            }
        }
        self.open_message(choice, key, on_moment)
    }

    /// Policy `empty_message_item: always`: a choice without text still gets a message item.
    pub(super) fn ensure_message(&mut self, choice: usize, on_moment: &mut OnMoment) {
        let has = self.state.items_of(choice).any(|i| i.kind == ItemKind::Message);
        if !has && self.policies.empty_message_item == EmptyMessageItem::Always {
            self.open_message(choice, None, on_moment);
        }
    }

    /// Closes the previous message and the reasoning first.
    pub(super) fn open_message(&mut self, choice: usize, key: Option<String>, on_moment: &mut OnMoment) -> usize {
        self.close_message(choice, ItemState::Done, on_moment);
        self.close_reasoning(choice, ItemState::Done, on_moment);
        let item = self.add_item(choice, ItemKind::Message, key.as_deref());
        let choice_state = &mut self.choices[choice];
        choice_state.message = Some(item);
        choice_state.keys.extend(key.map(|k| (k, item)));
        on_moment(&self.state, &Moment::item(MomentKind::MessageOpen, choice, item));
        item
    }

    /// The open part of this kind. A part of another kind is closed first.
    fn part_for(&mut self, choice: usize, item: usize, target: &TextTarget, on_moment: &mut OnMoment) -> usize {
        let &TextTarget { part: backend_index, kind, is_call_block, .. } = target;
        let parts = &self.state.items[item].parts;
        if let Some(last) = parts.last()
            && last.open
            && last.kind == kind
            && last.is_call_block == is_call_block
            && (backend_index.is_none() || last.backend_index == backend_index)
        {
            return parts.len() - 1;
        }
        self.close_part(choice, item, MomentKind::PartClose, on_moment);
        let part = self.state.items[item].parts.len();
        self.count(PART_BYTES);
        let block = self.next_block(item);
        self.state.items[item].parts.push(Part { backend_index, block, is_call_block, ..Part::new(part, kind) });
        on_moment(&self.state, &Moment::part(MomentKind::PartOpen, choice, item, part, String::new()));
        part
    }

    pub(super) fn close_message(&mut self, choice: usize, state: ItemState, on_moment: &mut OnMoment) {
        let Some(item) = self.choices[choice].message.take() else { return };
        self.close_part(choice, item, MomentKind::PartClose, on_moment);
        self.state.items[item].state = state;
        on_moment(&self.state, &Moment::item(MomentKind::MessageClose, choice, item));
    }

    /// Called when another kind of item opens. Closes the message, unless the policy `close_items` defers that.
    pub(super) fn close_message_by_policy(&mut self, choice: usize, on_moment: &mut OnMoment) {
        if self.policies.closes_when_complete() {
            self.close_message(choice, ItemState::Done, on_moment);
        }
    }

    pub(super) fn annotation(&mut self, choice: usize, annotation: Annotation, on_moment: &mut OnMoment) {
        let size = size_of::<PartAnnotation>() + annotation.heap_bytes();
        if self.is_late(choice) || !self.charge(size, on_moment) || !self.ensure_choice(choice, on_moment) {
            return;
        }
        let item = self.message_for(choice, None, on_moment);
        let is_call_block = self.state.items[item].parts.last().is_some_and(|part| part.is_call_block);
        let target = TextTarget { is_call_block, ..TextTarget::of(PartKind::Text) };
        let part = self.part_for(choice, item, &target, on_moment);
        // All annotations of a part have the same shift: earlier parts are complete.
        let earlier = self.state.items[item].parts[part].annotations.last().map(|last| last.shift);
        let shift = earlier.unwrap_or_else(|| self.chars_before(choice, item, part));
        self.state.items[item].parts[part].annotations.push(PartAnnotation { annotation, shift });
        on_moment(&self.state, &Moment::part(MomentKind::Annotation, choice, item, part, String::new()));
    }

    /// Characters of the choice before this part.
    fn chars_before(&self, choice: usize, item: usize, part: usize) -> usize {
        let earlier = self.state.items.iter().take(item).filter(|i| i.choice == choice).flat_map(|i| &i.parts);
        let same = self.state.items[item].parts.iter().take(part);
        earlier.chain(same).filter(|p| p.kind == PartKind::Text).map(|p| p.text.chars().count()).sum()
    }

    /// Log-probabilities wait for the text that follows, and replace those that still wait.
    pub(super) fn logprobs(&mut self, choice: usize, logprobs: Logprobs, on_moment: &mut OnMoment) {
        if logprobs.is_empty() || self.choices.get(choice).is_some_and(|c| c.finished) {
            return;
        }
        let bytes = logprobs.heap_bytes();
        let pending = match self.choices.get_mut(choice) {
            Some(choice_state) => &mut choice_state.logprobs,
            None => &mut self.first_logprobs,
        };
        let replaced = std::mem::replace(pending, PendingLogprobs { tokens: Some(logprobs.tokens), bytes });
        self.release(replaced.bytes);
        self.charge(bytes, on_moment);
    }
}
