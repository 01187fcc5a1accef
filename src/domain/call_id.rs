//! The ids that the gateway gives to calls: a text with the places `{choice}` and `{ordinal}`.

use std::fmt;

/// For example `tool_{choice}_{ordinal}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallIdFormat(String);

impl fmt::Display for CallIdFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl CallIdFormat {
    /// `None` if calls of a choice would have the same id, or if another place is in it.
    pub fn new(text: &str) -> Option<CallIdFormat> {
        let literal = text.replace("{choice}", "").replace("{ordinal}", "");
        (text.contains("{ordinal}") && !literal.contains(['{', '}'])).then(|| CallIdFormat(text.to_owned()))
    }

    /// The id of a call: both numbers count from 0.
    pub fn id(&self, choice: usize, ordinal: usize) -> String {
        self.0.replace("{choice}", &choice.to_string()).replace("{ordinal}", &ordinal.to_string())
    }
}
