//! The schemas that an OpenAPI document refers to, as its components: flat, and in the form that client generators
//! understand.

use super::definitions::Definitions;
use crate::mapping::Plan;
use serde_json::{Map, Value, json};

pub struct Components<'p> {
    definitions: Definitions<'p>,
    /// Schemas that are not in the set's files, by name.
    fixed: Map<String, Value>,
}

const PREFIX: &str = "#/components/schemas/";

impl<'p> Components<'p> {
    pub fn new(plan: &'p Plan) -> Components<'p> {
        Components { definitions: Definitions::new(plan, PREFIX, None), fixed: Map::new() }
    }

    /// `chat/body.json`, or `responses/events.json#/$defs/x`, as a reference within the document.
    pub fn reference(&mut self, name: &str) -> Value {
        json!({ "$ref": self.definitions.reference(name) })
    }

    /// A reference to a schema of the gateway itself, with a name that no file of a set can have.
    pub fn fixed(&mut self, name: &str, schema: &Value) -> Value {
        self.fixed.insert(name.to_owned(), schema.clone());
        json!({ "$ref": format!("{PREFIX}{name}") })
    }

    pub fn title(&mut self, name: &str) -> Option<String> {
        let file = name.split('#').next().unwrap_or_default();
        self.definitions.member(file, "title")?.as_str().map(str::to_owned)
    }

    pub fn schemas(self) -> Map<String, Value> {
        let mut schemas = self.definitions.into_schemas();
        schemas.extend(self.fixed);
        for schema in schemas.values_mut() {
            for_generators(schema);
        }
        schemas.sort_keys();
        schemas
    }
}

/// Generators name a class after `title`, and refuse two classes with one name: the name of the component is unique.
fn for_generators(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("$schema");
        if let Some(title) = members.shift_remove("title") {
            members.entry("description").or_insert(title);
        }
    }
    state_items(schema);
}

/// An array without `items` accepts any elements; generators need it in writing.
fn state_items(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_array = members.get("type").is_some_and(|kind| match kind {
                Value::Array(kinds) => kinds.iter().any(|kind| kind == "array"),
                kind => kind == "array",
            });
            if is_array && !members.contains_key("items") && !members.contains_key("prefixItems") {
                members.insert("items".into(), json!({}));
            }
            for (keyword, value) in members {
                if !matches!(keyword.as_str(), "const" | "enum" | "default" | "examples") {
                    state_items(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(state_items),
        _ => {}
    }
}
