//! The schema files that an OpenAPI document refers to, as its components. Only names and references are rewritten.

use crate::mapping::Plan;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

pub struct Components<'p> {
    plan: &'p Plan,
    /// By the names of the components.
    included: BTreeMap<String, Value>,
}

impl<'p> Components<'p> {
    pub fn new(plan: &'p Plan) -> Components<'p> {
        Components { plan, included: BTreeMap::new() }
    }

    /// `chat/body.json`, or `responses/events.json#/$defs/x`, as a reference within the document.
    pub fn reference(&mut self, name: &str) -> Value {
        let (file, fragment) = name.split_once('#').unwrap_or((name, ""));
        self.include(file);
        json!({ "$ref": pointer(file, fragment) })
    }

    pub fn title(&self, name: &str) -> Option<String> {
        let file = name.split('#').next().unwrap_or_default();
        self.included.get(&component(file))?["title"].as_str().map(str::to_owned)
    }

    fn include(&mut self, file: &str) {
        if self.included.contains_key(&component(file)) {
            return;
        }
        let name = format!("schemas/{file}");
        let source = self.plan.sources.iter().find(|(_, s)| s.name == name);
        let Some(mut schema) = source.and_then(|(_, s)| serde_json::from_str(&s.text).ok()) else { return };
        let mut references = Vec::new();
        rewrite(&mut schema, file, &mut references);
        // Added before its references are followed: files may refer to each other.
        self.included.insert(component(file), schema);
        references.iter().for_each(|other| self.include(other));
    }

    pub fn schemas(self) -> Map<String, Value> {
        self.included.into_iter().collect()
    }
}

/// `chat/body.json` → `chat.body`
fn component(file: &str) -> String {
    file.trim_end_matches(".json").replace('/', ".")
}

fn pointer(file: &str, fragment: &str) -> String {
    format!("#/components/schemas/{}{fragment}", component(file))
}

fn rewrite(schema: &mut Value, file: &str, references: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str().filter(|_| key == "$ref").and_then(|reference| resolve(file, reference)) {
                    Some((target, fragment)) => {
                        *value = pointer(&target, &fragment).into();
                        references.push(target);
                    }
                    None => rewrite(value, file, references),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|i| rewrite(i, file, references)),
        _ => {}
    }
}

/// The file and the pointer that a reference in `file` leads to: `../shared/x.json` in `chat/body.json` is
/// `shared/x.json`. `None` for the URL of another site.
fn resolve(file: &str, reference: &str) -> Option<(String, String)> {
    let url = Url::parse("schema:///").ok()?.join(file).ok()?.join(reference).ok()?;
    let path = percent_decode_str(url.path()).decode_utf8_lossy();
    let target = path.trim_start_matches('/').to_owned();
    (url.scheme() == "schema").then(|| (target, url.fragment().unwrap_or_default().to_owned()))
}
