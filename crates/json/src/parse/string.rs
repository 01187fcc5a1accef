//! Strings: runs are copied, escapes are decoded, lone surrogates at the ends are kept.

use super::{Parsed, Parser};
use crate::special_bytes::first_special;
use crate::{SurrogateString, Text, Tree};

/// The decoded value of an escape sequence.
enum Escaped {
    Char(char),
    /// A high surrogate without a following low one.
    High(u16),
    /// A low surrogate without a preceding high one.
    Low(u16),
}

impl<'a> Parser<'a> {
    /// Expects the position at the opening quote.
    #[inline]
    pub(super) fn string(&mut self) -> Parsed<Tree> {
        if let Some(plain) = self.plain()? {
            return Ok(plain.into());
        }
        let string = self.escaped_text()?;
        Ok(if string.leading_low.is_none() && string.trailing_high.is_none() {
            Tree::Str(string.text.into())
        } else {
            Tree::SurrogateString(Box::new(string))
        })
    }

    /// Expects the position at the opening quote. Keys are only compared, never joined with other strings, so a lone
    /// surrogate becomes U+FFFD.
    pub(super) fn key(&mut self) -> Parsed<Text> {
        if let Some(plain) = self.plain()? {
            return Ok(plain.into());
        }
        Ok(self.escaped_text()?.to_string_lossy().into())
    }

    /// The whole string if it has no escapes; otherwise resets the position to the byte after the opening quote.
    fn plain(&mut self) -> Parsed<Option<&'a str>> {
        self.at += 1;
        let start = self.at;
        let run = self.run();
        if self.take(b'"') {
            return Ok(Some(run));
        }
        self.expect_escape()?;
        self.at = start;
        Ok(None)
    }

    fn escaped_text(&mut self) -> Parsed<SurrogateString> {
        let start = self.at;
        let mut string = SurrogateString::default();
        loop {
            let run = self.run();
            string.text.push_str(run);
            if self.take(b'"') {
                return Ok(string);
            }
            self.expect_escape()?;
            let is_first = self.at == start;
            match self.escape()? {
                Escaped::Char(char) => string.text.push(char),
                Escaped::Low(unit) if is_first => string.leading_low = Some(unit),
                Escaped::High(unit) if self.peek() == Some(b'"') => string.trailing_high = Some(unit),
                Escaped::Low(_) | Escaped::High(_) => {
                    string.text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
    }

    /// The text up to the next quote, backslash, control character or the end.
    fn run(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.bytes[start..];
        self.at += first_special(rest);
        &self.text[start..self.at]
    }

    /// After a run without a closing quote, only a backslash is valid.
    fn expect_escape(&self) -> Parsed<()> {
        match self.peek() {
            Some(b'\\') => Ok(()),
            Some(_) => Err(self.syntax_error("a control character in a string must be escaped")),
            None => Err(self.syntax_error("unterminated string")),
        }
    }

    /// Expects the position at the backslash.
    fn escape(&mut self) -> Parsed<Escaped> {
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
            Some(_) => return Err(self.syntax_error("unknown escape sequence")),
            None => return Err(self.syntax_error("unterminated string")),
        };
        self.at += 1;
        Ok(Escaped::Char(char))
    }

    /// Expects the position after `\u`.
    fn unicode(&mut self) -> Parsed<Escaped> {
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

    /// The low surrogate that completes a pair, if it is next; otherwise the position does not change.
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

    fn unit(&mut self) -> Parsed<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.syntax_error("expected four hexadecimal digits"));
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }
}
