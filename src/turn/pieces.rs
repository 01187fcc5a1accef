//! Pieces of text: what is new in a snapshot, and whether arguments are whole.

use crate::canon::Piece;

/// What `piece` adds to what is there. A snapshot that contradicts what was already told adds nothing: what a client
/// has read cannot be taken back.
pub(super) fn news(piece: Piece, so_far: &str) -> String {
    match piece {
        Piece::Delta(text) => text,
        Piece::Whole(text) => text.strip_prefix(so_far).map(str::to_owned).unwrap_or_default(),
    }
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
