//! Equality of trees.

use std::collections::HashMap;

use crate::{Text, Tree};

impl PartialEq for Tree {
    /// Compares numbers by value, and maps by key in any order.
    fn eq(&self, other: &Tree) -> bool {
        match (self, other) {
            (Tree::Null, Tree::Null) => true,
            (Tree::Bool(left), Tree::Bool(right)) => left == right,
            (Tree::Num(left), Tree::Num(right)) => left == right,
            (Tree::Str(left), Tree::Str(right)) => left == right,
            (Tree::SurrogateString(left), Tree::SurrogateString(right)) => left == right,
            (Tree::List(left), Tree::List(right)) => left == right,
            (Tree::Map(left), Tree::Map(right)) => same_entries(left, right),
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
}

impl Eq for Tree {}

fn same_entries(left: &[(Text, Tree)], right: &[(Text, Tree)]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // Fast path: both maps nearly always have the same key order. Only otherwise a hash table is built.
    let mut pairs = left.iter().zip(right);
    if pairs.all(|((left, _), (right, _))| left == right) {
        return left.iter().zip(right).all(|(left, right)| left.1 == right.1);
    }
    let table: HashMap<&str, &Tree> = right.iter().map(|(name, tree)| (&**name, tree)).collect();
    left.iter().all(|(name, tree)| table.get(&**name).is_some_and(|other| *other == tree))
}
