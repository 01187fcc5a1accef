//! Values of a turn that consist of several parts or items: the texts of a choice, its log-probabilities, the items in
//! their order.

use super::{Record, Value};
use crate::domain::{Choice, Item, Part, PartKind, TurnState};

/// Under `message_first` a message may open after the calls that it precedes.
pub(super) fn items_by_index(turn: &TurnState) -> Value<'_> {
    let mut items: Vec<&Item> = turn.items.iter().collect();
    items.sort_by_key(|item| item.index);
    Value::list(items.into_iter().map(Record::Item))
}

pub(super) fn parts<'a>(turn: &'a TurnState, choice: &'a Choice) -> impl Iterator<Item = &'a Part> {
    turn.items_of(choice.index).flat_map(|item| &item.parts)
}

pub(super) fn tokens<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Value<'a> {
    Value::list(parts.into_iter().flat_map(|part| &part.logprobs).flat_map(|delta| delta.iter()).map(Record::Token))
}

pub(super) fn texts<'a>(turn: &'a TurnState, choice: &'a Choice, kinds: &[PartKind]) -> Value<'a> {
    let wanted = parts(turn, choice).filter(|part| kinds.contains(&part.kind) && !part.text.is_empty());
    Value::joined(wanted.map(|part| part.text.as_str()))
}

pub(super) fn last_text<'a>(turn: &'a TurnState, choice: &'a Choice) -> Value<'a> {
    let is_text = |part: &&Part| part.kind == PartKind::Text;
    let has_text = |item: &&Item| item.parts.iter().filter(is_text).any(|part| !part.text.is_empty());
    let last = turn.items_of(choice.index).filter(has_text).last();
    let parts = last.into_iter().flat_map(|item| &item.parts).filter(is_text);
    Value::joined(parts.map(|part| part.text.as_str()))
}
