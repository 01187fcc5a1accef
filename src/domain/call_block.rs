//! Call blocks: tool calls written into the text of a response, for clients that find calls in text.

/// How a call is written: a line for each element between `open` and `close`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBlockFormat {
    pub open: String,
    pub close: String,
    /// Before each element.
    pub indent: String,
    /// The element with the name of the tool.
    pub name: String,
    /// The element with arguments that cannot be written one by one.
    pub arguments: String,
    /// Between two blocks.
    pub delimiter: String,
    /// The arguments of a tool in their order. Other arguments follow, sorted by name.
    pub parameters: Vec<(String, Vec<String>)>,
}

impl CallBlockFormat {
    pub fn parameters_of(&self, tool: &str) -> Option<&[String]> {
        self.parameters.iter().find(|(name, _)| name == tool).map(|(_, parameters)| parameters.as_slice())
    }
}
