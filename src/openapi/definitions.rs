//! Flattens schema files: every schema that is referenced, in whatever file and at whatever place of it, becomes one
//! entry of a flat map, and references lead to these entries. Many tools follow no other references: client
//! generators ignore `$defs` inside components, and plain validators cannot fetch other files.

use crate::mapping::Plan;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use url::Url;

/// A schema by its file below `schemas/` and the fragment of a reference: `("chat/body.json", "/$defs/choice")`.
type Location = (String, String);

pub struct Definitions<'s> {
    plan: &'s Plan,
    /// What references begin with: `#/components/schemas/` or `#/$defs/`.
    prefix: &'static str,
    /// The file that the flat document is made of. References to the whole file are `#`, and its own definitions keep
    /// their names.
    root: Option<&'s str>,
    names: HashMap<Location, String>,
    schemas: BTreeMap<String, Value>,
    files: HashMap<String, Option<Value>>,
}

impl<'s> Definitions<'s> {
    pub fn new(plan: &'s Plan, prefix: &'static str, root: Option<&'s str>) -> Definitions<'s> {
        let (names, schemas, files) = Default::default();
        Definitions { plan, prefix, root, names, schemas, files }
    }

    /// A reference to `chat/body.json`, or to `responses/events.json#/$defs/x`. What it leads to is included.
    pub fn reference(&mut self, name: &str) -> String {
        let (file, fragment) = name.split_once('#').unwrap_or((name, ""));
        if fragment.is_empty() && self.root == Some(file) {
            return "#".to_owned();
        }
        let location = (file.to_owned(), fragment.to_owned());
        if let Some(name) = self.names.get(&location) {
            return format!("{}{name}", self.prefix);
        }
        let name = self.free_name(file, fragment);
        let reference = format!("{}{name}", self.prefix);
        // Named before its own references are followed: schemas may refer to themselves.
        self.names.insert(location, name.clone());
        let schema = self.schema(file, fragment).unwrap_or_else(|| json!({}));
        self.schemas.insert(name, schema);
        reference
    }

    /// The schema at a place of a file, with references that lead into the flat map.
    pub fn schema(&mut self, file: &str, fragment: &str) -> Option<Value> {
        let document = self.file(file)?;
        let mut schema = match fragment.is_empty() || fragment.starts_with('/') {
            true => document.pointer(fragment)?.clone(),
            false => find_anchor(document, fragment)?.clone(),
        };
        self.rewrite(&mut schema, file);
        Some(schema)
    }

    /// A member of a whole file, such as its title.
    pub fn member(&mut self, file: &str, name: &str) -> Option<&Value> {
        self.file(file)?.get(name)
    }

    pub fn into_schemas(self) -> Map<String, Value> {
        self.schemas.into_iter().collect()
    }

    fn file(&mut self, file: &str) -> Option<&Value> {
        let plan = self.plan;
        let read = || {
            let name = format!("schemas/{file}");
            let (_, source) = plan.sources.iter().find(|(_, source)| source.name == name)?;
            serde_json::from_str(&source.text).ok()
        };
        self.files.entry(file.to_owned()).or_insert_with(read).as_ref()
    }

    /// `chat/body.json#/$defs/choice` → `chat.body.choice`
    fn free_name(&self, file: &str, fragment: &str) -> String {
        let file = file.strip_suffix(".json").unwrap_or(file);
        let is_own = self.root.is_some_and(|root| root.strip_suffix(".json").unwrap_or(root) == file);
        let steps = fragment.split('/').filter(|step| !matches!(*step, "" | "$defs" | "properties"));
        let words = file.split('/').filter(|_| !is_own).chain(steps);
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = words.collect::<Vec<_>>().join(".").replace(|c| !is_allowed(c), "_");
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let is_free = |name: &String| !self.names.values().any(|taken| taken == name);
        std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
    }

    fn rewrite(&mut self, schema: &mut Value, file: &str) {
        match schema {
            Value::Object(members) => {
                members.shift_remove("$defs");
                for (key, value) in members {
                    self.rewrite_keyword(key, value, file);
                }
            }
            Value::Array(schemas) => schemas.iter_mut().for_each(|schema| self.rewrite(schema, file)),
            _ => {}
        }
    }

    fn rewrite_keyword(&mut self, keyword: &str, value: &mut Value, file: &str) {
        match (keyword, &mut *value) {
            ("$ref", Value::String(reference)) => {
                if let Some(target) = resolve(file, reference) {
                    *reference = self.reference(&target);
                }
            }
            // Their keys are names of members, not keywords.
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| self.rewrite(schema, file));
            }
            // Values, not schemas.
            ("const" | "enum" | "default" | "examples", _) => {}
            _ => self.rewrite(value, file),
        }
    }
}

/// What a reference in `file` leads to: `../shared/x.json#/$defs/y` in `chat/body.json` is `shared/x.json#/$defs/y`.
/// `None` for the URL of another site.
fn resolve(file: &str, reference: &str) -> Option<String> {
    let url = Url::parse("schema:///").ok()?.join(file).ok()?.join(reference).ok()?;
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let target = decoded(url.path().trim_start_matches('/'));
    let fragment = decoded(url.fragment().unwrap_or_default());
    (url.scheme() == "schema").then(|| format!("{target}#{fragment}"))
}

/// The schema with this `$anchor`.
fn find_anchor<'v>(schema: &'v Value, anchor: &str) -> Option<&'v Value> {
    match schema {
        Value::Object(members) => match members.get("$anchor").and_then(Value::as_str) == Some(anchor) {
            true => Some(schema),
            false => members.values().find_map(|value| find_anchor(value, anchor)),
        },
        Value::Array(values) => values.iter().find_map(|value| find_anchor(value, anchor)),
        _ => None,
    }
}
