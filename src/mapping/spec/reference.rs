//! Generates the mapping reference: the keys of every kind of mapping file as tables, from the same schemas.

use super::{FILE_KINDS, FileKind};
use serde_json::{Map, Value};
use std::collections::VecDeque;

const HEADER: &str = "# Mapping reference

Every key of every mapping file: made by `reframe schema --write` from what `schemas/mapping/` is made from, so do not edit it.
What the keys are for, by example: [the chapters](README.md).

";

/// The guide that explains by example how the fields of an emitted value are set.
const FIELDS_ANCHOR: &str = "rules.md#fields-and-conversions";

pub fn text() -> String {
    let mut reference = Reference::default();
    let kinds = FILE_KINDS.iter().map(|kind| format!("[{}](#{})", kind.files.replace('*', "\\*"), anchor(kind, "")));
    let contents = kinds.collect::<Vec<_>>().join(" · ");
    for kind in FILE_KINDS {
        reference.kind(kind);
    }
    format!("{HEADER}{contents}\n{}", reference.text)
}

#[derive(Default)]
struct Reference {
    text: String,
    /// The anchors of the definitions written so far; a definition shared by several file kinds is written once.
    anchors: Vec<(Value, String)>,
}

/// The sections of a file kind that are not written yet.
struct PendingSections<'s> {
    kind: &'s FileKind,
    definitions: &'s Map<String, Value>,
    sections: VecDeque<(String, &'s Value)>,
}

impl Reference {
    fn kind(&mut self, kind: &FileKind) {
        let schema = kind.schema();
        let none = Map::new();
        let definitions = schema["$defs"].as_object().unwrap_or(&none);
        let mut pending = PendingSections { kind, definitions, sections: VecDeque::new() };
        self.text.push_str(&format!(
            "\n<a id=\"{}\"></a>\n\n## {}\n\n",
            anchor(kind, ""),
            kind.files.replace('*', "\\*")
        ));
        self.section(&schema, &mut pending);
        while let Some((name, schema)) = pending.sections.pop_front() {
            self.text.push_str(&format!(
                "\n<a id=\"{}\"></a>\n\n### {}: {}\n\n",
                anchor(kind, &name),
                kind.name,
                label(&name, schema)
            ));
            self.section(schema, &mut pending);
        }
    }

    fn section<'s>(&mut self, schema: &'s Value, pending: &mut PendingSections<'s>) {
        if let Some(about) = schema["description"].as_str() {
            self.text.push_str(&format!("{about}\n"));
        }
        let Some(properties) = schema["properties"].as_object() else {
            let forms = self.forms(schema, pending);
            if !forms.is_empty() {
                self.text.push_str(&format!("\nIts maps: {}.\n", forms.join(", ")));
            }
            return;
        };
        self.text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for (key, property) in properties {
            let value = self.value(key, property, pending);
            let required = schema["required"].as_array().is_some_and(|r| r.iter().any(|k| k == key));
            let default = match (required, &property["default"]) {
                (true, _) => "required".to_owned(),
                (false, Value::Null) => String::new(),
                (false, Value::String(word)) => code(word),
                (false, other) => code(&other.to_string()),
            };
            let about = property["description"].as_str().unwrap_or_default();
            self.text.push_str(&format!("| `{key}` | {} | {default} | {} |\n", cell(&value), cell(about)));
        }
    }

    /// The type of a value, for the table.
    fn value<'s>(&mut self, key: &str, schema: &'s Value, pending: &mut PendingSections<'s>) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
            let definitions = pending.definitions;
            return definitions.get(name).map_or(String::new(), |found| self.link(name, found, pending));
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(", ");
        }
        if let Some(properties) = schema["properties"].as_object() {
            // Keys with descriptions get a table of their own.
            if properties.values().any(|p| p["description"].is_string()) {
                let name = schema["title"].as_str().map_or(key.to_owned(), |title| title.replace(' ', "-"));
                return self.link(&name, schema, pending);
            }
            return self.keys(properties, &schema["additionalProperties"], pending);
        }
        if let Some(title) = schema["title"].as_str() {
            let forms = self.forms(schema, pending);
            return if forms.is_empty() { title.to_owned() } else { format!("{title}; {}", forms.join(", ")) };
        }
        if schema["if"]["type"] == "array" {
            return format!("list of {}", self.value(key, &schema["then"]["items"], pending));
        }
        if schema["if"]["type"] == "object" {
            return self.value(key, &schema["else"], pending);
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            let alternatives: Vec<String> =
                alternatives.iter().map(|alternative| self.value(key, alternative, pending)).collect();
            return alternatives.join(" or ");
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null").collect(),
            other => other.as_str().into_iter().collect(),
        };
        match kinds.as_slice() {
            ["object"] if schema["additionalProperties"].is_object() => {
                format!("map of {}", self.value(key, &schema["additionalProperties"], pending))
            }
            ["object"] => "map".to_owned(),
            ["array"] => format!("list of {}", self.value(key, &schema["items"], pending)),
            ["string"] => "text".to_owned(),
            [] => "anything".to_owned(),
            several => several.join(" or "),
        }
    }

    /// Keys without descriptions, grouped by their values.
    fn keys<'s>(
        &mut self,
        keys: &'s Map<String, Value>,
        others: &'s Value,
        pending: &mut PendingSections<'s>,
    ) -> String {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (key, schema) in keys {
            let value = self.value(key, schema, pending);
            match groups.iter_mut().find(|(known, _)| *known == value) {
                Some((_, keys)) => keys.push(code(key)),
                None => groups.push((value, vec![code(key)])),
            }
        }
        if others.is_object() {
            groups.push((self.value("", others, pending), vec!["others".to_owned()]));
        }
        let groups = groups.into_iter().map(|(value, keys)| format!("{}: {value}", keys.join(", ")));
        groups.collect::<Vec<_>>().join("; ")
    }

    /// The objects that a value can be, found anywhere in its schema.
    fn forms<'s>(&mut self, schema: &'s Value, pending: &mut PendingSections<'s>) -> Vec<String> {
        let definitions = pending.definitions;
        let mut names: Vec<&str> = Vec::new();
        references(schema, &mut names);
        let mut forms = Vec::new();
        for name in names {
            if let Some(found) = definitions.get(name).filter(|found| found["properties"].is_object()) {
                forms.push(self.link(name, found, pending));
            }
        }
        forms
    }

    /// A link to the section of a definition; adds the section if there is none.
    fn link<'s>(&mut self, name: &str, schema: &'s Value, pending: &mut PendingSections<'s>) -> String {
        let label = label(name, schema);
        if name == "Anything" {
            return label;
        }
        if name.starts_with("Field.") {
            return format!("[{label}]({FIELDS_ANCHOR})");
        }
        let known = self.anchors.iter().find(|(known, _)| known == schema).map(|(_, at)| at.clone());
        let at = known.unwrap_or_else(|| {
            let at = anchor(pending.kind, name);
            self.anchors.push((schema.clone(), at.clone()));
            pending.sections.push_back((name.to_owned(), schema));
            at
        });
        format!("[{label}](#{at})")
    }
}

fn references<'s>(schema: &'s Value, names: &mut Vec<&'s str>) {
    match schema {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"));
            names.extend(name.filter(|n| !names.contains(n)));
            members.values().for_each(|inner| references(inner, names));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn anchor(kind: &FileKind, name: &str) -> String {
    format!("{}-{name}", kind.name).trim_end_matches('-').to_lowercase()
}

/// The title of a definition, or its type name in words: `ClientKey` as `client key`.
fn label(name: &str, schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.to_owned();
    }
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn code(word: &str) -> String {
    format!("`{}`", if word.is_empty() { "\"\"" } else { word })
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
