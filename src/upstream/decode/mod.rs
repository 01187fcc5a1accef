//! Bytes → raw events, by the framing of the backend's mapping. Pure push decoders: bytes may be cut anywhere.

mod lines;
mod sse;

use crate::canon::{Ended, Tree};
use crate::mapping::backend::{BackendPlan, Framing};
use lines::Lines;
use reframe_frame::Limits;
use sse::Sse;

/// What the bytes said.
#[derive(Debug, PartialEq)]
pub enum Decoded {
    Raw(Tree),
    Ended(Ended),
    /// Not JSON, and why. Whether that is the end is for the caller to say.
    Malformed(String),
}

/// More in one event than this is an attack, or a mistake: the connection is given up.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

pub enum Decoder {
    Sse(Sse),
    Ndjson(Lines),
    /// One answer, read whole.
    Json(Vec<u8>),
}

/// An event larger than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Decoder {
    pub fn new(backend: &BackendPlan, framing: Framing) -> Decoder {
        match framing {
            Framing::Sse => Decoder::Sse(Sse::new(backend.end.clone())),
            Framing::Ndjson | Framing::Jsonrpc => Decoder::Ndjson(Lines::default()),
            Framing::Json => Decoder::Json(Vec::new()),
        }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Decoded>) -> Result<(), TooLarge> {
        match self {
            Decoder::Sse(sse) => sse.push(bytes, out),
            Decoder::Ndjson(lines) => lines.push(bytes, &mut |line| {
                if !line.trim_ascii().is_empty() {
                    out.push(parse(line));
                }
            }),
            Decoder::Json(whole) => {
                whole.extend_from_slice(bytes);
                if whole.len() > MAX_EVENT_BYTES { Err(TooLarge) } else { Ok(()) }
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
            Decoder::Json(whole) if whole.trim_ascii().is_empty() => {}
            Decoder::Json(whole) => out.push(parse(&whole)),
        }
    }
}

fn parse(bytes: &[u8]) -> Decoded {
    let limits = Limits { max_bytes: MAX_EVENT_BYTES, ..Limits::default() };
    match Tree::parse_with(bytes, &limits) {
        Ok(tree) => Decoded::Raw(tree),
        Err(error) => Decoded::Malformed(error.to_string()),
    }
}
