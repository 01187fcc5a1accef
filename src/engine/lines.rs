//! Splits bytes into lines that end in LF, CR or CRLF. Chunks may be split anywhere.

/// A line or an event exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTooLarge;

#[derive(Debug)]
pub struct LineSplitter {
    /// Of one line.
    max_bytes: usize,
    partial: Vec<u8>,
    /// The last byte was a CR: a LF that follows belongs to the same line end.
    after_cr: bool,
}

impl LineSplitter {
    pub fn new(max_bytes: usize) -> LineSplitter {
        LineSplitter { max_bytes, partial: Vec::new(), after_cr: false }
    }

    /// A line that is too large is an error however it was split into chunks.
    pub fn push(
        &mut self,
        bytes: &[u8],
        line: &mut dyn FnMut(&[u8]) -> Result<(), EventTooLarge>,
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.after_cr && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        if !bytes.is_empty() {
            self.after_cr = false;
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            if self.partial.len() + at > self.max_bytes {
                return Err(EventTooLarge);
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
        if self.partial.len() + rest.len() > self.max_bytes {
            return Err(EventTooLarge);
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// The bytes of a line that is not complete.
    pub fn partial(&self) -> &[u8] {
        &self.partial
    }

    /// The bytes after the last line end.
    pub fn into_remainder(self) -> Vec<u8> {
        self.partial
    }
}
