//! Reasoning: an item with summaries, with raw thoughts, or with both.

use super::{Tell, Turn, deltas};
use crate::domain::{ItemKind, ItemState, Moment, MomentKind, Part, PartKind, Piece, ReasoningKind};

impl Turn {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn reasoning(
        &mut self,
        choice: usize,
        key: Option<String>,
        kind: ReasoningKind,
        part: Option<usize>,
        piece: Option<Piece>,
        encrypted: Option<String>,
        tell: &mut Tell,
    ) {
        if self.is_late(choice) {
            return;
        }
        let mended = match (piece, self.lanes.get_mut(choice)) {
            (Some(piece), Some(lane)) => Some(deltas::mend(&mut lane.thought_half, piece)),
            (piece, _) => piece,
        };
        let text = match mended {
            Some(piece) => deltas::news(piece, || self.thought(choice, key.as_deref(), kind, part)),
            None => String::new(),
        };
        let encrypted = encrypted.filter(|e| !e.is_empty());
        if text.is_empty() && encrypted.is_none() {
            return;
        }
        let size = text.len() + encrypted.as_ref().map_or(0, String::len);
        if !self.keep(size, tell) || !self.reach(choice, tell) {
            return;
        }
        let item = self.reasoning_for(choice, key, tell);
        if encrypted.is_some() {
            self.state.items[item].encrypted = encrypted;
        }
        if text.is_empty() {
            return;
        }
        match kind {
            ReasoningKind::Summary => self.summary(choice, item, part, text, tell),
            ReasoningKind::Raw => self.think(choice, item, text, tell),
        }
    }

    fn thought(&self, choice: usize, key: Option<&str>, kind: ReasoningKind, part: Option<usize>) -> String {
        let lane = self.lanes.get(choice);
        let item = match key {
            Some(key) => lane.and_then(|l| l.item_of(key)),
            None => self.state.items.iter().rposition(|i| i.choice == choice && i.kind == ItemKind::Reasoning),
        };
        let Some(item) = item.and_then(|i| self.state.items.get(i)) else { return String::new() };
        match (kind, part) {
            (ReasoningKind::Summary, Some(part)) => {
                item.summaries.get(part).map(|p| p.text.clone()).unwrap_or_default()
            }
            (ReasoningKind::Summary, None) => item.summaries.iter().map(|p| p.text.as_str()).collect(),
            (ReasoningKind::Raw, _) => item.parts.iter().map(|p| p.text.as_str()).collect(),
        }
    }

    fn reasoning_for(&mut self, choice: usize, key: Option<String>, tell: &mut Tell) -> usize {
        let lane = &self.lanes[choice];
        if let Some(item) = lane.reasoning {
            let named = lane.keys.iter().rev().find(|(_, i)| *i == item).map(|(k, _)| k.as_str());
            if key.is_none() || named.is_none() || key.as_deref() == named {
                return item;
            }
            self.close_reasoning(choice, ItemState::Done, tell);
        }
        self.leave_message(choice, tell);
        let item = self.add_item(choice, ItemKind::Reasoning, key.as_deref());
        let lane = &mut self.lanes[choice];
        lane.reasoning = Some(item);
        lane.keys.extend(key.map(|k| (k, item)));
        tell(&self.state, &Moment::item(MomentKind::ReasoningOpen, choice, item));
        item
    }

    fn summary(&mut self, choice: usize, item: usize, part: Option<usize>, text: String, tell: &mut Tell) {
        let count = self.state.items[item].summaries.len();
        let open = self.state.items[item].summaries.last().is_some_and(|p| p.open);
        let next = part.is_some_and(|p| p >= count);
        if !open || next {
            self.close_summary(choice, item, tell);
            self.close_thought(choice, item, tell);
            self.state.items[item].summaries.push(Part::new(count, PartKind::Summary));
            tell(&self.state, &Moment::part(MomentKind::SummaryOpen, choice, item, count, String::new()));
        }
        let at = self.state.items[item].summaries.len() - 1;
        self.state.items[item].summaries[at].text.push_str(&text);
        tell(&self.state, &Moment::part(MomentKind::SummaryDelta, choice, item, at, text));
    }

    fn close_summary(&mut self, choice: usize, item: usize, tell: &mut Tell) {
        let Some(last) = self.state.items[item].summaries.last_mut().filter(|p| p.open) else { return };
        last.open = false;
        let part = last.index;
        tell(&self.state, &Moment::part(MomentKind::SummaryClose, choice, item, part, String::new()));
    }

    fn think(&mut self, choice: usize, item: usize, text: String, tell: &mut Tell) {
        self.close_summary(choice, item, tell);
        if !self.state.items[item].parts.last().is_some_and(|p| p.open) {
            let part = self.state.items[item].parts.len();
            self.state.items[item].parts.push(Part::new(part, PartKind::Thought));
            tell(&self.state, &Moment::part(MomentKind::ThoughtOpen, choice, item, part, String::new()));
        }
        let at = self.state.items[item].parts.len() - 1;
        self.state.items[item].parts[at].text.push_str(&text);
        tell(&self.state, &Moment::part(MomentKind::ThoughtDelta, choice, item, at, text));
    }

    fn close_thought(&mut self, choice: usize, item: usize, tell: &mut Tell) {
        let Some(last) = self.state.items[item].parts.last_mut().filter(|p| p.open) else { return };
        last.open = false;
        let part = last.index;
        tell(&self.state, &Moment::part(MomentKind::ThoughtClose, choice, item, part, String::new()));
    }

    pub(super) fn close_reasoning(&mut self, choice: usize, how: ItemState, tell: &mut Tell) {
        let Some(item) = self.lanes[choice].reasoning.take() else { return };
        self.close_summary(choice, item, tell);
        self.close_thought(choice, item, tell);
        self.state.items[item].state = how;
        tell(&self.state, &Moment::item(MomentKind::ReasoningClose, choice, item));
    }
}
