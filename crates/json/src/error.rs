//! Where a text stopped being JSON.

use std::fmt;

/// Why a text is not a [`Tree`](crate::Tree), and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Bytes from the start of the input, a byte order mark included.
    pub offset: usize,
    /// Counted from 1.
    pub line: usize,
    /// Characters in the line, counted from 1.
    pub column: usize,
    pub message: &'static str,
}

impl ParseError {
    /// An error at `at` bytes into `text`, which itself began `skipped` bytes into the input.
    /// `text` need only be valid UTF-8 up to `at`.
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
