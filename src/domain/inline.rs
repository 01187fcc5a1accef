//! Inline blocks: structure that a model writes into its text, such as `<think>…</think>` or a call between tags.

use super::named_enum;

/// The text between `open` and `close`, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineBlock {
    pub name: String,
    pub open: String,
    pub close: String,
    pub position: BlockPosition,
    pub content: BlockContent,
}

named_enum! {
    /// Where in the text of a choice a block can begin.
    pub enum BlockPosition {
        /// Everywhere.
        Anywhere = "anywhere",
        /// Only before the first text that is not white space.
        Start = "start",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockContent {
    Reasoning {
        /// The text of a choice begins inside the block.
        starts_open: bool,
    },
    Call(CallBlock),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBlock {
    pub format: CallFormat,
    /// The id of a call, with `{choice}` and `{ordinal}`. Without it the turn generates one.
    pub id: Option<String>,
    /// A block with more bytes than this is text.
    pub max_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFormat {
    /// Paths of members.
    Json { id: Option<Vec<String>>, name: Vec<String>, arguments: Vec<String> },
    /// Names of elements. Without `arguments`, all other elements are the arguments.
    Xml { name: String, arguments: Option<String> },
}
