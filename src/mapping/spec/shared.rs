//! shared.yaml.

use super::notation::{Map, Table};
use super::skeleton::Skeleton;
use schemars::JsonSchema;

/// Tables and parts for every file of the set. A file's own table or part of the same name comes first.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "shared.yaml", extend("type" = ["null", "object"]))]
pub struct Shared {
    /// Tables, by name.
    pub tables: Option<Map<Table>>,
    /// Named fragments: skeletons for `$use`.
    pub fragments: Option<Map<Skeleton>>,
}
