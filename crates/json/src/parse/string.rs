//! Strings: runs are copied, escapes are read, halves of characters are kept at the ends.

use std::sync::Arc;

use super::{Parser, Stop};
use crate::{Torn, Tree};

/// What an escape stands for.
enum Escaped {
    Char(char),
    /// A high surrogate that no low one follows.
    High(u16),
    /// A low surrogate that no high one precedes.
    Low(u16),
}

impl<'a> Parser<'a> {
    /// Stands on the opening quote.
    pub(super) fn string(&mut self) -> Result<Tree, Stop> {
        if let Some(plain) = self.plain()? {
            return Ok(plain.into());
        }
        let torn = self.escaped_text()?;
        Ok(if torn.lead.is_none() && torn.tail.is_none() { Tree::Str(torn.text) } else { Tree::Torn(Box::new(torn)) })
    }

    /// Stands on the opening quote. A key is matched, never joined with another piece, so half a
    /// character in it is as good as U+FFFD.
    pub(super) fn key(&mut self) -> Result<Arc<str>, Stop> {
        if let Some(plain) = self.plain()? {
            return Ok(plain.into());
        }
        Ok(self.escaped_text()?.lossy().into())
    }

    /// The whole string if it has no escape; else stands behind the opening quote again.
    fn plain(&mut self) -> Result<Option<&'a str>, Stop> {
        self.at += 1;
        let start = self.at;
        let run = self.run();
        if self.take(b'"') {
            return Ok(Some(run));
        }
        self.refuse_end()?;
        self.at = start;
        Ok(None)
    }

    fn escaped_text(&mut self) -> Result<Torn, Stop> {
        let start = self.at;
        let mut torn = Torn::default();
        loop {
            let run = self.run();
            torn.text.push_str(run);
            if self.take(b'"') {
                return Ok(torn);
            }
            self.refuse_end()?;
            let is_first = self.at == start;
            match self.escape()? {
                Escaped::Char(char) => torn.text.push(char),
                Escaped::Low(unit) if is_first => torn.lead = Some(unit),
                Escaped::High(unit) if self.peek() == Some(b'"') => torn.tail = Some(unit),
                Escaped::Low(_) | Escaped::High(_) => {
                    torn.text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
    }

    /// Everything up to the next quote, backslash, control character or the end.
    fn run(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.bytes[start..];
        let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
        self.at += rest.iter().position(special).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    /// Behind a run only a quote or a backslash may stand.
    fn refuse_end(&self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'\\') => Ok(()),
            Some(_) => Err(self.stop("a control character in a string must be escaped")),
            None => Err(self.stop("the string has no end")),
        }
    }

    /// Stands on the backslash.
    fn escape(&mut self) -> Result<Escaped, Stop> {
        self.at += 1;
        let char = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            Some(_) => return Err(self.stop("unknown escape")),
            None => return Err(self.stop("the string has no end")),
        };
        self.at += 1;
        Ok(Escaped::Char(char))
    }

    /// Stands behind `\u`.
    fn unicode(&mut self) -> Result<Escaped, Stop> {
        let unit = self.unit()?;
        match unit {
            0xD800..=0xDBFF => Ok(match self.low_half() {
                Some(low) => {
                    let pair = char::decode_utf16([unit, low]).next();
                    let whole = pair.and_then(Result::ok);
                    Escaped::Char(whole.unwrap_or(char::REPLACEMENT_CHARACTER))
                }
                None => Escaped::High(unit),
            }),
            0xDC00..=0xDFFF => Ok(Escaped::Low(unit)),
            _ => {
                let char = char::from_u32(u32::from(unit));
                Ok(Escaped::Char(char.unwrap_or(char::REPLACEMENT_CHARACTER)))
            }
        }
    }

    /// The low surrogate that completes a character, if it comes next; else nothing is read, and
    /// whatever comes is read for itself.
    fn low_half(&mut self) -> Option<u16> {
        let start = self.at;
        if self.take(b'\\')
            && self.take(b'u')
            && let Ok(unit @ 0xDC00..=0xDFFF) = self.unit()
        {
            return Some(unit);
        }
        self.at = start;
        None
    }

    fn unit(&mut self) -> Result<u16, Stop> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.stop("expected four hexadecimal digits"));
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }
}
