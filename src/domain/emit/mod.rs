//! What rules can `emit:`, with the fields of each kind. Rules of backends emit events; rules of dialects emit the
//! items of a request, and observations about captured frames.

mod capture;
mod events;
mod request;

pub use capture::{DELTA_KINDS, OBSERVATIONS};
pub use events::{ANNOTATION_KINDS, EVENTS};
pub use request::*;

/// The type of a field that a rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A string; numbers and booleans are converted to text.
    Text,
    Int,
    Number,
    Bool,
    /// One of a closed set of names.
    Enum(&'static [&'static str]),
    /// One string or a list of them.
    TextOrList,
    /// Any JSON, with key order and exact numbers preserved.
    Json,
    /// A list of content parts, built by the named rules after `use:`.
    ContentParts,
}

#[derive(Debug)]
pub struct FieldSpec {
    pub name: &'static str,
    pub field_type: FieldType,
}

/// One kind of thing that a rule can emit.
#[derive(Debug)]
pub struct EmitKind {
    pub name: &'static str,
    /// For the generated schema and reference.
    pub description: &'static str,
    pub fields: &'static [FieldSpec],
    /// Nothing is emitted if all of these fields are absent. If the list is empty, it is always emitted.
    pub payload: &'static [&'static str],
}

/// The kinds that one category of rules can emit.
#[derive(Debug)]
pub struct EmitGrammar {
    /// The noun for one of its kinds in diagnostics.
    pub noun: &'static str,
    /// Treat empty strings as absent: an empty delta of a stream carries nothing, an empty message of a request does.
    pub skip_empty: bool,
    pub kinds: &'static [EmitKind],
}

impl EmitGrammar {
    pub fn find(&self, name: &str) -> Option<&'static EmitKind> {
        self.kinds.iter().find(|w| w.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.iter().map(|w| w.name)
    }
}

const fn field(name: &'static str, field_type: FieldType) -> FieldSpec {
    FieldSpec { name, field_type }
}

const CHOICE: FieldSpec = field("choice", FieldType::Int);
const PART: FieldSpec = field("part", FieldType::Int);
