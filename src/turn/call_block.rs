//! Writes tool calls into the text of a choice (`call_blocks:` of a dialect), as soon as their arguments are complete.
//! Every value is escaped, and names that are no element names are not used as such: a model cannot forge a block.

use super::deltas::unwrap_custom_input;
use super::messages::TextTarget;
use super::tool_calls::CallState;
use super::{OnMoment, Turn};
use crate::domain::call_block::CallBlockFormat;
use crate::domain::policy::{CallBlockArguments, CallBlockKeys, CallBlockText, CallBlocks};
use crate::domain::{CallKind, Delta, PartKind, Policies, Tree};
use std::borrow::Cow;

impl Turn {
    /// Writes a complete call, if the dialect writes calls as text.
    pub(super) fn write_block(&mut self, choice: usize, call_index: usize, on_moment: &mut OnMoment) {
        let Some(format) = self.call_blocks.clone() else { return };
        let written = self.choices[choice].blocks_written;
        if written > 0 && self.policies.call_blocks == CallBlocks::First {
            return;
        }
        let call = &self.choices[choice].calls[call_index];
        let literal = call.ident.literal.clone().filter(|_| self.policies.call_block_text == CallBlockText::Literal);
        let Some(block) = literal.or_else(|| block(&format, call, &self.policies)) else { return };
        self.choices[choice].blocks_written += 1;
        let text = if written > 0 { format!("{}{block}", format.delimiter) } else { block };
        // Those that wait belong to text of the backend.
        let logprobs = std::mem::take(&mut self.choices[choice].logprobs);
        let target = TextTarget { item: None, part: None, kind: PartKind::Text, is_call_block: true };
        self.text(choice, target, Delta::Append(text), on_moment);
        self.choices[choice].logprobs = logprobs;
    }
}

/// The text of a call. `None`: its arguments cannot be written.
fn block(format: &CallBlockFormat, call: &CallState, policies: &Policies) -> Option<String> {
    let mut text = format.open.clone();
    let mut add = |element: &str, value: &str| {
        for text_part in ["\n", &format.indent, "<", element, ">", &escaped(value), "</", element, ">"] {
            text.push_str(text_part);
        }
    };
    let name = call.ident.name.as_deref().unwrap_or_default().trim();
    add(&format.name, name);
    match members(format, call, policies)? {
        Some(members) => members.iter().for_each(|(name, value)| add(name, &element_text(value))),
        None if call.wrapped.is_some() => add(&format.arguments, &unwrap_custom_input(&call.received)),
        None if call.received.trim().is_empty() => add(&format.arguments, "{}"),
        None => add(&format.arguments, &call.received),
    }
    text.push('\n');
    text.push_str(&format.close);
    Some(text)
}

/// The arguments by name, in the order in which they are written. The inner `None`: they are one element.
#[allow(clippy::type_complexity)]
fn members(format: &CallBlockFormat, call: &CallState, policies: &Policies) -> Option<Option<Vec<(String, Tree)>>> {
    if call.ident.kind == Some(CallKind::Custom) || call.received.trim().is_empty() {
        return Some(None);
    }
    let parsed = match (Tree::parse(call.received.as_bytes()), policies.call_block_arguments) {
        (Ok(parsed), _) => parsed,
        (Err(_), CallBlockArguments::Element) => return Some(None),
        (Err(_), CallBlockArguments::Skip) => return None,
    };
    let mut members: Vec<(String, Tree)> = match parsed {
        Tree::Map(members) => members.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        Tree::List(values) => return Some(Some(values.into_iter().enumerate().map(numbered).collect())),
        _ => return Some(None),
    };
    if members.is_empty() || !members.iter().all(|(name, _)| is_element_name(name)) {
        return Some(None);
    }
    let listed = format.parameters_of(call.ident.name.as_deref().unwrap_or_default());
    let rank = |name: &str| listed.and_then(|listed| listed.iter().position(|one| one == name)).unwrap_or(usize::MAX);
    if listed.is_some() && policies.call_block_keys == CallBlockKeys::Drop {
        members.retain(|(name, _)| rank(name) != usize::MAX);
    }
    members.sort_by(|(one, _), (other, _)| rank(one).cmp(&rank(other)).then_with(|| one.cmp(other)));
    Some(Some(members))
}

fn numbered((index, value): (usize, Tree)) -> (String, Tree) {
    (index.to_string(), value)
}

fn is_element_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:-.".contains(&byte))
}

fn element_text(value: &Tree) -> Cow<'_, str> {
    match value {
        Tree::Null => Cow::Borrowed(""),
        Tree::Str(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_json()),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped
}
