//! The grammar of numbers. Only the token is kept; its value is computed on demand.

use super::{Parsed, Parser};
use crate::Num;

impl Parser<'_> {
    /// Expects the position at `-` or a digit.
    pub(super) fn number(&mut self) -> Parsed<Num> {
        let start = self.at;
        self.take(b'-');
        if self.take(b'0') {
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.syntax_error("a number must not have leading zeros"));
            }
        } else {
            self.digits()?;
        }
        let integer = &self.text[start..self.at];
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return Ok(Num::from_integer(integer));
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(Num::from_token(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax_error("expected a digit"));
        }
        Ok(())
    }
}
