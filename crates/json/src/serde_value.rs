//! Conversion to and from `serde_json::Value`, for code that does not process frames.

use serde_json::{Number, Value};

use crate::{Num, Tree};

impl Tree {
    /// Converts a `serde_json::Value`.
    pub fn from_value(value: &Value) -> Tree {
        match value {
            Value::Null => Tree::Null,
            Value::Bool(bool) => Tree::Bool(*bool),
            Value::Number(number) => Tree::Num(match number.as_i64() {
                Some(int) => Num::Int(int),
                None => Num::from_token(&number.to_string()),
            }),
            Value::String(text) => Tree::from(text.as_str()),
            Value::Array(items) => Tree::List(items.iter().map(Tree::from_value).collect()),
            Value::Object(members) => {
                Tree::Map(members.iter().map(|(key, value)| (key.as_str().into(), Tree::from_value(value))).collect())
            }
        }
    }

    /// Lossless, with two exceptions: a number beyond `u64` becomes the nearest float, and lone surrogates become
    /// U+FFFD.
    pub fn to_value(&self) -> Value {
        match self {
            Tree::Null => Value::Null,
            Tree::Bool(bool) => Value::Bool(*bool),
            Tree::Num(num) => Value::Number(num.to_number()),
            Tree::Str(text) => Value::String(text.to_string()),
            Tree::SurrogateString(string) => Value::String(string.to_string_lossy()),
            Tree::List(items) => Value::Array(items.iter().map(Tree::to_value).collect()),
            Tree::Map(entries) => {
                Value::Object(entries.iter().map(|(key, tree)| (key.to_string(), tree.to_value())).collect())
            }
        }
    }
}

impl Num {
    /// The nearest number that serde can represent; `1e400` becomes the largest float.
    pub(crate) fn to_number(&self) -> Number {
        if let Some(int) = self.as_i64() {
            return int.into();
        }
        if let Some(int) = self.as_u64() {
            return int.into();
        }
        let negative = self.to_string().starts_with('-');
        let beyond = if negative { f64::MIN } else { f64::MAX };
        let float = self.as_f64().unwrap_or(beyond);
        Number::from_f64(float).unwrap_or_else(|| 0.into())
    }
}
