//! Maps about capabilities: what happens to tools, content parts and request fields, by kind, name or value.

use super::capabilities::{OPTIONAL_FIELDS, OnUnsupported};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::RoleNames;
use crate::domain::request_item::{ChoiceMode, FormatKind};
use crate::mapping::grammar::collections::entries;
use crate::mapping::grammar::notation::{closed, notation_schema, one_of, or_null};
use crate::mapping::grammar::{At, FromNode};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::Node;
use schemars::{Schema, json_schema};
use std::fmt;

/// What the keys and values of a map about capabilities are.
pub trait KeyedBy: 'static {
    type Value: Clone + fmt::Debug;
    /// The noun for a key in messages.
    const NOUN: &'static str;
    const KEYS: &'static [&'static str];
    /// Whether other keys are allowed too.
    const OPEN: bool = false;
    fn value(node: &Node, key: &str, cx: LoadContext) -> Option<Self::Value>;
    fn value_schema(key: &str) -> Schema;
}

/// A map about capabilities.
#[derive(Clone, Debug)]
pub struct KeyedMap<K: KeyedBy>(pub Vec<(String, K::Value)>);

impl<K: KeyedBy> Default for KeyedMap<K> {
    fn default() -> Self {
        KeyedMap(Vec::new())
    }
}

impl<K: KeyedBy> KeyedMap<K> {
    pub fn get(&self, key: &str) -> Option<&K::Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }
}

impl<'n, K: KeyedBy> FromNode<'n> for KeyedMap<K> {
    fn from_node(node: &'n Node, at: At) -> Option<Self> {
        let mut map = Vec::new();
        for entry in entries(node, at)? {
            if !K::OPEN && !K::KEYS.contains(&entry.key.as_str()) {
                let message = format!("unknown {} `{}`", K::NOUN, entry.key);
                at.cx.unknown(Code::UnknownValue, entry.key_span, message, &entry.key, K::KEYS.iter().copied());
            } else if let Some(value) = K::value(&entry.value, &entry.key, at.cx) {
                map.push((entry.key.clone(), value));
            }
        }
        Some(KeyedMap(map))
    }
}

notation_schema!([K: KeyedBy] KeyedMap<K>, |_generator| {
    let keys = K::KEYS.iter().map(|key| ((*key).to_owned(), K::value_schema(key).to_value()));
    let mut schema = or_null(closed(keys.collect()));
    if K::OPEN {
        schema.insert("additionalProperties".to_owned(), K::value_schema("").to_value());
    }
    schema
});

/// Roles to the roles that the backend knows.
#[derive(Clone, Debug)]
pub struct RoleMap;

impl KeyedBy for RoleMap {
    type Value = String;
    const NOUN: &'static str = "role";
    const KEYS: &'static [&'static str] = &["system", "developer", "user", "assistant", "tool"];

    fn value(node: &Node, _: &str, cx: LoadContext) -> Option<String> {
        text_of(node, cx).map(str::to_owned)
    }

    fn value_schema(_: &str) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl<'n> FromNode<'n> for RoleNames {
    fn from_node(node: &'n Node, at: At) -> Option<RoleNames> {
        KeyedMap::<RoleMap>::from_node(node, at).map(|map| RoleNames(map.0))
    }
}

notation_schema!(RoleNames, |generator| generator.subschema_for::<KeyedMap<RoleMap>>());

/// Declares a map to what happens to something that a backend may not support, with the actions allowed for a key.
macro_rules! on_unsupported {
    ($name:ident, $noun:literal, $keys:expr, $open:literal, |$key:ident| $allowed:expr) => {
        #[derive(Clone, Debug)]
        pub struct $name;

        impl KeyedBy for $name {
            type Value = OnUnsupported;
            const NOUN: &'static str = $noun;
            const KEYS: &'static [&'static str] = $keys;
            const OPEN: bool = $open;

            fn value(node: &Node, $key: &str, cx: LoadContext) -> Option<OnUnsupported> {
                cx.one_of(node, $allowed).and_then(OnUnsupported::from_name)
            }

            fn value_schema($key: &str) -> Schema {
                one_of($allowed)
            }
        }
    };
}

/// The actions for anything, and those for members of the body that nothing reads.
const ACTIONS: &[&str] = &["forward", "drop", "reject"];

on_unsupported!(OnTool, "tool", &["custom"], true, |key| match key {
    "custom" => &["forward", "drop", "reject", "wrap"],
    _ => ACTIONS,
});
on_unsupported!(OnContentPart, "content part", &["image", "file", "audio", "refusal"], false, |_key| ACTIONS);
/// What happens to a request field: if the body does not read it, or to some of its values.
#[derive(Clone, Debug)]
pub enum FieldAction {
    Unread(OnUnsupported),
    /// Also if the body reads the field.
    Values(Vec<(String, OnUnsupported)>),
}

#[derive(Clone, Debug)]
pub struct OnField;

impl OnField {
    fn actions(key: &str) -> &'static [&'static str] {
        match key {
            "format" => &["drop", "reject", "as_tool"],
            _ => Self::VALUE_ACTIONS,
        }
    }

    const VALUE_ACTIONS: &'static [&'static str] = &["drop", "reject"];

    /// Fields that are no words or numbers: a map about single values would have no effect.
    const WITHOUT_VALUES: &'static [&'static str] = &["tools", "metadata", "stop", "stored_prompt"];

    /// The values of a field with a closed list of them.
    fn values(key: &str) -> Option<&'static [&'static str]> {
        match key {
            "tool_choice" => Some(ChoiceMode::NAMES),
            "format" => Some(FormatKind::NAMES),
            "parallel_tool_calls" => Some(&["true", "false"]),
            _ => None,
        }
    }
}

impl KeyedBy for OnField {
    type Value = FieldAction;
    const NOUN: &'static str = "request field";
    const KEYS: &'static [&'static str] = OPTIONAL_FIELDS;

    fn value(node: &Node, key: &str, cx: LoadContext) -> Option<FieldAction> {
        let Some(entries) = node.as_map() else {
            let action = cx.one_of(node, Self::actions(key)).and_then(OnUnsupported::from_name);
            return action.map(FieldAction::Unread);
        };
        if Self::WITHOUT_VALUES.contains(&key) {
            let message = format!("`{key}` is supported or not, and has no values here");
            let help = match key {
                "tools" => {
                    "what happens to a kind of tools is in `tools:` next to `unsupported:`: `tools: { custom: reject }`"
                }
                _ => "one of drop or reject",
            };
            cx.add(Diagnostic::new(Code::WrongType, node.span, message).help(help));
            return None;
        }
        let mut values = Vec::new();
        for entry in entries {
            if let Some(known) = Self::values(key).filter(|known| !known.contains(&entry.key.as_str())) {
                let message = format!("`{key}` is never `{}`", entry.key);
                cx.unknown(Code::UnknownValue, entry.key_span, message, &entry.key, known.iter().copied());
                continue;
            }
            let action = cx.one_of(&entry.value, Self::VALUE_ACTIONS).and_then(OnUnsupported::from_name);
            values.extend(action.map(|action| (entry.key.clone(), action)));
        }
        Some(FieldAction::Values(values))
    }

    fn value_schema(key: &str) -> Schema {
        if Self::WITHOUT_VALUES.contains(&key) {
            return one_of(Self::actions(key));
        }
        let action = one_of(Self::VALUE_ACTIONS).to_value();
        let values = match Self::values(key) {
            Some(known) => closed(known.iter().map(|value| ((*value).to_owned(), action.clone())).collect()).to_value(),
            None => serde_json::json!({ "type": "object", "additionalProperties": action }),
        };
        json_schema!({ "if": { "type": "object" }, "then": values, "else": one_of(Self::actions(key)) })
    }
}

/// What happens to members of the client's body that nothing reads.
#[derive(Clone, Copy, Debug)]
pub struct OnUnknownField(pub OnUnsupported);

impl<'n> FromNode<'n> for OnUnknownField {
    fn from_node(node: &'n Node, at: At) -> Option<OnUnknownField> {
        at.cx.one_of(node, ACTIONS).and_then(OnUnsupported::from_name).map(OnUnknownField)
    }
}

notation_schema!(OnUnknownField, { "type": "string", "enum": ACTIONS });
