//! The observations that rules of a dialect's `capture:` can emit.

use super::{EmitField, EmitSpec, EmittedFields, FieldType, emissions, emit_group, take};
use crate::domain::{Tree, named_enum};

emissions! {
    /// An observation about one captured frame. The stream rules of `capture/` check their sequence.
    #[derive(Debug)]
    #[allow(dead_code, reason = "of some fields only the presence counts")]
    pub enum Observation, ObservationKind, OBSERVATIONS {
        noun: "observation",
        skip_empty: true,

        /// The turn of the frame. Id, model and creation time must not change within a stream.
        Turn = "turn" { id: Option<String>, model: Option<String>, created: Option<i64> } if id | model | created;

        /// The sequence number of the frame.
        Sequence = "sequence" { value: i64 } if value;

        /// A choice starts.
        Start = "start" { choice: i64 = 0 };

        /// An item opens.
        Open = "open" { item: ObservedItem } if id | index;

        /// A part of an item opens.
        OpenPart = "open_part" { part: ObservedPart } if part;

        /// A delta of text, arguments or reasoning.
        Delta = "delta" { part: ObservedPart, text: ObservedText } if text;

        // Always emitted: an empty text is a valid final text.
        /// The complete text of a part, as sent at its end.
        Whole = "whole" { part: ObservedPart, text: Option<ObservedText> };

        /// A part closes.
        ClosePart = "close_part" { part: ObservedPart } if part;

        /// An item closes.
        Close = "close" { item: ObservedItem } if id | index;

        /// An item that is repeated at the end of the stream.
        Item = "item" { item: ObservedItem } if id | index;

        /// The finish reason of a choice.
        Finish = "finish" { choice: i64 = 0, reason: String } if reason;

        /// The token usage.
        Usage = "usage" { total: i64 } if total;

        /// The stream is complete.
        End = "end" { items: Option<i64> };

        /// The stream failed.
        Fail = "fail";

        // The message is from the mapping.
        /// An error that is visible in a single frame.
        Invalid = "invalid" { message: String } if message;
    }
}

impl Observation {
    /// The item that it is about.
    pub fn item_ref(&mut self) -> Option<&mut ItemRef> {
        match self {
            Observation::Open { item } | Observation::Close { item } | Observation::Item { item } => {
                Some(&mut item.item)
            }
            Observation::OpenPart { part } | Observation::ClosePart { part } => Some(&mut part.item),
            Observation::Delta { part, .. } | Observation::Whole { part, .. } => Some(&mut part.item),
            Observation::Turn { .. } | Observation::Sequence { .. } | Observation::Start { .. } => None,
            Observation::Finish { .. } | Observation::Usage { .. } | Observation::End { .. } => None,
            Observation::Fail | Observation::Invalid { .. } => None,
        }
    }
}

emit_group! {
    /// An item is identified by its id, its index or both.
    #[derive(Debug)]
    pub struct ItemRef { choice: i64 = 0, id: Option<String>, index: Option<i64> }
}

emit_group! {
    /// What must not change of an item within a stream.
    #[derive(Debug)]
    pub struct ItemFacts { kind: Option<String>, call: Option<String>, name: Option<String> }
}

emit_group! {
    #[derive(Debug)]
    pub struct ObservedItem { item: ItemRef, facts: ItemFacts }
}

emit_group! {
    /// A part of an item. Without an item it is the content of the choice.
    #[derive(Debug)]
    pub struct ObservedPart { item: ItemRef, part: Option<i64>, kind: Option<DeltaKind> }
}

named_enum! {
    /// The kinds of content that a delta of a captured stream can have.
    pub enum DeltaKind {
        Text = "text",
        Refusal = "refusal",
        Arguments = "arguments",
        Summary = "summary",
        Thought = "thought",
    }
}

/// The text of a frame; `None` if it contains half a surrogate pair, so that it is not known exactly.
#[derive(Debug)]
pub struct ObservedText(pub Option<String>);

impl EmitField for ObservedText {
    const SPEC: EmitSpec = EmitSpec::One(FieldType::Text);

    fn take(name: &str, fields: &mut EmittedFields) -> Option<ObservedText> {
        Some(ObservedText(match take(name, fields)? {
            Tree::Str(text) => Some(text.into_string()),
            _ => None,
        }))
    }
}
