//! Validation of trees by JSON Schema draft 2020-12, without conversion.
//!
//! All generics of `jsonschema` are instantiated in this module. [`Schema`] is a concrete type, so that other crates do
//! not compile the validator again.

mod alternatives;
mod evaluations;
mod inspect;
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
}

impl Schema {
    /// Does not allocate, because every frame is validated.
    pub fn is_valid(&self, tree: &Tree) -> bool {
        self.validator.is_valid(JsonNode::from(tree))
    }

    /// Whether the validity of a document can depend on more than the type of a member with this name, wherever it is.
    pub fn reads_value_of(&self, member: &str) -> bool {
        self.reads.contains(member)
    }

    /// [`is_valid`](Schema::is_valid) of the tree that the draft would be.
    pub fn accepts(&self, draft: &Draft) -> bool {
        self.validator.is_valid(JsonNode::from(draft))
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
