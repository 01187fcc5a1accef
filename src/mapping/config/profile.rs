//! A profile file: policies, environment variables that set policies, renamed fields and patches of dialects.

use super::rename_fields::{FieldRename, RenameFields};
use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::notation::AnyValue;
use crate::mapping::grammar::policies::ProfilePolicies;
use crate::mapping::grammar::section;
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, YamlKind};
use std::collections::BTreeMap;

section! {
    /// Policies and small changes for one kind of client. A profile applies where a route names it.
    #[subject = "a profile"]
    #[title = "a profile"]
    pub struct Profile<'n> {
        /// Its name.
        name as "profile": &'n str,
        /// Policies: a value for every dialect, or dialect to value. A custom policy must be set per dialect.
        policies: Entries<'n, ProfilePolicies> = Entries::default(),
        /// Environment variables that set policies: variable to policy, or to `POLICY.DIALECT` for one dialect. They
        /// are read at startup and take precedence over `policies:`. A variable that is unset or empty sets nothing.
        environment: Entries<'n, Map<String>> = Entries::default(),
        /// Renamed fields in every frame, body and error of a dialect: dialect, old name, new name. The schemas must
        /// know the new name.
        rename_fields: Entries<'n, Map<BTreeMap<String, String>>> = Entries::default(),
        /// Changes to a dialect. Maps are merged; `$remove` deletes a key, `{ $replace: VALUE }` replaces a map, `{
        /// $add: VALUE }` adds a key, `{ $before: OTHER, … }` adds an entry before another; any other value replaces
        /// what is there.
        patch: Entries<'n, Map<BTreeMap<String, AnyValue>>> = Entries::default(),
    }
}

impl Profile<'_> {
    /// The renamed fields of a dialect.
    pub fn renames(&self, dialect: &str, cx: LoadContext) -> RenameFields {
        let Some(entry) = self.rename_fields.iter().find(|e| e.key == dialect) else { return RenameFields::default() };
        let YamlKind::Map(renames) = &entry.value.kind else {
            cx.wrong_type(&entry.value, "a map from the old name to the new one");
            return RenameFields::default();
        };
        let rename = |e: &Entry| {
            let to = text_of(&e.value, cx)?.to_owned();
            Some(FieldRename { from: e.key.clone(), to, span: e.key_span })
        };
        RenameFields::new(renames.iter().filter_map(rename).collect())
    }
}
