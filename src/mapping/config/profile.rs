//! A profile file: policies, the variables that set some, names and patches that are laid over dialects.

use super::rename_fields::{Names, Rename};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Entry, Kind, Node};

#[derive(Clone, Copy)]
pub struct Profile<'n> {
    pub name: &'n str,
    pub policies: &'n [Entry],
    /// Variable to policy.
    pub environment: &'n [Entry],
    pub names: &'n [Entry],
    pub patch: &'n [Entry],
}

impl<'n> Profile<'n> {
    pub fn parse(node: &'n Node, cx: Cx) -> Option<Profile<'n>> {
        let fields = Fields::of(node, "a profile", cx)?;
        let name = fields.required_text("profile")?;
        let profile = Profile {
            name,
            policies: fields.map("policies"),
            environment: fields.map("environment"),
            names: fields.map("names"),
            patch: fields.map("patch"),
        };
        fields.done();
        Some(profile)
    }

    /// What fields of a dialect are called instead.
    pub fn renames(&self, dialect: &str, cx: Cx) -> Names {
        let Some(entry) = self.names.iter().find(|e| e.key == dialect) else { return Names::default() };
        let Kind::Map(renames) = &entry.value.kind else {
            cx.wrong_type(&entry.value, "a map from the old name to the new one");
            return Names::default();
        };
        let rename = |e: &Entry| {
            let to = text_of(&e.value, cx)?.to_owned();
            Some(Rename { from: e.key.clone(), to, span: e.key_span })
        };
        Names::new(renames.iter().filter_map(rename).collect())
    }
}
