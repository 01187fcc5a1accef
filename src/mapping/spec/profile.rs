//! profiles/*.yaml.

use super::notation::{Anything, Generated, Map};
use super::policies;
use schemars::JsonSchema;
use std::collections::BTreeMap;

/// Policies and small changes for one kind of client. It is used where a route names it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a profile")]
pub struct Profile {
    /// Its name.
    pub profile: String,
    /// Named choices: a value for every dialect, or dialect to value. A policy of one dialect's own is set for that one.
    #[schemars(default, schema_with = "policies::of_profile", title = "policies")]
    pub policies: Generated,
    /// Variables of the process that set policies: variable to policy, or to `POLICY.DIALECT` for one dialect. They are read
    /// when the program starts and come after `policies:`; one that is not set, or is empty, sets nothing.
    pub environment: Option<Map<String>>,
    /// Fields that have another name in every frame, body and error of a dialect: dialect, old name, new name. The schemas
    /// must know the new name.
    pub rename_fields: Option<Map<BTreeMap<String, String>>>,
    /// Changes to a dialect. Maps merge; `$remove` deletes a key, `{ $replace: VALUE }` replaces a map, `{ $add: VALUE }` adds a
    /// key, `{ $before: OTHER, … }` adds an entry before another; any other value replaces what is there.
    pub patch: Option<Map<BTreeMap<String, Anything>>>,
}
