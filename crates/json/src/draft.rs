//! Drafts: JSON that is validated and written without copies of what exists already.

use std::borrow::Cow;

use crate::members::LINEAR_LIMIT;
use crate::write::{into_text, write_list, write_map, write_str};
use crate::{Num, Text, Tree};

/// A JSON value that borrows its texts and the trees that it consists of.
#[derive(Clone, Debug, Default)]
pub enum Draft<'a> {
    /// `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Num(Num),
    /// A string.
    Text(Cow<'a, str>),
    /// A value that exists already.
    Tree(&'a Tree),
    /// A value that was computed.
    Owned(Tree),
    /// An array.
    List(Vec<Draft<'a>>),
    /// An object, with its keys in order. The keys are distinct.
    Map(Vec<(Cow<'a, str>, Draft<'a>)>),
}

impl<'a> Draft<'a> {
    /// A map of these members in order. Of a duplicate key, the last value is kept at the position of the first.
    pub fn map(members: Vec<(Cow<'a, str>, Draft<'a>)>) -> Draft<'a> {
        if members.len() > LINEAR_LIMIT {
            return Draft::Owned(Tree::map(members.into_iter().map(|(key, value)| (key, value.into_tree()))));
        }
        let mut distinct: Vec<(Cow<'a, str>, Draft<'a>)> = Vec::with_capacity(members.len());
        for (key, value) in members {
            match distinct.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) => *old = value,
                None => distinct.push((key, value)),
            }
        }
        Draft::Map(distinct)
    }

    /// The tree, if it is one.
    #[inline]
    pub fn as_tree(&self) -> Option<&Tree> {
        match self {
            Draft::Tree(tree) => Some(tree),
            Draft::Owned(tree) => Some(tree),
            Draft::Null | Draft::Bool(_) | Draft::Num(_) | Draft::Text(_) | Draft::List(_) | Draft::Map(_) => None,
        }
    }

    /// Whether this is `null`.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Draft::Null) || self.as_tree().is_some_and(Tree::is_null)
    }

    /// The text of a string; see [`Tree::as_str`].
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Draft::Text(text) => Some(text),
            other => other.as_tree().and_then(Tree::as_str),
        }
    }

    /// The members of an object; `None` if this is none.
    pub fn into_members(self) -> Option<Vec<(Cow<'a, str>, Draft<'a>)>> {
        match self {
            Draft::Map(members) => Some(members),
            Draft::Tree(Tree::Map(members)) => {
                Some(members.iter().map(|(key, value)| (Cow::Borrowed(key.as_str()), Draft::Tree(value))).collect())
            }
            Draft::Owned(Tree::Map(members)) => {
                let owned = |(key, value): (Text, Tree)| (Cow::Owned(key.into_string()), Draft::Owned(value));
                Some(members.into_iter().map(owned).collect())
            }
            _ => None,
        }
    }

    /// The members of an object, to be changed; `None` if this is none.
    pub fn members_mut(&mut self) -> Option<&mut Vec<(Cow<'a, str>, Draft<'a>)>> {
        if self.as_tree().is_some_and(|tree| tree.as_map().is_some()) {
            *self = Draft::Map(std::mem::take(self).into_members().unwrap_or_default());
        }
        match self {
            Draft::Map(members) => Some(members),
            _ => None,
        }
    }

    /// The elements of an array, to be changed; `None` if this is none.
    pub fn elements_mut(&mut self) -> Option<&mut Vec<Draft<'a>>> {
        if self.as_tree().is_some_and(|tree| tree.as_list().is_some()) {
            let elements = match std::mem::take(self) {
                Draft::Tree(Tree::List(elements)) => elements.iter().map(Draft::Tree).collect(),
                Draft::Owned(Tree::List(elements)) => elements.into_iter().map(Draft::Owned).collect(),
                _ => Vec::new(),
            };
            *self = Draft::List(elements);
        }
        match self {
            Draft::List(elements) => Some(elements),
            _ => None,
        }
    }

    /// The value of a member of a map of drafts.
    pub fn get(&self, key: &str) -> Option<&Draft<'a>> {
        match self {
            Draft::Map(members) => members.iter().find(|(name, _)| *name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value of a member, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Draft<'a>> {
        self.members_mut()?.iter_mut().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The same value as a tree.
    pub fn into_tree(self) -> Tree {
        match self {
            Draft::Null => Tree::Null,
            Draft::Bool(bool) => Tree::Bool(bool),
            Draft::Num(num) => Tree::Num(num),
            Draft::Text(Cow::Borrowed(text)) => Tree::from(text),
            Draft::Text(Cow::Owned(text)) => Tree::from(text),
            Draft::Tree(tree) => tree.clone(),
            Draft::Owned(tree) => tree,
            Draft::List(elements) => Tree::List(elements.into_iter().map(Draft::into_tree).collect()),
            Draft::Map(members) => {
                Tree::Map(members.into_iter().map(|(key, value)| (Text::from(key), value.into_tree())).collect())
            }
        }
    }

    /// Appends compact JSON without whitespace: the same as that of the tree.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Draft::Null => Tree::Null.write(out),
            Draft::Bool(bool) => Tree::Bool(*bool).write(out),
            Draft::Num(num) => num.write(out),
            Draft::Text(text) => write_str(text, out),
            Draft::Tree(tree) => tree.write(out),
            Draft::Owned(tree) => tree.write(out),
            Draft::List(elements) => write_list(elements.iter(), Draft::write, out),
            Draft::Map(members) => write_map(members.iter().map(|(key, value)| (&**key, value)), Draft::write, out),
        }
    }

    /// The value as compact JSON.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(512);
        self.write(&mut out);
        into_text(out)
    }
}

impl<'a> From<Cow<'a, Tree>> for Draft<'a> {
    fn from(tree: Cow<'a, Tree>) -> Draft<'a> {
        match tree {
            Cow::Borrowed(tree) => Draft::Tree(tree),
            Cow::Owned(tree) => Draft::Owned(tree),
        }
    }
}
