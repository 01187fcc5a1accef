//! Adapter that lets `jsonschema` validate a tree without copying it.

use std::borrow::Cow;
use std::sync::Arc;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, unique};
use serde_json::{Number, Value};

use crate::{Num, Tree};

/// Up to this length comparing all pairs is cheaper than copying the elements.
const LINEAR_LIMIT: usize = 16;

pub(super) struct TreeJson;

impl Json for TreeJson {
    type Node<'a> = &'a Tree;
    type PreparedKey = Box<str>;
    type StringBuffer = Tree;

    /// A lookup is a linear search, so one pass over the entries for all of `required` pays off early.
    const KEYS_PER_LOOKUP: usize = 8;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(buffer: &mut Tree, string: &str, check: impl FnOnce(&Tree) -> T) -> T {
        if let Tree::Str(text) = buffer {
            text.clear();
            text.push_str(string);
        } else {
            *buffer = string.into();
        }
        check(buffer)
    }
}

impl<'a> Node<'a, TreeJson> for &'a Tree {
    type Object = &'a [(Arc<str>, Tree)];
    type Array = &'a [Tree];
    type Number = &'a Num;

    fn as_object(&self) -> Option<&'a [(Arc<str>, Tree)]> {
        self.as_map()
    }

    fn as_array(&self) -> Option<&'a [Tree]> {
        self.as_list()
    }

    /// A lone surrogate counts as one character, for `maxLength`.
    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Tree::Str(text) => Some(Cow::Borrowed(text)),
            Tree::SurrogateString(string) => Some(Cow::Owned(string.to_string_lossy())),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    fn as_number(&self) -> Option<&'a Num> {
        self.as_num()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.as_bool()
    }

    fn is_null(&self) -> bool {
        Tree::is_null(self)
    }

    fn json_type(&self) -> JsonType {
        match self {
            Tree::Null => JsonType::Null,
            Tree::Bool(_) => JsonType::Boolean,
            Tree::Num(_) => JsonType::Number,
            Tree::Str(_) | Tree::SurrogateString(_) => JsonType::String,
            Tree::List(_) => JsonType::Array,
            Tree::Map(_) => JsonType::Object,
        }
    }

    /// Builds no `Value`, because every frame's schema has `const` and `enum`.
    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (Tree::Null, Value::Null) => true,
            (Tree::Bool(bool), Value::Bool(expected)) => bool == expected,
            (Tree::Num(num), Value::Number(expected)) => equals_number(num, expected),
            (Tree::Str(text), Value::String(expected)) => text == expected,
            (Tree::SurrogateString(string), Value::String(expected)) => string.to_string_lossy() == *expected,
            (Tree::List(items), Value::Array(expected)) => {
                let mut pairs = items.iter().zip(expected);
                items.len() == expected.len() && pairs.all(|(item, value)| item.equals_value(value))
            }
            (Tree::Map(entries), Value::Object(expected)) => {
                let same = |(key, tree): &(Arc<str>, Tree)| {
                    let value = expected.get(&**key);
                    value.is_some_and(|value| (&tree).equals_value(value))
                };
                entries.len() == expected.len() && entries.iter().all(same)
            }
            (
                Tree::Null
                | Tree::Bool(_)
                | Tree::Num(_)
                | Tree::Str(_)
                | Tree::SurrogateString(_)
                | Tree::List(_)
                | Tree::Map(_),
                _,
            ) => false,
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(Tree::to_value(self))
    }

    /// The address is a valid identity: nodes do not move while the tree is borrowed, and no two nodes share an
    /// address.
    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Tree>(self) as usize))
    }
}

impl<'a> Object<'a, TreeJson> for &'a [(Arc<str>, Tree)] {
    type Node = &'a Tree;
    type MemberName = &'a str;
    type MembersIter = Entries<'a>;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn get(&self, key: &Box<str>) -> Option<&'a Tree> {
        let mut entries = self.iter();
        entries.find(|(name, _)| **name == **key).map(|(_, tree)| tree)
    }

    fn members(&self) -> Entries<'a> {
        Entries(self.iter())
    }
}

pub(super) struct Entries<'a>(std::slice::Iter<'a, (Arc<str>, Tree)>);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, &'a Tree);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, tree)| (&**name, tree))
    }
}

impl<'a> Array<'a, TreeJson> for &'a [Tree] {
    type Node = &'a Tree;
    type ElementsIter = std::slice::Iter<'a, Tree>;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn elements(&self) -> std::slice::Iter<'a, Tree> {
        self.iter()
    }

    fn is_unique(&self) -> bool {
        if <[_]>::len(self) > LINEAR_LIMIT {
            let values: Vec<Value> = self.iter().map(Tree::to_value).collect();
            return unique::is_unique(&values);
        }
        let mut items = self.iter().enumerate();
        items.all(|(at, item)| !self[..at].contains(item))
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

    #[test]
    fn the_tree_passes_the_conformance_suite_of_the_validator() {
        let tree = Tree::from_value(&document());
        assert_conformance::<TreeJson>(&&tree);
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        let is_integer = |token: &str| {
            let tree = Tree::parse(token.as_bytes()).unwrap();
            (&tree).as_number().unwrap().is_integer()
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
        assert_eq!((&tree).string_length(), Some(4));
        assert!((&tree).equals_value(&Value::from("\u{FFFD}ab\u{FFFD}")));
    }

    #[test]
    fn long_and_short_lists_are_checked_for_uniqueness() {
        for length in [2, LINEAR_LIMIT, LINEAR_LIMIT + 1, 100] {
            let mut items: Vec<Tree> = (0..length as i64).map(Tree::from).collect();
            assert!((&items[..]).is_unique(), "{length}");
            items[length - 1] = Tree::from(0.0);
            assert!(!(&items[..]).is_unique(), "{length}");
        }
    }
}
