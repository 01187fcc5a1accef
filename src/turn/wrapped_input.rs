//! The input of a custom tool that was sent to the backend as a function with one text argument: `{"input":"…"}`. It is
//! decoded as it arrives, so that the call can be streamed.

use super::deltas::unwrap_custom_input;
use crate::domain::request_item::WRAPPED_INPUT;

#[derive(Debug, Default)]
pub(super) struct WrappedInput {
    place: Place,
    /// A high surrogate in an escape, which needs the next escape.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the object.
    #[default]
    Start,
    /// Before the name of its first member.
    Member,
    /// In that name; so many of its bytes are right.
    Name(usize),
    Colon,
    Value,
    Text,
    Escape,
    /// After `\\u`: the digits so far, and their value.
    Unicode(u8, u16),
    /// After the text.
    Done,
    /// Something else: it is decoded when it is complete.
    Other,
}

impl WrappedInput {
    /// The new part of the input in these arguments.
    pub fn push(&mut self, arguments: &str) -> String {
        let mut input = String::new();
        for c in arguments.chars() {
            self.place = self.read(c, &mut input);
            if matches!(self.place, Place::Done | Place::Other) {
                break;
            }
        }
        input
    }

    /// What was not sent yet, at the end of the call. `arguments` are all of them.
    pub fn rest(&mut self, arguments: &str) -> String {
        match std::mem::replace(&mut self.place, Place::Done) {
            Place::Text | Place::Escape | Place::Unicode(..) | Place::Done => String::new(),
            Place::Start | Place::Member | Place::Name(_) | Place::Colon | Place::Value | Place::Other => {
                unwrap_custom_input(arguments)
            }
        }
    }

    fn read(&mut self, c: char, input: &mut String) -> Place {
        let is_space = matches!(c, ' ' | '\t' | '\n' | '\r');
        match (self.place, c) {
            (place @ (Place::Start | Place::Member | Place::Colon | Place::Value), _) if is_space => place,
            (Place::Start, '{') => Place::Member,
            (Place::Member, '"') => Place::Name(0),
            (Place::Name(length), '"') if length == WRAPPED_INPUT.len() => Place::Colon,
            (Place::Name(length), c) if WRAPPED_INPUT[length..].starts_with(c) => Place::Name(length + c.len_utf8()),
            (Place::Colon, ':') => Place::Value,
            (Place::Value, '"') => Place::Text,
            (Place::Text, '"') => {
                self.end_surrogate(input);
                Place::Done
            }
            (Place::Text, '\\') => Place::Escape,
            (Place::Text, c) => self.text(c, input),
            (Place::Escape, 'u') => Place::Unicode(0, 0),
            (Place::Escape, c) => {
                let decoded = match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => other,
                };
                self.text(decoded, input)
            }
            (Place::Unicode(digits, value), c) => {
                let value = value << 4 | c.to_digit(16).unwrap_or(0) as u16;
                if digits < 3 {
                    return Place::Unicode(digits + 1, value);
                }
                self.unit(value, input);
                Place::Text
            }
            (place @ (Place::Done | Place::Other), _) => place,
            (Place::Start | Place::Member | Place::Name(_) | Place::Colon | Place::Value, _) => Place::Other,
        }
    }

    fn text(&mut self, c: char, input: &mut String) -> Place {
        self.end_surrogate(input);
        input.push(c);
        Place::Text
    }

    /// A UTF-16 unit of an escape. A surrogate without its counterpart becomes U+FFFD.
    fn unit(&mut self, unit: u16, input: &mut String) {
        let is_low = (0xDC00..0xE000).contains(&unit);
        if !is_low {
            self.end_surrogate(input);
        }
        match (self.high.take(), unit) {
            (None, high @ 0xD800..0xDC00) => self.high = Some(high),
            (high, unit) => {
                let units = high.into_iter().chain([unit]);
                input.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
        }
    }

    fn end_surrogate(&mut self, input: &mut String) {
        if self.high.take().is_some() {
            input.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/turn_wrapped_input.rs"]
mod tests;
