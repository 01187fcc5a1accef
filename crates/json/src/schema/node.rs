//! Adapter that lets `jsonschema` validate a tree without copying it.

use std::borrow::Cow;
use std::slice;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, unique};
use serde_json::{Number, Value};

use crate::{Draft, Num, Text, Tree};

/// Up to this length comparing all pairs is cheaper than copying the elements.
const LINEAR_LIMIT: usize = 16;

pub(super) struct TreeJson;

impl Json for TreeJson {
    type Node<'a> = JsonNode<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = Tree;

    /// A lookup is a linear search, so one pass over the entries for all of `required` pays off early.
    const KEYS_PER_LOOKUP: usize = 8;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(buffer: &mut Tree, string: &str, check: impl FnOnce(JsonNode) -> T) -> T {
        if let Tree::Str(text) = buffer {
            text.clear();
            text.push_str(string);
        } else {
            *buffer = string.into();
        }
        check(JsonNode::Tree(buffer))
    }
}

/// A node of a tree, or of a draft. A tree in a draft is a node of a tree.
#[derive(Clone, Copy)]
pub(super) enum JsonNode<'a> {
    Tree(&'a Tree),
    Draft(&'a Draft<'a>),
}

impl<'a> From<&'a Tree> for JsonNode<'a> {
    fn from(tree: &'a Tree) -> JsonNode<'a> {
        JsonNode::Tree(tree)
    }
}

impl<'a> From<&'a Draft<'_>> for JsonNode<'a> {
    fn from(draft: &'a Draft<'_>) -> JsonNode<'a> {
        draft.as_tree().map_or(JsonNode::Draft(draft), JsonNode::Tree)
    }
}

impl<'a> Node<'a, TreeJson> for JsonNode<'a> {
    type Object = JsonObject<'a>;
    type Array = JsonArray<'a>;
    type Number = &'a Num;

    fn as_object(&self) -> Option<JsonObject<'a>> {
        match self {
            JsonNode::Tree(Tree::Map(entries)) => Some(JsonObject::Tree(entries)),
            JsonNode::Draft(Draft::Map(members)) => Some(JsonObject::Draft(members)),
            JsonNode::Tree(_) | JsonNode::Draft(_) => None,
        }
    }

    fn as_array(&self) -> Option<JsonArray<'a>> {
        match self {
            JsonNode::Tree(Tree::List(items)) => Some(JsonArray::Tree(items)),
            JsonNode::Draft(Draft::List(items)) => Some(JsonArray::Draft(items)),
            JsonNode::Tree(_) | JsonNode::Draft(_) => None,
        }
    }

    /// A lone surrogate counts as one character, for `maxLength`.
    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            JsonNode::Tree(Tree::Str(text)) => Some(Cow::Borrowed(text)),
            JsonNode::Tree(Tree::SurrogateString(string)) => Some(Cow::Owned(string.to_string_lossy())),
            JsonNode::Draft(Draft::Text(text)) => Some(Cow::Borrowed(text)),
            JsonNode::Tree(_) | JsonNode::Draft(_) => None,
        }
    }

    fn as_number(&self) -> Option<&'a Num> {
        match self {
            JsonNode::Tree(tree) => tree.as_num(),
            JsonNode::Draft(Draft::Num(num)) => Some(num),
            JsonNode::Draft(_) => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            JsonNode::Tree(tree) => tree.as_bool(),
            JsonNode::Draft(Draft::Bool(bool)) => Some(*bool),
            JsonNode::Draft(_) => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, JsonNode::Tree(Tree::Null) | JsonNode::Draft(Draft::Null))
    }

    fn json_type(&self) -> JsonType {
        match self {
            JsonNode::Tree(tree) => match tree {
                Tree::Null => JsonType::Null,
                Tree::Bool(_) => JsonType::Boolean,
                Tree::Num(_) => JsonType::Number,
                Tree::Str(_) | Tree::SurrogateString(_) => JsonType::String,
                Tree::List(_) => JsonType::Array,
                Tree::Map(_) => JsonType::Object,
            },
            JsonNode::Draft(draft) => match draft {
                Draft::Bool(_) => JsonType::Boolean,
                Draft::Num(_) => JsonType::Number,
                Draft::Text(_) => JsonType::String,
                Draft::List(_) => JsonType::Array,
                Draft::Map(_) => JsonType::Object,
                // A tree in a draft is a node of a tree.
                Draft::Null | Draft::Tree(_) | Draft::Owned(_) => JsonType::Null,
            },
        }
    }

    /// Builds no `Value`, because every frame's schema has `const` and `enum`.
    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (JsonNode::Tree(Tree::SurrogateString(string)), Value::String(expected)) => {
                string.to_string_lossy() == *expected
            }
            (_, Value::Null) => self.is_null(),
            (_, Value::Bool(expected)) => self.as_boolean() == Some(*expected),
            (_, Value::Number(expected)) => self.as_number().is_some_and(|num| equals_number(num, expected)),
            (JsonNode::Tree(Tree::Str(text)), Value::String(expected)) => *text == **expected,
            (JsonNode::Draft(Draft::Text(text)), Value::String(expected)) => *text == **expected,
            (_, Value::Array(expected)) => self.as_array().is_some_and(|items| {
                let mut pairs = items.elements().zip(expected);
                items.len() == expected.len() && pairs.all(|(item, value)| item.equals_value(value))
            }),
            (_, Value::Object(expected)) => self.as_object().is_some_and(|members| {
                let same =
                    |(key, node): (&str, JsonNode)| expected.get(key).is_some_and(|value| node.equals_value(value));
                members.len() == expected.len() && members.members().all(same)
            }),
            (JsonNode::Tree(_) | JsonNode::Draft(_), Value::String(_)) => false,
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            JsonNode::Tree(tree) => Tree::to_value(tree),
            JsonNode::Draft(draft) => Tree::to_value(&(*draft).clone().into_tree()),
        })
    }

    /// The address is a valid identity: nodes do not move while the tree is borrowed, and two nodes that share an
    /// address are the same tree at two places.
    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(match self {
            JsonNode::Tree(tree) => std::ptr::from_ref::<Tree>(tree) as usize,
            JsonNode::Draft(draft) => std::ptr::from_ref::<Draft>(draft) as usize,
        }))
    }
}

#[derive(Clone, Copy)]
pub(super) enum JsonObject<'a> {
    Tree(&'a [(Text, Tree)]),
    Draft(&'a [(Cow<'a, str>, Draft<'a>)]),
}

impl<'a> Object<'a, TreeJson> for JsonObject<'a> {
    type Node = JsonNode<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        match self {
            JsonObject::Tree(entries) => entries.len(),
            JsonObject::Draft(members) => members.len(),
        }
    }

    fn get(&self, key: &Box<str>) -> Option<JsonNode<'a>> {
        match self {
            JsonObject::Tree(entries) => {
                entries.iter().find(|(name, _)| **name == **key).map(|(_, tree)| JsonNode::Tree(tree))
            }
            JsonObject::Draft(members) => {
                members.iter().find(|(name, _)| **name == **key).map(|(_, draft)| JsonNode::from(draft))
            }
        }
    }

    fn members(&self) -> Members<'a> {
        match self {
            JsonObject::Tree(entries) => Members::Tree(entries.iter()),
            JsonObject::Draft(members) => Members::Draft(members.iter()),
        }
    }
}

pub(super) enum Members<'a> {
    Tree(slice::Iter<'a, (Text, Tree)>),
    Draft(slice::Iter<'a, (Cow<'a, str>, Draft<'a>)>),
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, JsonNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Members::Tree(entries) => entries.next().map(|(name, tree)| (&**name, JsonNode::Tree(tree))),
            Members::Draft(members) => members.next().map(|(name, draft)| (&**name, JsonNode::from(draft))),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum JsonArray<'a> {
    Tree(&'a [Tree]),
    Draft(&'a [Draft<'a>]),
}

impl<'a> Array<'a, TreeJson> for JsonArray<'a> {
    type Node = JsonNode<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        match self {
            JsonArray::Tree(items) => items.len(),
            JsonArray::Draft(items) => items.len(),
        }
    }

    fn elements(&self) -> Elements<'a> {
        match self {
            JsonArray::Tree(items) => Elements::Tree(items.iter()),
            JsonArray::Draft(items) => Elements::Draft(items.iter()),
        }
    }

    fn is_unique(&self) -> bool {
        match self {
            JsonArray::Tree(items) if items.len() <= LINEAR_LIMIT => {
                items.iter().enumerate().all(|(at, item)| !items[..at].contains(item))
            }
            JsonArray::Tree(_) | JsonArray::Draft(_) => {
                let values: Vec<Cow<Value>> = self.elements().map(|item| item.to_value()).collect();
                unique::is_unique(&values)
            }
        }
    }
}

pub(super) enum Elements<'a> {
    Tree(slice::Iter<'a, Tree>),
    Draft(slice::Iter<'a, Draft<'a>>),
}

impl<'a> Iterator for Elements<'a> {
    type Item = JsonNode<'a>;

    fn next(&mut self) -> Option<JsonNode<'a>> {
        match self {
            Elements::Tree(items) => items.next().map(JsonNode::Tree),
            Elements::Draft(items) => items.next().map(JsonNode::from),
        }
    }
}

impl JsonNumber for &Num {
    fn as_u64(&self) -> Option<u64> {
        Num::as_u64(self)
    }

    fn as_i64(&self) -> Option<i64> {
        Num::as_i64(self)
    }

    fn as_f64(&self) -> Option<f64> {
        Num::as_f64(self)
    }

    fn as_str(&self) -> Cow<'_, str> {
        match self {
            Num::Int(int) => Cow::Owned(int.to_string()),
            Num::Token(token) => Cow::Borrowed(token),
        }
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Owned(Num::to_number(self))
    }

    fn is_integer(&self) -> bool {
        self.is_whole()
    }
}

/// Compares by value. Numbers in a schema were parsed by serde, so a token is compared with the possibly rounded value.
fn equals_number(num: &Num, expected: &Number) -> bool {
    match (num, expected.as_i64()) {
        (Num::Int(int), Some(expected)) => *int == expected,
        (Num::Int(_) | Num::Token(_), _) => jsonschema::json::cmp::equal_numbers(&num, expected),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use jsonschema::json::conformance::{assert_conformance, document};

    use super::*;

    /// Every level of it is a draft.
    fn as_draft(tree: &Tree) -> Draft<'_> {
        match tree {
            Tree::Null => Draft::Null,
            Tree::Bool(bool) => Draft::Bool(*bool),
            Tree::Num(num) => Draft::Num(num.clone()),
            Tree::Str(text) => Draft::Text(Cow::Borrowed(text)),
            Tree::SurrogateString(_) => Draft::Tree(tree),
            Tree::List(items) => Draft::List(items.iter().map(as_draft).collect()),
            Tree::Map(entries) => {
                Draft::Map(entries.iter().map(|(key, value)| (Cow::Borrowed(&**key), as_draft(value))).collect())
            }
        }
    }

    #[test]
    fn a_draft_is_written_like_its_tree() {
        let tree = Tree::from_value(&document());
        let draft = as_draft(&tree);
        assert_eq!(draft.to_json(), tree.to_json());
        assert_eq!(draft.into_tree(), tree);
    }

    #[test]
    fn the_tree_passes_the_conformance_suite_of_the_validator() {
        let tree = Tree::from_value(&document());
        assert_conformance::<TreeJson>(&JsonNode::from(&tree));
        let draft = as_draft(&tree);
        assert_conformance::<TreeJson>(&JsonNode::from(&draft));
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        let is_integer = |token: &str| {
            let tree = Tree::parse(token.as_bytes()).unwrap();
            JsonNode::from(&tree).as_number().unwrap().is_integer()
        };
        for token in ["0", "-0", "1.0", "1e3", "150e-1", "1e400", "12345678901234567890123"] {
            assert!(is_integer(token), "{token}");
        }
        for token in ["1.5", "15e-1", "1.00000000000000000000000001", "1e-400"] {
            assert!(!is_integer(token), "{token}");
        }
    }

    #[test]
    fn a_lone_surrogate_counts_as_one_character() {
        let tree = Tree::parse(br#""\ude00ab\ud83d""#).unwrap();
        assert_eq!(JsonNode::from(&tree).string_length(), Some(4));
        assert!(JsonNode::from(&tree).equals_value(&Value::from("\u{FFFD}ab\u{FFFD}")));
    }

    #[test]
    fn long_and_short_lists_are_checked_for_uniqueness() {
        for length in [2, LINEAR_LIMIT, LINEAR_LIMIT + 1, 100] {
            let mut items: Vec<Tree> = (0..length as i64).map(Tree::from).collect();
            assert!(JsonArray::Tree(&items).is_unique(), "{length}");
            items[length - 1] = Tree::from(0.0);
            assert!(!JsonArray::Tree(&items).is_unique(), "{length}");
        }
    }
}
