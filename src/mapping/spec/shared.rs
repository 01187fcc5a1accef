//! shared.yaml.

use super::notation::{Map, Table};
use super::skeleton::Skeleton;
use schemars::JsonSchema;

/// Tables and fragments for every file of the set. A table or fragment of the same name in the file itself takes
/// precedence.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "shared.yaml", extend("type" = ["null", "object"]))]
pub struct Shared {
    /// Tables, by name.
    pub tables: Option<Map<Table>>,
    /// Fragments, by name: skeletons for `$use`.
    pub fragments: Option<Map<Skeleton>>,
}
