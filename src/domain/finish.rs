use super::words;

words! {
    /// Why a choice ended. Dialects turn these into their own words by a table.
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
    /// The answer was cut short: what is there is not all that the model had to say.
    pub fn is_cut(self) -> bool {
        match self {
            Finish::Length | Finish::ContentFilter => true,
            Finish::Stop | Finish::ToolCalls | Finish::FunctionCall | Finish::Cancelled | Finish::Error => false,
        }
    }
}
