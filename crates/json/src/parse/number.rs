//! The grammar of numbers. Their value is nobody's business here: the token is what is kept.

use super::{Parser, Stop};
use crate::Num;

impl Parser<'_> {
    /// Stands on `-` or a digit.
    pub(super) fn number(&mut self) -> Result<Num, Stop> {
        let start = self.at;
        self.take(b'-');
        if self.take(b'0') {
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.stop("a number does not begin with 0"));
            }
        } else {
            self.digits()?;
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

    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.stop("expected a digit"));
        }
        Ok(())
    }
}
