//! The schemas of files that are merged over layers: a layer need not have the required keys, and may remove or replace
//! what is below it.

use crate::mapping::config::layers::{SectionShape, merged_sections};
use crate::mapping::source::layout::SetFile;
use serde_json::{Value, json};

/// Allows what a layer may contain.
pub fn allow_layers(kind: SetFile, mut schema: Value) -> Value {
    if !matches!(kind, SetFile::Gateway | SetFile::Shared) {
        return schema;
    }
    for (key, shape) in merged_sections(kind) {
        let property = &mut schema["properties"][key];
        let name = property["$ref"].as_str().and_then(|at| at.strip_prefix("#/$defs/")).map(str::to_owned);
        match shape {
            SectionShape::Keys => {
                let Some(name) = name else { continue };
                for (_, inner) in schema["$defs"][&name]["properties"].as_object_mut().into_iter().flatten() {
                    *inner = removable(inner.take());
                }
            }
            SectionShape::Names => {
                property["additionalProperties"] = removable(property["additionalProperties"].take());
            }
            SectionShape::Elements => allow_removals(property),
        }
    }
    if let Some(document) = schema.as_object_mut() {
        // What a layer lacks is in the layer below it.
        document.remove("required");
        for (_, property) in document.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            *property = replaceable(removable(property.take()));
        }
    }
    schema
}

/// Elements of a list that remove one: `- $remove: NAME`.
fn allow_removals(list: &mut Value) {
    let items = if list["items"].is_null() { &mut list["then"]["items"] } else { &mut list["items"] };
    let removal = json!({
        "type": "object", "required": ["$remove"], "additionalProperties": false,
        "properties": { "$remove": {
            "type": "string", "description": "Removes the element with this name from the layers below this one.",
        } },
    });
    *items = either(json!({ "type": "object", "required": ["$remove"] }), removal, items.take());
}

fn removable(schema: Value) -> Value {
    either(json!({ "const": "$remove" }), json!(true), schema)
}

fn replaceable(schema: Value) -> Value {
    let replaced = json!({
        "type": "object", "additionalProperties": false,
        "properties": { "$replace": { "description": "Replaces this section of the layers below this one as a whole." } },
    });
    either(json!({ "type": "object", "required": ["$replace"] }), replaced, schema)
}

/// `then` for values that satisfy `condition`, else `schema`. What editors show of the schema stays where they find it.
fn either(condition: Value, then: Value, schema: Value) -> Value {
    let mut result = json!({ "if": condition, "then": then });
    for keyword in ["description", "default"] {
        if !schema[keyword].is_null() {
            result[keyword] = schema[keyword].clone();
        }
    }
    result["else"] = schema;
    result
}
