//! Schemas: a tree is checked as it stands, by JSON Schema draft 2020-12.
//!
//! Everything generic of `jsonschema` is instantiated in this module. [`Schema`] is a concrete
//! type, so no other crate compiles the validator again.

mod inspect;
mod location;
mod node;
mod open_objects;
mod references;
mod set;
mod subschemas;
mod violation;

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;

use node::TreeJson;
pub use set::{SchemaError, SchemaSet};
pub use violation::Breach;

use crate::Tree;

/// One compiled schema. A clone shares it.
#[derive(Clone)]
pub struct Schema(Arc<Validator<TreeJson>>);

impl Schema {
    /// Does not allocate: this is what every frame passes through.
    pub fn is_valid(&self, tree: &Tree) -> bool {
        self.0.is_valid(tree)
    }

    /// The first thing that is wrong with the tree. It is looked for only after
    /// [`is_valid`](Schema::is_valid) said that there is one.
    pub fn check(&self, tree: &Tree) -> Result<(), Breach> {
        if self.is_valid(tree) {
            return Ok(());
        }
        self.0.validate(tree).map_err(|error| Breach::of(&error))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}
