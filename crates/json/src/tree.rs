//! The JSON tree, its accessors and constructors.

use std::fmt;

use crate::members::Members;
use crate::{Limits, Num, ParseError, SurrogateString, Text};

/// Ordered JSON with exact numbers.
///
/// The keys of a `Map` are distinct if it was built by [`Tree::parse`], [`Tree::map`] or [`Tree::insert`].
#[derive(Clone, Debug, Default)]
pub enum Tree {
    /// `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Num(Num),
    /// A string.
    Str(Text),
    /// A string that begins or ends with a lone surrogate; see [`SurrogateString`].
    SurrogateString(Box<SurrogateString>),
    /// An array.
    List(Vec<Tree>),
    /// An object, with its keys in order.
    Map(Vec<(Text, Tree)>),
}

impl Tree {
    /// Parses one JSON text (RFC 8259) within the default [`Limits`].
    ///
    /// A leading byte order mark is allowed. Of a duplicate key, the last value is kept at the position of the first. A
    /// string with a lone surrogate at either end becomes a [`SurrogateString`]; anywhere else, and in keys, a lone
    /// surrogate becomes U+FFFD.
    pub fn parse(bytes: &[u8]) -> Result<Tree, ParseError> {
        Tree::parse_with(bytes, &Limits::default())
    }

    /// [`Tree::parse`] with custom limits. The depth is always limited to 512.
    pub fn parse_with(bytes: &[u8], limits: &Limits) -> Result<Tree, ParseError> {
        crate::parse::parse(bytes, limits)
    }

    /// The value of `key`; `None` if this is not a map.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.as_map()?.iter().find(|(name, _)| &**name == key).map(|(_, value)| value)
    }

    /// The element at `index`; `None` if this is not a list.
    #[inline]
    pub fn at(&self, index: usize) -> Option<&Tree> {
        self.as_list()?.get(index)
    }

    /// The text of a string; `None` for a [`SurrogateString`], because its text is incomplete.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Tree::Str(text) => Some(text),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::SurrogateString(_) | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// See [`Num::as_i64`].
    pub fn as_i64(&self) -> Option<i64> {
        self.as_num()?.as_i64()
    }

    /// See [`Num::as_whole`].
    pub fn as_whole(&self) -> Option<i64> {
        self.as_num()?.as_whole()
    }

    /// Whether this is a number without a fraction.
    pub fn is_whole(&self) -> bool {
        self.as_num().is_some_and(Num::is_whole)
    }

    /// See [`Num::as_u64`].
    pub fn as_u64(&self) -> Option<u64> {
        self.as_num()?.as_u64()
    }

    /// See [`Num::as_f64`].
    pub fn as_f64(&self) -> Option<f64> {
        self.as_num()?.as_f64()
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Tree::Bool(bool) => Some(*bool),
            Tree::Null | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// The elements of an array.
    #[inline]
    pub fn as_list(&self) -> Option<&[Tree]> {
        match self {
            Tree::List(items) => Some(items),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) | Tree::Map(_) => None,
        }
    }

    /// The entries of an object, in order.
    #[inline]
    pub fn as_map(&self) -> Option<&[(Text, Tree)]> {
        match self {
            Tree::Map(entries) => Some(entries),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) | Tree::List(_) => None,
        }
    }

    /// Whether this is `null`.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Tree::Null)
    }

    /// The type name in JSON Schema.
    pub fn type_name(&self) -> &'static str {
        match self {
            Tree::Null => "null",
            Tree::Bool(_) => "boolean",
            Tree::Num(_) => "number",
            Tree::Str(_) | Tree::SurrogateString(_) => "string",
            Tree::List(_) => "array",
            Tree::Map(_) => "object",
        }
    }

    /// A map of these entries in order. Of a duplicate key, the last value is kept at the position of the first.
    pub fn map<K: Into<Text>>(entries: impl IntoIterator<Item = (K, Tree)>) -> Tree {
        let mut members = Members::default();
        for (key, value) in entries {
            members.put(key.into(), value);
        }
        Tree::Map(members.into_entries())
    }

    /// Replaces the value of the key in place, or appends it. Does nothing if this is not a map.
    pub fn insert<K: Into<Text>>(&mut self, key: K, value: Tree) {
        if let Tree::Map(entries) = self {
            let key = key.into();
            match entries.iter_mut().find(|(name, _)| *name == key) {
                Some((_, old)) => *old = value,
                None => entries.push((key, value)),
            }
        }
    }

    pub(crate) fn as_num(&self) -> Option<&Num> {
        match self {
            Tree::Num(num) => Some(num),
            Tree::Null | Tree::Bool(_) | Tree::Str(_) | Tree::SurrogateString(_) | Tree::List(_) | Tree::Map(_) => None,
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Tree {
        Tree::Str(text.into())
    }
}

impl From<String> for Tree {
    fn from(text: String) -> Tree {
        Tree::Str(text.into())
    }
}

impl From<Text> for Tree {
    fn from(text: Text) -> Tree {
        Tree::Str(text)
    }
}

impl From<bool> for Tree {
    fn from(bool: bool) -> Tree {
        Tree::Bool(bool)
    }
}

impl From<i64> for Tree {
    fn from(int: i64) -> Tree {
        Tree::Num(int.into())
    }
}

impl From<u64> for Tree {
    fn from(int: u64) -> Tree {
        Tree::Num(int.into())
    }
}

impl From<f64> for Tree {
    /// `Null` for infinities and NaN, which JSON cannot represent.
    fn from(float: f64) -> Tree {
        Num::try_from(float).map_or(Tree::Null, Tree::Num)
    }
}

impl From<Vec<Tree>> for Tree {
    fn from(items: Vec<Tree>) -> Tree {
        Tree::List(items)
    }
}
