//! Parse errors with their position.

use std::fmt;

/// Why and where a text cannot be parsed into a [`Tree`](crate::Tree).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte offset in the input, including a byte order mark.
    pub offset: usize,
    /// Counted from 1.
    pub line: usize,
    /// Characters in the line, counted from 1.
    pub column: usize,
    /// What the parser expected or rejected.
    pub message: &'static str,
    /// Why it was rejected.
    pub kind: ParseErrorKind,
}

/// The kinds of parse errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The text is not JSON.
    Syntax,
    /// The text may be JSON, but exceeds [`Limits::max_bytes`](crate::Limits).
    TooLong,
    /// The text may be JSON, but exceeds [`Limits::max_depth`](crate::Limits).
    TooDeep,
    /// The text may be JSON, but exceeds [`Limits::max_nodes`](crate::Limits).
    TooManyValues,
}

impl ParseError {
    /// An error at byte `at` of `text`, which itself begins at byte `skipped` of the input. `text` must be valid UTF-8
    /// only up to `at`.
    pub(crate) fn locate(
        text: &[u8],
        at: usize,
        skipped: usize,
        (kind, message): (ParseErrorKind, &'static str),
    ) -> Self {
        let before = &text[..at.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let is_char_start = |byte: &&u8| (**byte & 0xC0) != 0x80;
        ParseError {
            offset: at + skipped,
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + before[line_start..].iter().filter(is_char_start).count(),
            message,
            kind,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}
