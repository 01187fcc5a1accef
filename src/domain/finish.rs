//! Finish reasons of a choice.

use super::named_enum;

named_enum! {
    /// The finish reason of a choice. Dialects map it to their own names with a table.
    pub enum Finish {
        Stop = "stop",
        Length = "length",
        ToolCalls = "tool_calls",
        FunctionCall = "function_call",
        ContentFilter = "content_filter",
        Cancelled = "cancelled",
        Error = "error",
    }
}

impl Finish {
    /// True if the output is incomplete.
    pub fn is_truncated(self) -> bool {
        match self {
            Finish::Length | Finish::ContentFilter => true,
            Finish::Stop | Finish::ToolCalls | Finish::FunctionCall | Finish::Cancelled | Finish::Error => false,
        }
    }
}
