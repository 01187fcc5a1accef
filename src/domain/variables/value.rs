//! Values of variables, borrowed from the turn and copied only when they are written.

use super::Record;
use crate::domain::Tree;
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Tree(&'a Tree),
    Record(Record<'a>),
    /// Shared, because every scope inside `$each` has a copy of the variables around it.
    List(Arc<[Value<'a>]>),
    Policies(&'a [(Arc<str>, Tree)]),
}

impl<'a> Value<'a> {
    pub fn list<T: Into<Value<'a>>>(items: impl IntoIterator<Item = T>) -> Value<'a> {
        Value::List(items.into_iter().map(Into::into).collect())
    }

    /// Null when there is no text, borrowed when there is one, joined when there are more.
    pub fn joined(texts: impl IntoIterator<Item = &'a str>) -> Value<'a> {
        let mut texts = texts.into_iter();
        let Some(first) = texts.next() else { return Value::Null };
        match texts.next() {
            None => Value::from(first),
            Some(second) => Value::Text(Cow::Owned([first, second].into_iter().chain(texts).collect())),
        }
    }

    /// The loader has checked the names of fields.
    pub fn field(&self, name: &str) -> Value<'a> {
        match self {
            Value::Record(record) => record.field(name),
            Value::Tree(tree) => Value::from(tree.get(name)),
            Value::Policies(policies) => Value::from(policies.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Text(_) | Value::List(_) => Value::Null,
        }
    }

    /// As in Jinja: null, false, 0, "" and empty lists are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(b) => *b,
            Value::Int(i) => *i != 0,
            Value::Text(t) => !t.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Tree(tree) => match tree {
                Tree::Null => false,
                Tree::Bool(b) => *b,
                Tree::Num(n) => n.as_f64() != Some(0.0),
                Tree::Str(s) => !s.is_empty(),
                Tree::SurrogateString(_) => true,
                Tree::List(items) => !items.is_empty(),
                Tree::Map(entries) => !entries.is_empty(),
            },
            Value::Record(_) | Value::Policies(_) => true,
        }
    }

    /// The elements, for `$each`.
    pub fn elements(&self) -> Vec<Value<'a>> {
        match self {
            Value::List(items) => items.to_vec(),
            Value::Tree(Tree::List(items)) => items.iter().map(Value::Tree).collect(),
            _ => Vec::new(),
        }
    }

    pub fn to_tree(&self) -> Tree {
        match self {
            Value::Null => Tree::Null,
            Value::Bool(b) => Tree::from(*b),
            Value::Int(i) => Tree::from(*i),
            Value::Text(t) => Tree::from(t.as_ref()),
            Value::Tree(tree) => (*tree).clone(),
            Value::Record(record) => {
                let fields = record.fields().map(|(name, value)| (name, value.to_tree()));
                Tree::map(fields.filter(|(_, tree)| !(tree.is_null() && record.omits_null())))
            }
            Value::List(items) => Tree::from(items.iter().map(Value::to_tree).collect::<Vec<_>>()),
            Value::Policies(policies) => Tree::Map(policies.to_vec()),
        }
    }
}

/// `Value::from` for each type that a variable's value can have.
macro_rules! value_from {
    ($($kind:ty: $value:ident => $converted:expr;)*) => {
        $(impl<'a> From<$kind> for Value<'a> {
            fn from($value: $kind) -> Value<'a> {
                $converted
            }
        })*
    };
}

value_from! {
    bool: value => Value::Bool(value);
    i64: value => Value::Int(value);
    u64: value => Value::Int(value as i64);
    u16: value => Value::Int(i64::from(value));
    usize: value => Value::Int(value as i64);
    &'a str: text => Value::Text(Cow::Borrowed(text));
    &'a String: text => Value::Text(Cow::Borrowed(text));
    Cow<'a, str>: text => Value::Text(text);
    &'a Tree: tree => Value::Tree(tree);
    Record<'a>: record => Value::Record(record);
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Null, Into::into)
    }
}
