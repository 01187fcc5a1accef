//! Values of variables, borrowed from the turn and copied only when they are written.

use super::{FieldName, Record, RequestRecords};
use crate::domain::{Draft, Text, Tree};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Tree(&'a Tree),
    /// What was rendered and is neither a scalar nor a tree.
    Draft(&'a Draft<'a>),
    Record(Record<'a>),
    /// Shared, because every scope inside `$each` has a copy of the variables around it.
    List(Arc<[Value<'a>]>),
    RequestRecords(RequestRecords<'a>),
    Policies(&'a [(Text, Tree)]),
}

static EMPTY_LIST: Tree = Tree::List(Vec::new());

impl<'a> Value<'a> {
    pub fn list<T: Into<Value<'a>>>(items: impl IntoIterator<Item = T>) -> Value<'a> {
        let mut items = items.into_iter().map(Into::into).peekable();
        // An empty list needs no allocation.
        if items.peek().is_none() {
            return Value::Tree(&EMPTY_LIST);
        }
        Value::List(items.collect())
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

    pub fn field(&self, name: &str) -> Value<'a> {
        self.named_field(name, FieldName::find(name))
    }

    /// The loader has checked the names of fields. `field`: the same name.
    pub fn named_field(&self, name: &str, field: FieldName) -> Value<'a> {
        match self {
            Value::Record(record) => record.field(field),
            Value::Tree(tree) => Value::from(tree.get(name)),
            Value::Policies(policies) => Value::from(policies.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)),
            Value::Draft(draft) => Value::from(draft.get(name)),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::RequestRecords(_) => Value::Null,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::Tree(Tree::Null))
    }

    /// As in Jinja: null, false, 0, "" and empty lists are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(b) => *b,
            Value::Int(i) => *i != 0,
            Value::Text(t) => !t.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::RequestRecords(records) => !records.is_empty(),
            Value::Tree(tree) => match tree {
                Tree::Null => false,
                Tree::Bool(b) => *b,
                Tree::Num(n) => n.as_f64() != Some(0.0),
                Tree::Str(s) => !s.is_empty(),
                Tree::SurrogateString(_) => true,
                Tree::List(items) => !items.is_empty(),
                Tree::Map(entries) => !entries.is_empty(),
            },
            // As a map, it may have no members.
            Value::Record(record) => !record.omits_null() || record.fields().any(|(_, value)| !value.is_null()),
            Value::Policies(_) => true,
            Value::Draft(_) => Value::Tree(&self.to_tree()).is_truthy(),
        }
    }

    /// How many elements there are, for `$each`.
    pub fn len(&self) -> usize {
        match self {
            Value::List(list) => list.len(),
            Value::RequestRecords(records) => records.len(),
            Value::Tree(Tree::List(trees)) => trees.len(),
            Value::Draft(Draft::List(drafts)) => drafts.len(),
            _ => 0,
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn elements(self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len()).map(move |at| self.element(at))
    }

    pub fn element(&self, at: usize) -> Value<'a> {
        match self {
            Value::List(list) => list.get(at).cloned(),
            Value::RequestRecords(records) => records.get(at).map(Value::Record),
            Value::Tree(tree) => tree.at(at).map(Value::Tree),
            Value::Draft(Draft::List(drafts)) => drafts.get(at).map(Value::from),
            _ => None,
        }
        .unwrap_or(Value::Null)
    }

    /// Whether this is the text; `None` if only the template engine knows.
    pub fn has_text(&self, text: &str) -> Option<bool> {
        match self {
            Value::Null | Value::Bool(_) | Value::Int(_) => Some(false),
            Value::Text(own) => Some(own.as_ref() == text),
            Value::Tree(Tree::Str(own)) => Some(own == text),
            Value::Tree(Tree::Null | Tree::Bool(_) | Tree::Num(_)) => Some(false),
            Value::Tree(_) | Value::Draft(_) | Value::Record(_) => None,
            Value::List(_) | Value::RequestRecords(_) | Value::Policies(_) => None,
        }
    }

    /// The integer; `None` if it is none, or has another spelling.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            Value::Tree(tree) => tree.as_i64(),
            Value::Draft(Draft::Num(num)) => num.as_i64(),
            _ => None,
        }
    }

    /// Without a copy of the text or the tree.
    pub fn into_draft(self) -> Draft<'a> {
        match self {
            Value::Null => Draft::Null,
            Value::Bool(bool) => Draft::Bool(bool),
            Value::Int(int) => Draft::Num(int.into()),
            Value::Text(text) => Draft::Text(text),
            Value::Tree(tree) => Draft::Tree(tree),
            Value::Draft(draft) => draft.clone(),
            Value::List(_) | Value::RequestRecords(_) | Value::Record(_) | Value::Policies(_) => {
                Draft::Owned(self.to_tree())
            }
        }
    }

    pub fn to_tree(&self) -> Tree {
        match self {
            Value::Null => Tree::Null,
            Value::Bool(b) => Tree::from(*b),
            Value::Int(i) => Tree::from(*i),
            Value::Text(t) => Tree::from(t.as_ref()),
            Value::Tree(tree) => (*tree).clone(),
            Value::Draft(draft) => (*draft).clone().into_tree(),
            Value::Record(record) => {
                let fields = record.fields().map(|(name, value)| (name, value.to_tree()));
                Tree::map(fields.filter(|(_, tree)| !(tree.is_null() && record.omits_null())))
            }
            Value::List(_) | Value::RequestRecords(_) => {
                Tree::List((0..self.len()).map(|at| self.element(at).to_tree()).collect())
            }
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

impl<'a> From<&'a Draft<'_>> for Value<'a> {
    fn from(draft: &'a Draft<'_>) -> Value<'a> {
        match draft {
            Draft::Null => Value::Null,
            Draft::Bool(bool) => Value::Bool(*bool),
            Draft::Text(text) => Value::Text(Cow::Borrowed(text)),
            Draft::Tree(tree) => Value::Tree(tree),
            Draft::Owned(tree) => Value::Tree(tree),
            Draft::Num(_) | Draft::List(_) | Draft::Map(_) => Value::Draft(draft),
        }
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Null, Into::into)
    }
}
