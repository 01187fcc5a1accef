//! Frames: one unit sent to the client, and its format on the wire.

use super::{MomentKind, Tree, named_enum};
use std::sync::Arc;

/// One frame of a response stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The frame's name in the mapping.
    pub name: Arc<str>,
    pub moment: MomentKind,
    /// The SSE event name, if the dialect's framing sets one.
    pub event: Option<String>,
    pub body: FrameBody,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBody {
    Data(Tree),
    /// Plain text, for a terminator.
    Text(String),
    /// An SSE comment.
    Comment(String),
}

named_enum! {
    /// The format of a response stream.
    pub enum StreamFormat {
        Sse = "sse",
        Ndjson = "ndjson",
    }
}
