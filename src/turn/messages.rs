//! Text and refusals: the message item and its parts.

use super::{At, Tell, Turn, Voice, deltas, ids};
use crate::domain::policy::{EmptyMessageItem, IdsPolicy, OutputIndex, TerminalOrder};
use crate::domain::{Item, ItemKind, ItemState, Moment, MomentKind, Part, PartKind, Piece, Tree};

impl Turn {
    pub(super) fn text(&mut self, choice: usize, at: At, piece: Piece, voice: Voice, tell: &mut Tell) {
        if self.is_late(choice) {
            return;
        }
        // The first piece of a turn may be half a character; there must be somewhere to keep it.
        if matches!(piece, Piece::Torn(_)) && !self.reach(choice, tell) {
            return;
        }
        let piece = match self.lanes.get_mut(choice) {
            Some(lane) => deltas::mend(&mut lane.text_half, piece),
            None => piece,
        };
        let kind = match voice {
            Voice::Text => PartKind::Text,
            Voice::Refusal => PartKind::Refusal,
        };
        let text = deltas::news(piece, || self.said(choice, &at, kind));
        if text.is_empty() || !self.keep(text.len(), tell) || !self.reach(choice, tell) {
            return;
        }
        let item = self.message_for(choice, at.item, tell);
        let part = self.part_for(choice, item, at.part, kind, tell);
        self.state.items[item].parts[part].text.push_str(&text);
        let moment = match voice {
            Voice::Text => MomentKind::TextDelta,
            Voice::Refusal => MomentKind::RefusalDelta,
        };
        let mut moment = Moment::part(moment, choice, item, part, text);
        moment.value = std::mem::take(&mut self.lanes[choice].logprobs);
        if moment.value.is_null() {
            moment.value = std::mem::take(&mut self.first_logprobs);
        }
        if let Tree::List(tokens) = &moment.value {
            self.state.items[item].parts[part].logprobs.extend(tokens.iter().cloned());
        }
        tell(&self.state, &moment);
    }

    /// What this item (or, without a name, the last message) has said so far: what a snapshot is measured against.
    fn said(&self, choice: usize, at: &At, kind: PartKind) -> String {
        let lane = self.lanes.get(choice);
        let item = match &at.item {
            Some(key) => lane.and_then(|l| l.item_of(key)),
            None => self.state.items.iter().rposition(|i| i.choice == choice && i.kind == ItemKind::Message),
        };
        item.and_then(|i| self.state.items.get(i))
            .map(|i| {
                let of = |p: &&Part| p.kind == kind && at.part.is_none_or(|part| p.said_at == Some(part));
                i.parts.iter().filter(of).map(|p| p.text.as_str()).collect()
            })
            .unwrap_or_default()
    }

    fn message_for(&mut self, choice: usize, key: Option<String>, tell: &mut Tell) -> usize {
        let lane = &mut self.lanes[choice];
        if let Some(item) = lane.message {
            let named = lane.keys.iter().rev().find(|(_, i)| *i == item).map(|(k, _)| k.as_str());
            match (&key, named) {
                (None, _) => return item,
                (Some(key), Some(named)) if key == named => return item,
                (Some(key), None) => {
                    lane.keys.push((key.clone(), item));
                    return item;
                }
                (Some(_), Some(_)) if self.policies.terminal_order == TerminalOrder::AtEnd => return item,
                (Some(_), Some(_)) => {}
            }
        }
        self.open_message(choice, key, tell)
    }

    /// Policy `empty_message_item: always`: a choice that has said nothing has a message nevertheless.
    pub(super) fn ensure_message(&mut self, choice: usize, tell: &mut Tell) {
        let has = self.state.items_of(choice).any(|i| i.kind == ItemKind::Message);
        if !has && self.policies.empty_message_item == EmptyMessageItem::Always {
            self.open_message(choice, None, tell);
        }
    }

    /// Text follows reasoning and other messages; those are closed first.
    pub(super) fn open_message(&mut self, choice: usize, key: Option<String>, tell: &mut Tell) -> usize {
        self.close_message(choice, ItemState::Done, tell);
        self.close_reasoning(choice, ItemState::Done, tell);
        let item = self.add_item(choice, ItemKind::Message, key.as_deref());
        let lane = &mut self.lanes[choice];
        lane.message = Some(item);
        lane.keys.extend(key.map(|k| (k, item)));
        tell(&self.state, &Moment::item(MomentKind::MessageOpen, choice, item));
        item
    }

    /// The open part of this kind; a part of another kind is closed first.
    fn part_for(&mut self, choice: usize, item: usize, at: Option<usize>, kind: PartKind, tell: &mut Tell) -> usize {
        let parts = &self.state.items[item].parts;
        if let Some(last) = parts.last()
            && last.open
            && last.kind == kind
            && (at.is_none() || last.said_at == at)
        {
            return parts.len() - 1;
        }
        self.close_part(choice, item, tell);
        let part = self.state.items[item].parts.len();
        self.state.items[item].parts.push(Part { said_at: at, ..Part::new(part, kind) });
        tell(&self.state, &Moment::part(MomentKind::PartOpen, choice, item, part, String::new()));
        part
    }

    fn close_part(&mut self, choice: usize, item: usize, tell: &mut Tell) {
        let Some(last) = self.state.items[item].parts.last_mut().filter(|p| p.open) else { return };
        last.open = false;
        let part = last.index;
        tell(&self.state, &Moment::part(MomentKind::PartClose, choice, item, part, String::new()));
    }

    pub(super) fn close_message(&mut self, choice: usize, how: ItemState, tell: &mut Tell) {
        let Some(item) = self.lanes[choice].message.take() else { return };
        self.close_part(choice, item, tell);
        self.state.items[item].state = how;
        tell(&self.state, &Moment::item(MomentKind::MessageClose, choice, item));
    }

    /// Another kind of item begins: the message is over, unless everything closes at the end.
    pub(super) fn leave_message(&mut self, choice: usize, tell: &mut Tell) {
        if self.policies.terminal_order == TerminalOrder::ByItem {
            self.close_message(choice, ItemState::Done, tell);
        }
    }

    pub(super) fn annotation(&mut self, choice: usize, mut value: Tree, tell: &mut Tell) {
        if self.is_late(choice) || !self.keep(64, tell) || !self.reach(choice, tell) {
            return;
        }
        let item = self.message_for(choice, None, tell);
        let part = self.part_for(choice, item, None, PartKind::Text, tell);
        value.insert("shift", Tree::from(self.chars_before(choice, item, part) as i64));
        self.state.items[item].parts[part].annotations.push(value.clone());
        let mut moment = Moment::part(MomentKind::Annotation, choice, item, part, String::new());
        moment.value = value;
        tell(&self.state, &moment);
    }

    /// A dialect that joins the parts of a choice counts offsets from its beginning, in characters.
    fn chars_before(&self, choice: usize, item: usize, part: usize) -> usize {
        let earlier = self.state.items.iter().take(item).filter(|i| i.choice == choice).flat_map(|i| &i.parts);
        let same = self.state.items[item].parts.iter().take(part);
        earlier.chain(same).filter(|p| p.kind == PartKind::Text).map(|p| p.text.chars().count()).sum()
    }

    pub(super) fn logprobs(&mut self, choice: usize, value: Tree) {
        let waiting = match self.lanes.get_mut(choice) {
            Some(lane) => &mut lane.logprobs,
            None => &mut self.first_logprobs,
        };
        *waiting = value;
    }

    /// `name`: what the backend calls it.
    pub(super) fn add_item(&mut self, choice: usize, kind: ItemKind, name: Option<&str>) -> usize {
        let position = self.state.items.len();
        let is_call = |i: &&Item| i.choice == choice && i.is_call();
        let same = |i: &&Item| i.choice == choice && i.kind == kind;
        let calls = self.state.items.iter().filter(is_call).count();
        let call = matches!(kind, ItemKind::Function | ItemKind::Custom);
        let index = match self.policies.output_index {
            OutputIndex::Position => position,
            OutputIndex::Choice => choice,
            OutputIndex::MessageFirst => match kind {
                ItemKind::Message => 0,
                ItemKind::Function | ItemKind::Custom => 1 + calls,
                ItemKind::Reasoning => position,
            },
        };
        let ordinal = if call { calls } else { self.state.items.iter().filter(same).count() };
        // A bare number is a place, not a name.
        let usable = |n: &&str| ids::is_sane(n) && !n.bytes().all(|b| b.is_ascii_digit());
        let name = name.filter(|_| self.policies.ids == IdsPolicy::Backend).filter(usable);
        let name = name.filter(|n| !self.state.items.iter().any(|i| i.id == **n)).map(str::to_owned);
        let own = self.ids.next();
        self.state.items.push(Item {
            id: name.unwrap_or(own),
            choice,
            kind,
            state: ItemState::Open,
            index,
            ordinal,
            parts: Vec::new(),
            summaries: Vec::new(),
            encrypted: None,
            call_id: String::new(),
            name: String::new(),
            arguments: String::new(),
        });
        position
    }
}
