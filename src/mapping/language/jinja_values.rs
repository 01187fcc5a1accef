//! JSON trees as values of the template engine, and back.

use crate::domain::{Text, Tree};
use minijinja::Value;
use minijinja::value::{Enumerator, Object, ValueKind};
use std::sync::Arc;

pub fn to_jinja(tree: &Tree) -> Value {
    match tree {
        Tree::Null => Value::from(()),
        Tree::Bool(b) => Value::from(*b),
        Tree::Num(n) => n.as_i64().map(Value::from).or(n.as_f64().map(Value::from)).unwrap_or_default(),
        Tree::Str(s) => Value::from(s.as_str()),
        Tree::SurrogateString(t) => Value::from(t.to_string_lossy()),
        Tree::List(items) => items.iter().map(to_jinja).collect(),
        Tree::Map(entries) => {
            Value::from_object(OrderedMap(entries.iter().map(|(k, v)| (k.clone(), to_jinja(v))).collect()))
        }
    }
}

/// A map that keeps the order of its keys: what goes through an expression is written like what does not.
#[derive(Debug)]
struct OrderedMap(Vec<(Text, Value)>);

impl Object for OrderedMap {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| Value::from(&**name)).collect())
    }
}

pub fn from_jinja(value: &Value) -> Tree {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Tree::Null,
        ValueKind::Bool => Tree::from(value.is_true()),
        ValueKind::Number => match i64::try_from(value.clone()) {
            Ok(i) if value.is_integer() => Tree::from(i),
            _ => f64::try_from(value.clone()).map_or(Tree::Null, Tree::from),
        },
        ValueKind::Seq | ValueKind::Iterable => {
            Tree::from(value.try_iter().map(|i| i.map(|v| from_jinja(&v)).collect()).unwrap_or_else(|_| Vec::new()))
        }
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter().map(Iterator::collect).unwrap_or_default();
            Tree::map(keys.iter().map(|k| (k.to_string(), value.get_item(k).map_or(Tree::Null, |v| from_jinja(&v)))))
        }
        _ => Tree::from(value.to_string()),
    }
}
