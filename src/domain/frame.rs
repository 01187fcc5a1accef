use super::{MomentKind, Tree, words};
use std::sync::Arc;

/// One unit that leaves for the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The name it has in the mapping.
    pub name: Arc<str>,
    pub moment: MomentKind,
    /// The SSE event name, where the dialect's framing gives one.
    pub event: Option<String>,
    pub body: FrameBody,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBody {
    Data(Tree),
    /// Bare text: a terminator.
    Text(String),
    /// An SSE comment.
    Comment(String),
}

words! {
    /// How frames become bytes.
    pub enum WireKind {
        Sse = "sse",
        Ndjson = "ndjson",
    }
}
