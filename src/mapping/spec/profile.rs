//! profiles/*.yaml.

use super::notation::{AnyValue, Generated, Map};
use super::policies;
use schemars::JsonSchema;
use std::collections::BTreeMap;

/// Policies and small changes for one kind of client. A profile applies where a route names it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a profile")]
pub struct Profile {
    /// Its name.
    pub profile: String,
    /// Policies: a value for every dialect, or dialect to value. A custom policy must be set per dialect.
    #[schemars(default, schema_with = "policies::of_profile", title = "policies")]
    pub policies: Generated,
    /// Environment variables that set policies: variable to policy, or to `POLICY.DIALECT` for one dialect. They are
    /// read at startup and take precedence over `policies:`. A variable that is unset or empty sets nothing.
    pub environment: Option<Map<String>>,
    /// Renamed fields in every frame, body and error of a dialect: dialect, old name, new name. The schemas must know
    /// the new name.
    pub rename_fields: Option<Map<BTreeMap<String, String>>>,
    /// Changes to a dialect. Maps are merged; `$remove` deletes a key, `{ $replace: VALUE }` replaces a map, `{ $add:
    /// VALUE }` adds a key, `{ $before: OTHER, … }` adds an entry before another; any other value replaces what is
    /// there.
    pub patch: Option<Map<BTreeMap<String, AnyValue>>>,
}
