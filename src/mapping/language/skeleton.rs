//! Skeletons: YAML values with placeholders and a few directives. Frames, bodies, errors and backend requests are
//! skeletons. A compiled skeleton is self-contained: fragments are inserted.

use super::expression::Expression;
use crate::domain::{Text, Tree};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Skeleton {
    Constant(Tree),
    /// `optional`: its key (or list element) is left out when the value is null.
    Placeholder {
        expression: Expression,
        optional: bool,
    },
    Text(Vec<TextSegment>),
    List(Vec<Skeleton>),
    Map(Vec<(Text, Skeleton)>),
    Each {
        list: Expression,
        name: Arc<str>,
        filter: Option<Expression>,
        body: Box<Skeleton>,
    },
    Switch {
        on: Expression,
        cases: Vec<(String, Skeleton)>,
        default: Option<Box<Skeleton>>,
    },
    /// A fragment used with variables of another name: `{ $use: usage, with: { usage: turn.usage } }`.
    With {
        name: Arc<str>,
        value: Expression,
        body: Box<Skeleton>,
    },
    /// The request is rejected: `{ $reject: message, param: name }`.
    Reject {
        message: Box<Skeleton>,
        param: Option<Box<Skeleton>>,
    },
    /// The members of several maps; later ones take precedence.
    Merge(Vec<Skeleton>),
    If {
        condition: Expression,
        then: Box<Skeleton>,
        otherwise: Option<Box<Skeleton>>,
    },
}

#[derive(Clone, Debug)]
pub enum TextSegment {
    Text(String),
    Placeholder(Expression),
}

impl Skeleton {
    /// How deep lists, maps and directives are nested.
    pub fn depth(&self) -> usize {
        match self {
            Skeleton::Constant(tree) => tree_depth(tree),
            Skeleton::Placeholder { .. } | Skeleton::Text(_) => 0,
            Skeleton::List(items) | Skeleton::Merge(items) => deepest(items.iter().map(Skeleton::depth)),
            Skeleton::Map(entries) => deepest(entries.iter().map(|(_, value)| value.depth())),
            Skeleton::Each { body, .. } | Skeleton::With { body, .. } => 1 + body.depth(),
            Skeleton::Switch { cases, default, .. } => {
                deepest(cases.iter().map(|(_, case)| case.depth()).chain(default.iter().map(|case| case.depth())))
            }
            Skeleton::Reject { message, param } => deepest([message].into_iter().chain(param).map(|text| text.depth())),
            Skeleton::If { then, otherwise, .. } => {
                deepest([then].into_iter().chain(otherwise).map(|branch| branch.depth()))
            }
        }
    }

    /// Its fields, if it is a map and not a directive.
    pub fn into_map(self) -> Option<Vec<(Text, Skeleton)>> {
        match self {
            Skeleton::Map(entries) => Some(entries),
            Skeleton::Constant(Tree::Map(entries)) => {
                Some(entries.into_iter().map(|(k, v)| (k, Skeleton::Constant(v))).collect())
            }
            _ => None,
        }
    }
}

/// Turns a list or map without placeholders into a constant.
pub(super) fn fold_constants(skeleton: Skeleton) -> Skeleton {
    match skeleton {
        Skeleton::Map(entries) if entries.iter().all(|(_, s)| matches!(s, Skeleton::Constant(_))) => {
            Skeleton::Constant(Tree::Map(
                entries
                    .into_iter()
                    .filter_map(|(k, s)| match s {
                        Skeleton::Constant(tree) => Some((k, tree)),
                        _ => None,
                    })
                    .collect(),
            ))
        }
        Skeleton::List(items) if items.iter().all(|s| matches!(s, Skeleton::Constant(_))) => {
            Skeleton::Constant(Tree::List(
                items
                    .into_iter()
                    .filter_map(|s| match s {
                        Skeleton::Constant(tree) => Some(tree),
                        _ => None,
                    })
                    .collect(),
            ))
        }
        other => other,
    }
}

fn tree_depth(tree: &Tree) -> usize {
    match tree {
        Tree::List(items) => deepest(items.iter().map(tree_depth)),
        Tree::Map(entries) => deepest(entries.iter().map(|(_, value)| tree_depth(value))),
        _ => 0,
    }
}

fn deepest(inner: impl Iterator<Item = usize>) -> usize {
    1 + inner.max().unwrap_or(0)
}
