//! Validation of trees by JSON Schema draft 2020-12, without conversion.
//!
//! All generics of `jsonschema` are instantiated in this module. [`Schema`] is a concrete type, so that other crates do
//! not compile the validator again.

mod alternatives;
mod evaluations;
mod inspect;
mod known_shapes;
mod location;
mod node;
mod open_objects;
mod references;
mod set;
mod subschemas;
mod value_reads;
mod violation;

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;

use known_shapes::KnownShapes;
pub use known_shapes::{DocumentShape, OuterShape};
use node::{JsonNode, TreeJson};
pub use set::{SchemaError, SchemaSet};
pub use violation::{SchemaViolation, ViolationKind};

use crate::{Draft, Tree};
use value_reads::ValueReads;

/// One compiled schema. Clones share it.
#[derive(Clone)]
pub struct Schema {
    validator: Arc<Validator<TreeJson>>,
    reads: Arc<ValueReads>,
    known: Arc<KnownShapes>,
}

impl Schema {
    /// Does not allocate, because every frame is validated.
    pub fn is_valid(&self, tree: &Tree) -> bool {
        self.validator.is_valid(JsonNode::from(tree))
    }

    /// Whether the validity of a document can depend on more than the type of the value inside these members, the
    /// innermost last.
    pub fn reads_value_in<'n>(&self, members: impl DoubleEndedIterator<Item = &'n str>) -> bool {
        self.reads.contains(members)
    }

    /// The same result as [`is_valid`](Schema::is_valid). A tree of the same shape as one that was valid is not validated
    /// again.
    pub fn accepts(&self, tree: &Tree) -> bool {
        self.accepts_node(JsonNode::from(tree))
    }

    /// [`accepts`](Schema::accepts) the tree that the draft would be.
    pub fn accepts_draft(&self, draft: &Draft) -> bool {
        self.accepts_node(JsonNode::from(draft))
    }

    /// The shape of a document that is written value by value; `None` if validity may depend on everything.
    pub fn shape(&self) -> Option<DocumentShape<'_>> {
        self.known.shape(&self.reads)
    }

    /// Whether a document of this shape was valid.
    pub fn knows(&self, shape: &DocumentShape) -> bool {
        self.known.contains(shape)
    }

    fn accepts_node(&self, node: JsonNode) -> bool {
        self.known.accept(node, &self.reads, || self.validator.is_valid(node))
    }

    /// The first violation. It is searched for only if [`is_valid`](Schema::is_valid) returns false.
    pub fn check(&self, tree: &Tree) -> Result<(), SchemaViolation> {
        if self.is_valid(tree) {
            return Ok(());
        }
        self.validator.validate(JsonNode::from(tree)).map_err(|error| SchemaViolation::of(&error))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}
