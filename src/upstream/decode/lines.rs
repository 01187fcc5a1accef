//! Lines that end in LF, CR or CRLF, cut anywhere.

use super::TooLarge;

#[derive(Debug)]
pub struct Lines {
    /// Of one line.
    most: usize,
    partial: Vec<u8>,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_cr: bool,
}

impl Lines {
    pub fn new(most: usize) -> Lines {
        Lines { most, partial: Vec::new(), after_cr: false }
    }

    /// A line that is too large is an error wherever it was cut: also when all of it came at once.
    pub fn push(&mut self, bytes: &[u8], line: &mut dyn FnMut(&[u8]) -> Result<(), TooLarge>) -> Result<(), TooLarge> {
        let mut rest = bytes;
        if self.after_cr && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        if !bytes.is_empty() {
            self.after_cr = false;
        }
        while let Some(at) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            if self.partial.len() + at > self.most {
                return Err(TooLarge);
            }
            if self.partial.is_empty() {
                line(&rest[..at])?;
            } else {
                self.partial.extend_from_slice(&rest[..at]);
                line(&self.partial)?;
                self.partial.clear();
            }
            let ended_by = rest[at];
            rest = &rest[at + 1..];
            if ended_by == b'\r' {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
        }
        if self.partial.len() + rest.len() > self.most {
            return Err(TooLarge);
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// What stood after the last line end.
    pub fn rest(self) -> Vec<u8> {
        self.partial
    }
}
