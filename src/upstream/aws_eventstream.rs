//! The binary event stream of AWS (`application/vnd.amazon.eventstream`): messages with a length, typed headers, a payload
//! and two checksums.

use super::decode::{DecoderOutput, EventTooLarge, parse};
use crate::domain::{StreamEnd, Tree};

/// Splits bytes into messages. At most one message is kept.
#[derive(Debug)]
pub struct AwsEventstreamDecoder {
    buffer: Vec<u8>,
    max_bytes: usize,
    /// The member that receives the type of an event.
    event_member: Option<String>,
    /// Bytes of payloads.
    data_bytes: u64,
    /// Nothing after a message that cannot be read is a message.
    is_corrupt: bool,
}

/// Two lengths and their checksum.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// The headers of a message that matter.
#[derive(Debug, Default)]
struct Headers {
    /// `:event-type`, `:exception-type` or `:error-code`.
    name: Option<String>,
    /// `:error-message`
    message: Option<String>,
}

impl AwsEventstreamDecoder {
    pub fn new(event_member: Option<String>, max_bytes: usize) -> AwsEventstreamDecoder {
        AwsEventstreamDecoder { buffer: Vec::new(), max_bytes, event_member, data_bytes: 0, is_corrupt: false }
    }

    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<DecoderOutput>) -> Result<(), EventTooLarge> {
        while !bytes.is_empty() && !self.is_corrupt {
            let wanted = match self.message_length() {
                None => PRELUDE,
                Some(Ok(length)) if length > self.max_bytes => return Err(EventTooLarge),
                Some(Ok(length)) => length,
                Some(Err(why)) => {
                    self.corrupt(why, out);
                    break;
                }
            };
            let taken = (wanted - self.buffer.len()).min(bytes.len());
            self.buffer.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if wanted > PRELUDE && self.buffer.len() == wanted {
                let message = std::mem::take(&mut self.buffer);
                match self.decode(&message) {
                    Ok(decoded) => out.extend(decoded),
                    Err(why) => self.corrupt(why, out),
                }
            }
        }
        // A length that is wrong or too large must not wait for the rest of its message.
        match self.message_length() {
            Some(Err(why)) if !self.is_corrupt => self.corrupt(why, out),
            Some(Ok(length)) if length > self.max_bytes => return Err(EventTooLarge),
            _ => {}
        }
        Ok(())
    }

    pub fn finish(self, out: &mut Vec<DecoderOutput>) {
        if !self.buffer.is_empty() && !self.is_corrupt {
            out.push(DecoderOutput::Ended(StreamEnd::Disconnected("the stream ended inside a message".into())));
        }
    }

    fn corrupt(&mut self, why: &str, out: &mut Vec<DecoderOutput>) {
        self.is_corrupt = true;
        out.push(DecoderOutput::Corrupt(why.to_owned()));
    }

    /// The length of the message in the buffer; `None` until its prelude is there.
    fn message_length(&self) -> Option<Result<usize, &'static str>> {
        let prelude = self.buffer.get(..PRELUDE)?;
        let (lengths, checksum) = prelude.split_at(PRELUDE - CHECKSUM);
        if crc32fast::hash(lengths) != number(checksum) {
            return Some(Err("the checksum of a message's length is wrong"));
        }
        let (total, headers) = (number(&lengths[..4]) as usize, number(&lengths[4..]) as usize);
        let is_possible = headers.checked_add(PRELUDE + CHECKSUM).is_some_and(|least| least <= total);
        Some(if is_possible { Ok(total) } else { Err("the length of a message is wrong") })
    }

    /// A whole message.
    fn decode(&mut self, message: &[u8]) -> Result<Option<DecoderOutput>, &'static str> {
        let (content, checksum) = message.split_at(message.len() - CHECKSUM);
        if crc32fast::hash(content) != number(checksum) {
            return Err("the checksum of a message is wrong");
        }
        let (headers, payload) = content[PRELUDE..].split_at(number(&content[4..8]) as usize);
        let headers = Headers::read(headers).ok_or("the headers of a message cannot be read")?;
        self.data_bytes += payload.len() as u64;
        let mut decoded = match payload.trim_ascii() {
            [] if headers.name.is_none() => return Ok(None),
            [] => DecoderOutput::Raw(Tree::map([] as [(&str, Tree); 0])),
            _ => parse(payload),
        };
        if let DecoderOutput::Raw(raw) = &mut decoded
            && raw.as_map().is_some()
        {
            let members = [(self.event_member.as_deref(), headers.name), (Some("message"), headers.message)];
            for (member, value) in members {
                if let (Some(member), Some(value)) = (member, value)
                    && raw.get(member).is_none_or(Tree::is_null)
                {
                    raw.insert(member, Tree::from(value));
                }
            }
        }
        Ok(Some(decoded))
    }
}

impl Headers {
    /// `None` if they end too early or have an unknown type.
    fn read(mut bytes: &[u8]) -> Option<Headers> {
        let mut headers = Headers::default();
        while let Some((length, rest)) = bytes.split_first() {
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            let (kind, rest) = rest.split_first()?;
            let (value, rest) = match kind {
                // True and false have no value.
                0 | 1 => rest.split_at_checked(0)?,
                2 => rest.split_at_checked(1)?,
                3 => rest.split_at_checked(2)?,
                4 => rest.split_at_checked(4)?,
                // A long, and a timestamp.
                5 | 8 => rest.split_at_checked(8)?,
                // Bytes, and a string.
                6 | 7 => {
                    let (length, rest) = rest.split_at_checked(2)?;
                    rest.split_at_checked(number(length) as usize)?
                }
                // A UUID.
                9 => rest.split_at_checked(16)?,
                _ => return None,
            };
            bytes = rest;
            let text = || String::from_utf8_lossy(value).into_owned();
            match name {
                b":event-type" | b":exception-type" | b":error-code" => headers.name = Some(text()),
                b":error-message" => headers.message = Some(text()),
                _ => {}
            }
        }
        Some(headers)
    }
}

/// Big-endian.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/upstream_aws_eventstream.rs"]
mod tests;
