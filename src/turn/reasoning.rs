//! Reasoning items, which contain summaries, raw reasoning text, or both.

use super::budget::PART_BYTES;
use super::{OnMoment, Turn, deltas};
use crate::domain::policy::ReasoningPolicy;
use crate::domain::{Delta, ItemKind, ItemState, Moment, MomentKind, Part, PartKind, ReasoningKind};

impl Turn {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn reasoning(
        &mut self,
        choice: usize,
        key: Option<String>,
        kind: ReasoningKind,
        part: Option<usize>,
        delta: Option<Delta>,
        encrypted: Option<String>,
        on_moment: &mut OnMoment,
    ) {
        if self.is_late(choice) {
            return;
        }
        if self.policies.reasoning == ReasoningPolicy::Drop {
            if delta.is_some() || encrypted.is_some() {
                self.drop_reasoning(choice, key, on_moment);
            }
            return;
        }
        let joined = match (delta, self.choices.get_mut(choice)) {
            (Some(delta), Some(choice_state)) => {
                Some(deltas::join_surrogates(&mut choice_state.reasoning_surrogate, delta))
            }
            (delta, _) => delta,
        };
        let text = match joined {
            Some(delta) => deltas::new_suffix(delta, || self.reasoning_so_far(choice, key.as_deref(), kind, part)),
            None => String::new(),
        };
        let encrypted = encrypted.filter(|e| !e.is_empty());
        if text.is_empty() && encrypted.is_none() {
            return;
        }
        let size = text.len() + encrypted.as_ref().map_or(0, String::len);
        if !self.charge(size, on_moment) || !self.ensure_choice(choice, on_moment) {
            return;
        }
        let item = self.reasoning_for(choice, key, on_moment);
        if encrypted.is_some() {
            self.state.items[item].encrypted = encrypted;
        }
        if text.is_empty() {
            return;
        }
        match kind {
            ReasoningKind::Summary => self.append_summary(choice, item, part, text, on_moment),
            ReasoningKind::Raw => self.append_thought(choice, item, text, on_moment),
        }
    }

    /// Dropped reasoning opens the turn like any other event, and is no item. An id is still taken for it, so that the
    /// ids of the other items do not depend on this policy.
    fn drop_reasoning(&mut self, choice: usize, key: Option<String>, on_moment: &mut OnMoment) {
        if !self.ensure_choice(choice, on_moment) {
            return;
        }
        let key = key.unwrap_or_default();
        let choice_state = &mut self.choices[choice];
        if choice_state.dropped_reasoning.as_ref().is_none_or(|dropped| !key.is_empty() && *dropped != key) {
            choice_state.dropped_reasoning = Some(key);
            self.ids.next();
        }
    }

    fn reasoning_so_far(&self, choice: usize, key: Option<&str>, kind: ReasoningKind, part: Option<usize>) -> String {
        let Some(item) = self.last_item(choice, key, ItemKind::Reasoning) else { return String::new() };
        match (kind, part) {
            (ReasoningKind::Summary, Some(part)) => {
                item.summaries.get(part).map(|p| p.text.clone()).unwrap_or_default()
            }
            (ReasoningKind::Summary, None) => item.summaries.iter().map(|p| p.text.as_str()).collect(),
            (ReasoningKind::Raw, _) => item.parts.iter().map(|p| p.text.as_str()).collect(),
        }
    }

    fn reasoning_for(&mut self, choice: usize, key: Option<String>, on_moment: &mut OnMoment) -> usize {
        let choice_state = &self.choices[choice];
        if let Some(item) = choice_state.reasoning {
            let named = choice_state.keys.iter().rev().find(|(_, i)| *i == item).map(|(k, _)| k.as_str());
            if key.is_none() || named.is_none() || key.as_deref() == named {
                return item;
            }
            self.close_reasoning(choice, ItemState::Done, on_moment);
        }
        self.close_message_by_policy(choice, on_moment);
        let item = self.add_item(choice, ItemKind::Reasoning, key.as_deref());
        let choice_state = &mut self.choices[choice];
        choice_state.reasoning = Some(item);
        choice_state.keys.extend(key.map(|k| (k, item)));
        on_moment(&self.state, &Moment::item(MomentKind::ReasoningOpen, choice, item));
        item
    }

    fn append_summary(
        &mut self,
        choice: usize,
        item: usize,
        part: Option<usize>,
        text: String,
        on_moment: &mut OnMoment,
    ) {
        let count = self.state.items[item].summaries.len();
        let open = self.state.items[item].summaries.last().is_some_and(|p| p.open);
        let next = part.is_some_and(|p| p >= count);
        if !open || next {
            self.close_part(choice, item, MomentKind::SummaryClose, on_moment);
            self.close_part(choice, item, MomentKind::ThoughtClose, on_moment);
            self.count(PART_BYTES);
            let block = self.next_block(item);
            self.state.items[item].summaries.push(Part { block, ..Part::new(count, PartKind::Summary) });
            on_moment(&self.state, &Moment::part(MomentKind::SummaryOpen, choice, item, count, String::new()));
        }
        let at = self.state.items[item].summaries.len() - 1;
        self.state.items[item].summaries[at].text.push_str(&text);
        on_moment(&self.state, &Moment::part(MomentKind::SummaryDelta, choice, item, at, text));
    }

    fn append_thought(&mut self, choice: usize, item: usize, text: String, on_moment: &mut OnMoment) {
        self.close_part(choice, item, MomentKind::SummaryClose, on_moment);
        if !self.state.items[item].parts.last().is_some_and(|p| p.open) {
            let part = self.state.items[item].parts.len();
            self.count(PART_BYTES);
            let block = self.next_block(item);
            self.state.items[item].parts.push(Part { block, ..Part::new(part, PartKind::Thought) });
            on_moment(&self.state, &Moment::part(MomentKind::ThoughtOpen, choice, item, part, String::new()));
        }
        let at = self.state.items[item].parts.len() - 1;
        self.state.items[item].parts[at].text.push_str(&text);
        on_moment(&self.state, &Moment::part(MomentKind::ThoughtDelta, choice, item, at, text));
    }

    pub(super) fn close_reasoning(&mut self, choice: usize, state: ItemState, on_moment: &mut OnMoment) {
        let Some(item) = self.choices[choice].reasoning.take() else { return };
        self.close_part(choice, item, MomentKind::SummaryClose, on_moment);
        self.close_part(choice, item, MomentKind::ThoughtClose, on_moment);
        self.state.items[item].state = state;
        if self.state.items[item].block.is_none() {
            self.next_block(item);
        }
        on_moment(&self.state, &Moment::item(MomentKind::ReasoningClose, choice, item));
    }
}
