//! Bytes → raw events, by the framing of the backend's mapping. Pure push decoders: bytes may be cut anywhere.

mod lines;
mod sse;

use crate::domain::{Ended, Tree};
use crate::mapping::config::backend::{BackendPlan, Framing};
use lines::Lines;
use reframe_json::Limits;
use sse::Sse;

/// What the bytes said.
#[derive(Debug, PartialEq)]
pub enum Decoded {
    Raw(Tree),
    Ended(Ended),
    /// Not JSON, and why. Whether that is the end is for the caller to say.
    Malformed(String),
}

pub enum Decoder {
    Sse(Sse),
    Ndjson(Lines),
    /// One answer, read whole.
    Json(Whole),
}

/// An event larger than the caller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

#[derive(Debug)]
pub struct Whole {
    bytes: Vec<u8>,
    most: usize,
}

impl Decoder {
    /// `most`: the bytes of one event.
    pub fn new(backend: &BackendPlan, framing: Framing, most: usize) -> Decoder {
        match framing {
            Framing::Sse => Decoder::Sse(Sse::new(backend, most)),
            Framing::Ndjson | Framing::Jsonrpc => Decoder::Ndjson(Lines::new(most)),
            Framing::Json => Decoder::Json(Whole { bytes: Vec::new(), most }),
        }
    }

    /// What stood before an event that is too large is in `out` all the same.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Decoded>) -> Result<(), TooLarge> {
        match self {
            Decoder::Sse(sse) => sse.push(bytes, out),
            Decoder::Ndjson(lines) => lines.push(bytes, &mut |line| {
                if !line.trim_ascii().is_empty() {
                    out.push(parse(line));
                }
                Ok(())
            }),
            Decoder::Json(whole) => {
                whole.bytes.extend_from_slice(bytes);
                if whole.bytes.len() > whole.most { Err(TooLarge) } else { Ok(()) }
            }
        }
    }

    /// The bytes are over: what waits for its end has it now.
    pub fn finish(self, out: &mut Vec<Decoded>) {
        match self {
            Decoder::Sse(sse) => sse.finish(out),
            Decoder::Ndjson(lines) => {
                let rest = lines.rest();
                if !rest.trim_ascii().is_empty() {
                    out.push(parse(&rest));
                }
            }
            Decoder::Json(whole) if whole.bytes.trim_ascii().is_empty() => {}
            Decoder::Json(whole) => out.push(parse(&whole.bytes)),
        }
    }
}

fn parse(bytes: &[u8]) -> Decoded {
    // How many bytes there may be has been seen to.
    let limits = Limits { max_bytes: bytes.len(), ..Limits::default() };
    match Tree::parse_with(bytes, &limits) {
        Ok(tree) => Decoded::Raw(tree),
        Err(error) => Decoded::Malformed(error.to_string()),
    }
}
