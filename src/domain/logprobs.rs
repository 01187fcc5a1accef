//! The log-probabilities of tokens, in a compact form: a long response has a hundred thousand of them, and as JSON trees
//! they would need four times the memory.

use super::Tree;
use super::emit::{EmitField, EmitSpec, EmittedFields, FieldType, take};
use std::mem::size_of;
use std::sync::Arc;

/// The log-probabilities of one text delta.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logprobs {
    /// Shared by the moment and the state of the turn.
    pub tokens: Arc<[TokenLogprob]>,
    /// How many values were left out because they are malformed.
    pub malformed: usize,
}

/// A token, or one of the alternatives at its position.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprob {
    /// A string, perhaps with half a character at its ends.
    pub token: Tree,
    /// A finite number, as the backend wrote it.
    pub logprob: Tree,
    pub bytes: TokenBytes,
    /// The most likely tokens at this position. Alternatives have none.
    pub top: Box<[TokenLogprob]>,
}

/// The UTF-8 bytes of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenBytes {
    Unknown,
    /// Those of its text: nearly always.
    OfText,
    /// Others: a part of a character has no text of its own.
    Other(Box<[u8]>),
}

impl Logprobs {
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Reads a list of tokens. What is malformed is left out and counted: one bad token does not cost the others.
    pub fn read(value: Tree) -> Logprobs {
        let mut malformed = 0;
        let tokens = read_tokens(value, Alternatives::Read, &mut malformed);
        Logprobs { tokens: tokens.into(), malformed }
    }

    /// The memory that they need, in bytes.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.tokens)
    }
}

impl EmitField for Logprobs {
    const SPEC: EmitSpec = EmitSpec::One(FieldType::Json);

    fn take(name: &str, fields: &mut EmittedFields) -> Option<Logprobs> {
        take(name, fields).map(Logprobs::read)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alternatives {
    Read,
    Ignore,
}

fn read_tokens(value: Tree, alternatives: Alternatives, malformed: &mut usize) -> Vec<TokenLogprob> {
    let Tree::List(items) = value else {
        *malformed += usize::from(!value.is_null());
        return Vec::new();
    };
    let mut tokens = Vec::with_capacity(items.len());
    for item in items {
        match read_token(item, alternatives, malformed) {
            Some(token) => tokens.push(token),
            None => *malformed += 1,
        }
    }
    tokens
}

/// `None` without a token, or with a log-probability that is no finite number: some servers send null for -∞.
fn read_token(value: Tree, alternatives: Alternatives, malformed: &mut usize) -> Option<TokenLogprob> {
    let Tree::Map(members) = value else { return None };
    let (mut token, mut logprob, mut bytes, mut top) = (Tree::Null, Tree::Null, Tree::Null, Vec::new());
    for (name, value) in members {
        match &*name {
            "token" => token = value,
            "logprob" => logprob = value,
            "bytes" => bytes = value,
            "top_logprobs" if alternatives == Alternatives::Read => {
                top = read_tokens(value, Alternatives::Ignore, malformed);
            }
            _ => {}
        }
    }
    let is_text = matches!(token, Tree::Str(_) | Tree::SurrogateString(_));
    if !is_text || logprob.as_f64().is_none() {
        return None;
    }
    let bytes = match bytes {
        Tree::Null => TokenBytes::Unknown,
        value => read_bytes(&value, &token).unwrap_or_else(|| {
            *malformed += 1;
            TokenBytes::Unknown
        }),
    };
    Some(TokenLogprob { token, logprob, bytes, top: top.into() })
}

fn read_bytes(value: &Tree, token: &Tree) -> Option<TokenBytes> {
    let byte = |number: &Tree| number.as_u64().and_then(|n| u8::try_from(n).ok());
    let bytes = value.as_list()?.iter().map(byte).collect::<Option<Vec<u8>>>()?;
    let is_of_text = token.as_str().is_some_and(|text| text.as_bytes() == bytes);
    Some(if is_of_text { TokenBytes::OfText } else { TokenBytes::Other(bytes.into()) })
}

impl TokenLogprob {
    /// The memory that it needs besides its place in a list, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let bytes = match &self.bytes {
            TokenBytes::Unknown | TokenBytes::OfText => 0,
            TokenBytes::Other(bytes) => bytes.len() + Tree::ALLOCATION_BYTES,
        };
        self.token.heap_bytes() + self.logprob.heap_bytes() + bytes + heap_bytes(&self.top)
    }

    /// `None` if the backend did not send them.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.bytes {
            TokenBytes::Unknown => None,
            TokenBytes::OfText => self.token.as_str().map(str::as_bytes),
            TokenBytes::Other(bytes) => Some(bytes),
        }
    }
}

fn heap_bytes(tokens: &[TokenLogprob]) -> usize {
    if tokens.is_empty() {
        return 0;
    }
    let list = size_of_val(tokens) + size_of::<[usize; 2]>() + Tree::ALLOCATION_BYTES;
    list + tokens.iter().map(TokenLogprob::heap_bytes).sum::<usize>()
}

#[cfg(test)]
#[path = "../../tests/unit/domain_logprobs.rs"]
mod tests;
