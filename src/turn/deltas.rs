//! Text deltas: the new suffix of a snapshot, split surrogate pairs, and whether arguments are complete JSON.

use crate::domain::request_item::WRAPPED_INPUT;
use crate::domain::{Delta, Tree};
use reframe_json::SurrogateString;

/// Returns the text that `delta` adds. A snapshot that contradicts the text so far adds nothing, because emitted text
/// cannot be taken back.
///
/// `so_far` is a closure because collecting the text for every delta would make a stream quadratic in its length.
pub(super) fn new_suffix<S: AsRef<str>>(delta: Delta, so_far: impl FnOnce() -> S) -> String {
    match delta {
        Delta::Append(text) => text,
        Delta::AppendSurrogates(string) => string.to_string_lossy(),
        Delta::Snapshot(text) => text.strip_prefix(so_far().as_ref()).map(str::to_owned).unwrap_or_default(),
    }
}

/// Joins a surrogate pair that was split between two deltas. `pending` is the high surrogate of the previous delta. A
/// surrogate without its counterpart becomes U+FFFD.
pub(super) fn join_surrogates(pending: &mut Option<u16>, delta: Delta) -> Delta {
    match delta {
        Delta::Append(text) if pending.is_none() || text.is_empty() => Delta::Append(text),
        Delta::Append(text) => {
            *pending = None;
            Delta::Append(format!("{}{text}", char::REPLACEMENT_CHARACTER))
        }
        Delta::AppendSurrogates(SurrogateString { leading_low, text, trailing_high }) => {
            let first = match (pending.take(), leading_low) {
                (Some(high), Some(low)) => char::decode_utf16([high, low])
                    .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect::<String>(),
                (None, None) => String::new(),
                (Some(_), None) | (None, Some(_)) => char::REPLACEMENT_CHARACTER.to_string(),
            };
            *pending = trailing_high;
            Delta::Append(first + &text)
        }
        // A snapshot contains the whole text, including the pending character.
        Delta::Snapshot(text) => {
            *pending = None;
            Delta::Snapshot(text)
        }
    }
}

/// Extracts the input of a custom tool that was sent to the backend as a function.
pub(super) fn unwrap_custom_input(arguments: &str) -> String {
    let parsed = Tree::parse(arguments.as_bytes()).ok();
    let input = parsed.as_ref().and_then(|t| t.get(WRAPPED_INPUT)).and_then(Tree::as_str);
    input.unwrap_or(arguments).to_owned()
}

/// Whether arguments that arrive as deltas are one complete JSON object or array, so that only white space can follow.
/// Every byte is looked at once, however many deltas there are.
#[derive(Debug, Default)]
pub(super) struct JsonProgress {
    depth: u32,
    in_text: bool,
    escaped: bool,
    began: bool,
    /// It does not begin with an object or array, or something follows it.
    is_other: bool,
}

impl JsonProgress {
    pub fn add(&mut self, delta: &str) {
        for byte in delta.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' if self.in_text => self.in_text = false,
                _ if self.in_text => {}
                b'{' | b'[' if self.depth > 0 || !self.began => {
                    self.depth += 1;
                    self.began = true;
                }
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ if self.depth == 0 => self.is_other = true,
                b'"' => self.in_text = true,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
        }
    }

    pub fn is_complete(&self) -> bool {
        self.began && self.depth == 0 && !self.is_other
    }
}

#[cfg(test)]
#[path = "../../tests/unit/turn_deltas.rs"]
mod tests;
