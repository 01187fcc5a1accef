//! Pieces of text: what is new in a snapshot, and whether arguments are whole.

use crate::domain::request::WRAPPED_INPUT;
use crate::domain::{Piece, Tree};
use reframe_json::Torn;

/// What `piece` adds to what is there. A snapshot that contradicts what was already told adds nothing: what a client
/// has read cannot be taken back.
///
/// What is there is asked for only when it is needed: gathering it for every piece would make a stream cost the square of
/// its length.
pub(super) fn news<S: AsRef<str>>(piece: Piece, so_far: impl FnOnce() -> S) -> String {
    match piece {
        Piece::Delta(text) => text,
        Piece::Torn(torn) => torn.lossy(),
        Piece::Whole(text) => text.strip_prefix(so_far().as_ref()).map(str::to_owned).unwrap_or_default(),
    }
}

/// Joins the halves of a character that was cut between two pieces. `half` is what the piece before left over; a half
/// whose other half never comes is U+FFFD.
pub(super) fn mend(half: &mut Option<u16>, piece: Piece) -> Piece {
    let lost = |half: &mut Option<u16>| half.take().map(|_| char::REPLACEMENT_CHARACTER);
    match piece {
        Piece::Delta(text) if half.is_none() || text.is_empty() => Piece::Delta(text),
        Piece::Delta(text) => Piece::Delta(lost(half).into_iter().collect::<String>() + &text),
        Piece::Torn(Torn { lead, text, tail }) => {
            let first = match (half.take(), lead) {
                (Some(high), Some(low)) => char::decode_utf16([high, low])
                    .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect::<String>(),
                (None, None) => String::new(),
                (Some(_), None) | (None, Some(_)) => char::REPLACEMENT_CHARACTER.to_string(),
            };
            *half = tail;
            Piece::Delta(first + &text)
        }
        // A snapshot says all of it, the missing half too.
        Piece::Whole(text) => {
            *half = None;
            Piece::Whole(text)
        }
    }
}

/// What a custom tool is given, out of the function call that it travelled as.
pub(super) fn unwrapped(arguments: &str) -> String {
    let parsed = Tree::parse(arguments.as_bytes()).ok();
    let input = parsed.as_ref().and_then(|t| t.get(WRAPPED_INPUT)).and_then(Tree::as_str);
    input.unwrap_or(arguments).to_owned()
}

/// Is this a whole JSON object or list, so that nothing but white space can follow?
pub(super) fn is_whole(arguments: &str) -> bool {
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
