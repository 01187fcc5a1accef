//! `docs/mapping-reference.md`: the keys of every kind of mapping file as tables, made from the same schemas.

use super::{KINDS, Kind};
use serde_json::{Map, Value};
use std::collections::VecDeque;

const HEAD: &str = "# Mapping reference

Every key of every mapping file: made by `reframe schema --write` from what `schemas/mapping/` is made from, so do not edit it.
What the keys are for, by example: [mappings.md](mappings.md).

";

/// How a field of an emitted word is filled is told by example.
const FIELDS: &str = "mappings.md#fields-and-conversions";

pub fn text() -> String {
    let mut reference = Reference::default();
    let kinds = KINDS.iter().map(|kind| format!("[{}](#{})", kind.files.replace('*', "\\*"), anchor(kind, "")));
    let contents = kinds.collect::<Vec<_>>().join(" · ");
    for kind in KINDS {
        reference.kind(kind);
    }
    format!("{HEAD}{contents}\n{}", reference.text)
}

#[derive(Default)]
struct Reference {
    text: String,
    /// What has been told, and where: a definition that several kinds share is told once.
    told: Vec<(Value, String)>,
}

/// What is still to be told of a kind.
struct Ahead<'s> {
    kind: &'s Kind,
    definitions: &'s Map<String, Value>,
    sections: VecDeque<(String, &'s Value)>,
}

impl Reference {
    fn kind(&mut self, kind: &Kind) {
        let schema = kind.schema();
        let none = Map::new();
        let definitions = schema["$defs"].as_object().unwrap_or(&none);
        let mut ahead = Ahead { kind, definitions, sections: VecDeque::new() };
        self.text.push_str(&format!(
            "\n<a id=\"{}\"></a>\n\n## {}\n\n",
            anchor(kind, ""),
            kind.files.replace('*', "\\*")
        ));
        self.section(&schema, &mut ahead);
        while let Some((name, schema)) = ahead.sections.pop_front() {
            self.text.push_str(&format!(
                "\n<a id=\"{}\"></a>\n\n### {}: {}\n\n",
                anchor(kind, &name),
                kind.name,
                label(&name, schema)
            ));
            self.section(schema, &mut ahead);
        }
    }

    fn section<'s>(&mut self, schema: &'s Value, ahead: &mut Ahead<'s>) {
        if let Some(about) = schema["description"].as_str() {
            self.text.push_str(&format!("{about}\n"));
        }
        let Some(properties) = schema["properties"].as_object() else {
            let forms = self.forms(schema, ahead);
            if !forms.is_empty() {
                self.text.push_str(&format!("\nIts maps: {}.\n", forms.join(", ")));
            }
            return;
        };
        self.text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for (key, property) in properties {
            let value = self.value(key, property, ahead);
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

    /// What may stand after a key.
    fn value<'s>(&mut self, key: &str, schema: &'s Value, ahead: &mut Ahead<'s>) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
            let definitions = ahead.definitions;
            return definitions.get(name).map_or(String::new(), |found| self.link(name, found, ahead));
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(", ");
        }
        if let Some(properties) = schema["properties"].as_object() {
            // Keys that say what they mean have a table of their own.
            if properties.values().any(|p| p["description"].is_string()) {
                let name = schema["title"].as_str().map_or(key.to_owned(), |title| title.replace(' ', "-"));
                return self.link(&name, schema, ahead);
            }
            return self.keys(properties, &schema["additionalProperties"], ahead);
        }
        if let Some(title) = schema["title"].as_str() {
            let forms = self.forms(schema, ahead);
            return if forms.is_empty() { title.to_owned() } else { format!("{title}; {}", forms.join(", ")) };
        }
        if schema["if"]["type"] == "array" {
            return format!("list of {}", self.value(key, &schema["then"]["items"], ahead));
        }
        if schema["if"]["type"] == "object" {
            return self.value(key, &schema["else"], ahead);
        }
        if let Some(ways) = schema["anyOf"].as_array() {
            let ways: Vec<String> = ways.iter().map(|way| self.value(key, way, ahead)).collect();
            return ways.join(" or ");
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null").collect(),
            other => other.as_str().into_iter().collect(),
        };
        match kinds.as_slice() {
            ["object"] if schema["additionalProperties"].is_object() => {
                format!("map of {}", self.value(key, &schema["additionalProperties"], ahead))
            }
            ["object"] => "map".to_owned(),
            ["array"] => format!("list of {}", self.value(key, &schema["items"], ahead)),
            ["string"] => "text".to_owned(),
            [] => "anything".to_owned(),
            several => several.join(" or "),
        }
    }

    /// Keys that need no words, those with the same values together.
    fn keys<'s>(&mut self, keys: &'s Map<String, Value>, others: &'s Value, ahead: &mut Ahead<'s>) -> String {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (key, schema) in keys {
            let value = self.value(key, schema, ahead);
            match groups.iter_mut().find(|(known, _)| *known == value) {
                Some((_, keys)) => keys.push(code(key)),
                None => groups.push((value, vec![code(key)])),
            }
        }
        if others.is_object() {
            groups.push((self.value("", others, ahead), vec!["others".to_owned()]));
        }
        let groups = groups.into_iter().map(|(value, keys)| format!("{}: {value}", keys.join(", ")));
        groups.collect::<Vec<_>>().join("; ")
    }

    /// The maps that a value may be, which stand somewhere inside of its schema.
    fn forms<'s>(&mut self, schema: &'s Value, ahead: &mut Ahead<'s>) -> Vec<String> {
        let definitions = ahead.definitions;
        let mut names: Vec<&str> = Vec::new();
        references(schema, &mut names);
        let mut forms = Vec::new();
        for name in names {
            if let Some(found) = definitions.get(name).filter(|found| found["properties"].is_object()) {
                forms.push(self.link(name, found, ahead));
            }
        }
        forms
    }

    /// A link to what tells of a schema; if nothing does, it will be told.
    fn link<'s>(&mut self, name: &str, schema: &'s Value, ahead: &mut Ahead<'s>) -> String {
        let label = label(name, schema);
        if name == "Anything" {
            return label;
        }
        if name.starts_with("Field.") {
            return format!("[{label}]({FIELDS})");
        }
        let told = self.told.iter().find(|(told, _)| told == schema).map(|(_, at)| at.clone());
        let at = told.unwrap_or_else(|| {
            let at = anchor(ahead.kind, name);
            self.told.push((schema.clone(), at.clone()));
            ahead.sections.push_back((name.to_owned(), schema));
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

fn anchor(kind: &Kind, name: &str) -> String {
    format!("{}-{name}", kind.name).trim_end_matches('-').to_lowercase()
}

/// As a person would call it: its title, or `ClientKey` as `client key`.
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
