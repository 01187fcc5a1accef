//! Published schema files: each with its address as `$id`, in a bundled form without references to other files, and
//! a list of all.

use super::definitions::Definitions;
use crate::domain::MomentKind;
use crate::mapping::Plan;
use reframe_json::escape_pointer_token;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The end of the address of a bundled schema: `/schemas/chat/body.bundled.json`.
const BUNDLED: &str = ".bundled.json";

/// A schema file as it is served; `name` is its path below `/schemas/`. `None` if there is no such file.
pub fn published(plan: &Plan, name: &str) -> Option<String> {
    match file(plan, name) {
        Some(text) => Some(with_id(text, name)),
        None => bundled(plan, &format!("{}.json", name.strip_suffix(BUNDLED)?)),
    }
}

/// All schema files of the set, and where they are served.
pub fn index(plan: &Plan) -> Value {
    let mut names: Vec<&str> =
        plan.sources.iter().filter_map(|(_, source)| source.name.strip_prefix("schemas/")).collect();
    names.sort_unstable();
    let entry = |name: &str| {
        let schema: Value = file(plan, name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        json!({
            "name": name,
            "title": schema["title"],
            "url": address(name),
            "bundled_url": name.strip_suffix(".json").map(|stem| address(&format!("{stem}{BUNDLED}"))),
        })
    };
    json!({ "schemas": names.into_iter().map(entry).collect::<Vec<_>>() })
}

/// The schema of [`index`].
pub fn index_schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "description": "The schema files of this gateway.",
        "type": "object",
        "required": ["schemas"],
        "additionalProperties": false,
        "properties": {
            "schemas": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "title", "url", "bundled_url"],
                    "additionalProperties": false,
                    "properties": {
                        "name": { "description": "The path below `/schemas/`.", "type": "string" },
                        "title": { "type": ["string", "null"] },
                        "url": text,
                        "bundled_url": { "description": "The schema in one file.", "type": ["string", "null"] },
                    },
                },
            },
        },
    })
}

fn file<'p>(plan: &'p Plan, name: &str) -> Option<&'p str> {
    let name = format!("schemas/{name}");
    plan.sources.iter().find(|(_, source)| source.name == name).map(|(_, source)| &*source.text)
}

fn address(name: &str) -> String {
    format!("/schemas/{name}")
}

/// The text of a file with its address as `$id`, unless it has one. The rest of the text stays as its author wrote it.
fn with_id(text: &str, name: &str) -> String {
    let has_own_id = |schema: Map<String, Value>| schema.is_empty() || schema.contains_key("$id");
    match text.split_once('{') {
        Some((before, rest)) if !serde_json::from_str(text).is_ok_and(has_own_id) => {
            format!("{before}{{\n  \"$id\": {},{rest}", Value::from(address(name)))
        }
        _ => text.to_owned(),
    }
}

fn bundled(plan: &Plan, name: &str) -> Option<String> {
    let mut definitions = Definitions::new(plan, "#/$defs/", Some(name));
    let Value::Object(mut schema) = definitions.schema(name, "")? else { return None };
    schema.shift_remove("$id");
    schema.shift_insert(0, "$id".into(), address(&format!("{}{BUNDLED}", name.strip_suffix(".json")?)).into());
    let own = definitions.member(name, "$defs").and_then(Value::as_object);
    let own: Vec<String> = own.into_iter().flat_map(Map::keys).map(|key| escape_pointer_token(key)).collect();
    own.iter().for_each(|key| drop(definitions.reference(&format!("{name}#/$defs/{key}"))));
    // A file of events consists of definitions, and would accept everything.
    let events = if name.ends_with("/events.json") { frames_in(plan, name) } else { Vec::new() };
    if !events.is_empty() {
        let references = events.iter().map(|event| json!({ "$ref": definitions.reference(event) }));
        schema.insert("anyOf".into(), references.collect());
    }
    let definitions = definitions.into_schemas();
    if !definitions.is_empty() {
        schema.insert("$defs".into(), definitions.into());
    }
    Some(format!("{:#}\n", Value::from(schema)))
}

/// The schemas in a file that frames of the routes are validated against.
fn frames_in(plan: &Plan, file: &str) -> Vec<String> {
    let dialects = plan.gateway.routes.iter().filter_map(|route| route.variants.default_dialect());
    let frames = dialects.flat_map(|dialect| MomentKind::ALL.iter().flat_map(|moment| dialect.frames(*moment)));
    let names = frames.filter_map(|frame| frame.schema.as_ref()).map(|schema| schema.name.clone());
    names.filter(|name| name.split('#').next() == Some(file)).collect::<BTreeSet<_>>().into_iter().collect()
}
