//! Strings that begin or end with a lone surrogate.

/// A string that begins with a lone low surrogate or ends with a lone high surrogate: half of a surrogate pair that was
/// split between two deltas.
///
/// Backends that split their stream at UTF-16 code units send `"\ud83d"` and then `"\ude00"`. Neither is valid text,
/// but the two together are, so a surrogate is kept until its counterpart arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurrogateString {
    /// The lone low surrogate before the text.
    pub leading_low: Option<u16>,
    /// The text between them.
    pub text: String,
    /// The lone high surrogate after the text.
    pub trailing_high: Option<u16>,
}

impl SurrogateString {
    /// The text with U+FFFD for each lone surrogate.
    pub fn to_string_lossy(&self) -> String {
        let mut whole = String::with_capacity(self.text.len() + 6);
        if self.leading_low.is_some() {
            whole.push(char::REPLACEMENT_CHARACTER);
        }
        whole.push_str(&self.text);
        if self.trailing_high.is_some() {
            whole.push(char::REPLACEMENT_CHARACTER);
        }
        whole
    }
}
