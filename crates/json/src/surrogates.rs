//! Strings that begin or end with half a character.

/// A string whose JSON text began with a lone low surrogate or ended in a lone high one: half of
/// a character that was cut between two pieces.
///
/// Backends that stream by UTF-16 units send `"\ud83d"` and then `"\ude00"`. Neither is text, but
/// the two together are, so the halves are kept until their other halves arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Torn {
    /// The low surrogate before the text.
    pub lead: Option<u16>,
    pub text: String,
    /// The high surrogate after the text.
    pub tail: Option<u16>,
}

impl Torn {
    /// The text with U+FFFD for each half: what a reader sees if the other half never comes.
    pub fn lossy(&self) -> String {
        let mut whole = String::with_capacity(self.text.len() + 6);
        if self.lead.is_some() {
            whole.push(char::REPLACEMENT_CHARACTER);
        }
        whole.push_str(&self.text);
        if self.tail.is_some() {
            whole.push(char::REPLACEMENT_CHARACTER);
        }
        whole
    }
}
