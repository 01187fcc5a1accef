//! A profile file: policies, environment variables that set policies, renamed fields and patches of dialects.

use super::rename_fields::{FieldRename, RenameFields};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

#[derive(Clone, Copy)]
pub struct Profile<'n> {
    pub name: &'n str,
    pub policies: &'n [Entry],
    /// Environment variable to policy.
    pub environment: &'n [Entry],
    pub rename_fields: &'n [Entry],
    pub patch: &'n [Entry],
}

impl<'n> Profile<'n> {
    pub fn parse(node: &'n Node, cx: LoadContext) -> Option<Profile<'n>> {
        let fields = FieldReader::of(node, "a profile", cx)?;
        let name = fields.required_text("profile")?;
        let profile = Profile {
            name,
            policies: fields.map("policies"),
            environment: fields.map("environment"),
            rename_fields: fields.map("rename_fields"),
            patch: fields.map("patch"),
        };
        fields.finish();
        Some(profile)
    }

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
