//! Adapter that lets `jsonpath-rust` query a tree without copying it.

use jsonpath_rust::JsonPath;
use jsonpath_rust::query::queryable::Queryable;

use crate::Tree;

/// No comparison and no pattern matches a string with lone surrogates, because its text is incomplete.
impl Queryable for Tree {
    fn get(&self, key: &str) -> Option<&Self> {
        Tree::get(self, key)
    }

    fn as_array(&self) -> Option<&Vec<Self>> {
        match self {
            Tree::List(items) => Some(items),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) | Tree::Map(_) => None,
        }
    }

    fn as_object(&self) -> Option<Vec<(&str, &Self)>> {
        let entries = self.as_map()?.iter();
        Some(entries.map(|(key, tree)| (&**key, tree)).collect())
    }

    fn as_str(&self) -> Option<&str> {
        Tree::as_str(self)
    }

    fn as_i64(&self) -> Option<i64> {
        Tree::as_i64(self)
    }

    fn as_f64(&self) -> Option<f64> {
        Tree::as_f64(self)
    }

    fn as_bool(&self) -> Option<bool> {
        Tree::as_bool(self)
    }

    fn null() -> Self {
        Tree::Null
    }
}

/// Provides `query` and related methods.
impl JsonPath for Tree {}
