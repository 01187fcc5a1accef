//! The items of a turn: their ids, their output index (policy `output_index`), their ordinal, and the end of a part.

use super::budget::ITEM_BYTES;
use super::{OnMoment, Turn, ids};
use crate::domain::policy::{IdsPolicy, OutputIndex};
use crate::domain::{Item, ItemKind, ItemState, Moment, MomentKind};

impl Turn {
    /// The item with the backend's key; without a key, the last item of this kind.
    pub(super) fn last_item(&self, choice: usize, key: Option<&str>, kind: ItemKind) -> Option<&Item> {
        match key {
            Some(key) => self.choices.get(choice)?.item_of(key).and_then(|item| self.state.items.get(item)),
            None => self.state.items.iter().rfind(|i| i.choice == choice && i.kind == kind),
        }
    }

    /// Closes the last part of an item, if it is open. `moment`: the moment that closes this kind of part.
    pub(super) fn close_part(&mut self, choice: usize, item: usize, moment: MomentKind, on_moment: &mut OnMoment) {
        let Item { parts, summaries, .. } = &mut self.state.items[item];
        let parts = if moment == MomentKind::SummaryClose { summaries } else { parts };
        let Some(last) = parts.last_mut().filter(|p| p.open) else { return };
        last.open = false;
        let part = last.index;
        on_moment(&self.state, &Moment::part(moment, choice, item, part, String::new()));
    }

    /// `backend_key` becomes the item's id under the policy `ids: backend`.
    pub(super) fn add_item(&mut self, choice: usize, kind: ItemKind, backend_key: Option<&str>) -> usize {
        let position = self.state.items.len();
        let is_call = |i: &&Item| i.choice == choice && i.is_call();
        let same = |i: &&Item| i.choice == choice && i.kind == kind;
        let calls = self.state.items.iter().filter(is_call).count();
        let call = matches!(kind, ItemKind::Function | ItemKind::Custom);
        let index = self.output_index(choice, kind);
        self.sent_items += usize::from(self.sent.includes(kind));
        let ordinal = if call { calls } else { self.state.items.iter().filter(same).count() };
        // A bare number is an index, not an id.
        let usable = |n: &&str| ids::is_usable_id(n) && !n.bytes().all(|b| b.is_ascii_digit());
        let backend_id = backend_key.filter(|_| self.policies.ids == IdsPolicy::Backend).filter(usable);
        let backend_id = backend_id.filter(|n| !self.state.items.iter().any(|i| i.id == **n)).map(str::to_owned);
        let own_id = self.ids.next();
        self.choices[choice].dropped_reasoning = None;
        // A key is kept twice: as the id of the item, and to find the item again.
        self.count(ITEM_BYTES + 2 * backend_key.map_or(0, str::len));
        self.state.items.push(Item {
            id: backend_id.unwrap_or(own_id),
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
            legacy: false,
            input: None,
            block: None,
        });
        position
    }

    /// The index of the next item. Items that the dialect does not send take none.
    fn output_index(&self, choice: usize, kind: ItemKind) -> usize {
        let next = self.sent_items;
        match self.policies.output_index {
            OutputIndex::Choice => choice,
            OutputIndex::MessageFirst if self.sent.messages => {
                let has_message = self.state.items.iter().any(|i| i.kind == ItemKind::Message);
                // The first message has index 0, also if it comes later.
                match kind {
                    ItemKind::Message if !has_message => 0,
                    _ if has_message => next,
                    _ => next + 1,
                }
            }
            OutputIndex::Position | OutputIndex::MessageFirst => next,
        }
    }

    /// The number of a block that begins in this item: a part, a call, or reasoning without readable content. Blocks are
    /// counted over the turn; those of items that the dialect does not send are not.
    pub(super) fn next_block(&mut self, item: usize) -> usize {
        let block = self.blocks;
        self.blocks += usize::from(self.sent.includes(self.state.items[item].kind));
        self.state.items[item].block.get_or_insert(block);
        block
    }
}
