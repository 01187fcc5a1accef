//! The format of each kind of mapping file. The JSON Schemas in `schemas/mapping/` and the mapping reference are
//! generated from the types below and their doc comments.
//!
//! The loader does not deserialize into these types: it reads a YAML tree with spans, which gives better diagnostics
//! than a schema. Enumerations come from the loader's own lists, and `tests/it/mapping_schemas.rs` checks that both accept
//! the same files.

#![allow(dead_code, reason = "schemars reads the declarations; nothing constructs the values")]

pub mod backend;
pub mod capabilities;
pub mod dialect;
pub mod field;
pub mod gateway;
pub mod notation;
pub mod policies;
pub mod profile;
pub mod reference;
pub mod rules;
pub mod script;
pub mod shared;
pub mod skeleton;
pub mod test;

use crate::mapping::source::layout::SetFile;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// A kind of mapping file.
pub struct FileKind {
    pub name: &'static str,
    /// The pattern of its file names.
    pub files: &'static str,
    root_schema: fn(SchemaGenerator) -> Schema,
}

pub const FILE_KINDS: &[FileKind] = &[
    kind::<gateway::Gateway>("gateway", "gateway.yaml"),
    kind::<shared::Shared>("shared", "shared.yaml"),
    kind::<backend::Backend>("backend", "backends/*.yaml"),
    kind::<dialect::Dialect>("dialect", "dialects/*.yaml"),
    kind::<profile::Profile>("profile", "profiles/*.yaml"),
    kind::<script::Script>("script", "scripts/*.yaml"),
    kind::<test::TestFile>("test", "*.test.yaml"),
];

const fn kind<T: JsonSchema>(name: &'static str, files: &'static str) -> FileKind {
    FileKind { name, files, root_schema: SchemaGenerator::into_root_schema_for::<T> }
}

impl FileKind {
    pub fn find(name: &str) -> Option<&'static FileKind> {
        FILE_KINDS.iter().find(|k| k.name == name)
    }

    /// The kind of a file, by its path in a set: `dialects/chat.yaml`.
    pub fn of(file: &str) -> Option<&'static FileKind> {
        FileKind::find(SetFile::of(file)?.name())
    }

    /// JSON Schema, draft 2020-12.
    pub fn schema(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(SimplifyForEditors));
        (self.root_schema)(settings.with_transform(RecursiveTransform(StripOptionNull)).into_generator()).to_value()
    }
}

/// An `Option` field means that the key is optional, but schemars also allows null. The null that schemars adds is the
/// last alternative; a null in first position is intended.
#[derive(Clone)]
struct StripOptionNull;

impl Transform for StripOptionNull {
    fn transform(&mut self, schema: &mut Schema) {
        let required = schema.get("required").cloned().unwrap_or_default();
        let is_required = |key: &str| required.as_array().is_some_and(|r| r.iter().any(|k| k == key));
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        for (_, property) in properties.iter_mut().filter(|(key, _)| !is_required(key)) {
            strip_null(property);
        }
    }
}

fn strip_null(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        if types.last().is_some_and(|t| t == "null") {
            types.pop();
        }
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = members.get_mut("enum")
        && words.last().is_some_and(Value::is_null)
    {
        words.pop();
    }
    let Some(Value::Array(alternatives)) = members.get_mut("anyOf") else { return };
    if alternatives.last().is_some_and(|alternative| alternative["type"] == "null") {
        alternatives.pop();
    }
    if let [Value::Object(only)] = alternatives.as_slice() {
        let only = only.clone();
        members.shift_remove("anyOf");
        for (key, value) in only {
            members.entry(key).or_insert(value);
        }
    }
}

/// Uses only what most editors understand.
#[derive(Clone)]
struct SimplifyForEditors;

impl Transform for SimplifyForEditors {
    fn transform(&mut self, schema: &mut Schema) {
        // Doc comments contain line breaks of the source; editors wrap text themselves.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        // Flattened structs are already merged into one object, so `additionalProperties` is sufficient.
        if let Some(closed) = schema.remove("unevaluatedProperties") {
            schema.insert("additionalProperties".to_owned(), closed);
        }
        if schema.get("format").is_some_and(|f| f == "int64") {
            schema.remove("format");
        }
    }
}
