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
}

impl ParseError {
    /// An error at byte `at` of `text`, which itself begins at byte `skipped` of the input. `text` must be valid UTF-8
    /// only up to `at`.
    pub(crate) fn locate(text: &[u8], at: usize, skipped: usize, message: &'static str) -> Self {
        let before = &text[..at.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let is_char_start = |byte: &&u8| (**byte & 0xC0) != 0x80;
        ParseError {
            offset: at + skipped,
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + before[line_start..].iter().filter(is_char_start).count(),
            message,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}
