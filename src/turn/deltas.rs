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

/// True if this is one complete JSON object or array, so that only white space can follow.
pub(super) fn is_complete_json(arguments: &str) -> bool {
    let mut depth = 0i64;
    let mut in_text = false;
    let mut escaped = false;
    let mut began = false;
    for byte in arguments.trim().bytes() {
        if began && depth == 0 {
            return false;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                began = true;
            }
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
        if !began && byte != b'{' && byte != b'[' {
            return false;
        }
    }
    began && depth == 0 && !in_text
}
