//! Inline blocks: structure that a model writes into its text, such as `<think>…</think>` or a call between tags.

use super::call_id::CallIdFormat;
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
    /// The id of a call. Without it the turn generates one.
    pub id: Option<CallIdFormat>,
    pub tools: BlockTools,
    /// A block with more bytes than this is text.
    pub max_bytes: usize,
    pub strict: StrictCalls,
    /// Broken JSON is repaired, where it is clear what is meant.
    pub repair: bool,
    pub unclosed: UnclosedBlock,
}

named_enum! {
    /// The tools that a block may call.
    pub enum BlockTools {
        /// Those that the client offers in its request; any other block is text.
        Offered = "offered",
        /// Any tool, unless the client wants no calls: for clients that describe their tools in the prompt.
        Any = "any",
    }
}

named_enum! {
    /// Whether a call without required arguments fails the turn.
    pub enum StrictCalls {
        /// No.
        Off = "off",
        /// If the client declares its tool as strict.
        PerTool = "per_tool",
    }
}

named_enum! {
    /// A block that is not closed at the end of the text.
    pub enum UnclosedBlock {
        /// A call, if it can be read.
        Call = "call",
        Text = "text",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFormat {
    /// Paths of members.
    Json { id: Option<Vec<String>>, name: Vec<String>, arguments: Vec<String> },
    /// Names of elements. Without `arguments`, all other elements are the arguments. `spaced`: a space after each `:`
    /// and `,` between them.
    Xml { name: String, arguments: Option<String>, spaced: bool },
}
