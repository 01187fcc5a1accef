//! What each kind of mapping file may hold, for editors and for people: the JSON Schemas in `schemas/mapping/` and
//! `docs/mapping-reference.md` are made from the types below and their comments.
//!
//! The loader does not read through these types: it walks a tree that knows its places, and says more than a schema can.
//! Closed words come from the loader's own lists, and `tests/schema.rs` holds that both accept the same files.

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

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// A kind of mapping file.
pub struct Kind {
    pub name: &'static str,
    /// Which files are of this kind.
    pub files: &'static str,
    make: fn(SchemaGenerator) -> Schema,
}

pub const KINDS: &[Kind] = &[
    kind::<gateway::Gateway>("gateway", "gateway.yaml"),
    kind::<shared::Shared>("shared", "shared.yaml"),
    kind::<backend::Backend>("backend", "backends/*.yaml"),
    kind::<dialect::Dialect>("dialect", "dialects/*.yaml"),
    kind::<profile::Profile>("profile", "profiles/*.yaml"),
    kind::<script::Script>("script", "scripts/*.yaml"),
    kind::<test::TestFile>("test", "*.test.yaml"),
];

const fn kind<T: JsonSchema>(name: &'static str, files: &'static str) -> Kind {
    Kind { name, files, make: SchemaGenerator::into_root_schema_for::<T> }
}

impl Kind {
    pub fn find(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|k| k.name == name)
    }

    /// The kind of a file, by its place in a set: `dialects/chat.yaml`.
    pub fn of(file: &str) -> Option<&'static Kind> {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let kind = match (folder, name) {
            (_, name) if name.ends_with(".test.yaml") => "test",
            ("", "gateway.yaml") => "gateway",
            ("", "shared.yaml") => "shared",
            (folder, _) => folder.strip_suffix('s').unwrap_or(folder),
        };
        Kind::find(kind)
    }

    /// JSON Schema, draft 2020-12.
    pub fn schema(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(Plain));
        (self.make)(settings.with_transform(RecursiveTransform(NoNull)).into_generator()).to_value()
    }
}

/// `Option` says that a key may be left out, and schemars takes it for "may be null" too. The null that it adds stands
/// last; one that stands first was meant.
#[derive(Clone)]
struct NoNull;

impl Transform for NoNull {
    fn transform(&mut self, schema: &mut Schema) {
        let required = schema.get("required").cloned().unwrap_or_default();
        let needed = |key: &str| required.as_array().is_some_and(|r| r.iter().any(|k| k == key));
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        for (_, property) in properties.iter_mut().filter(|(key, _)| !needed(key)) {
            without_null(property);
        }
    }
}

fn without_null(property: &mut Value) {
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
    let Some(Value::Array(ways)) = members.get_mut("anyOf") else { return };
    if ways.last().is_some_and(|way| way["type"] == "null") {
        ways.pop();
    }
    if let [Value::Object(only)] = ways.as_slice() {
        let only = only.clone();
        members.shift_remove("anyOf");
        for (key, value) in only {
            members.entry(key).or_insert(value);
        }
    }
}

/// What many editors understand, too.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        // A comment's lines are broken where the source is; an editor breaks them where it likes.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        // All keys of a map stand in one place here, also those that several kinds of map share.
        if let Some(closed) = schema.remove("unevaluatedProperties") {
            schema.insert("additionalProperties".to_owned(), closed);
        }
        if schema.get("format").is_some_and(|f| f == "int64") {
            schema.remove("format");
        }
    }
}
