//! Skeletons: YAML values with placeholders and a few directives. Frames, bodies, errors and backend requests are
//! skeletons. A compiled skeleton is self-contained: fragments are inserted.

use super::expression::Expression;
use crate::domain::{Text, Tree};
use std::sync::Arc;

/// A copy shares what is inside: fragments are inserted in many places.
#[derive(Clone, Debug)]
pub enum Skeleton {
    Constant(Tree),
    /// `optional`: its key (or list element) is left out when the value is null.
    Placeholder {
        expression: Expression,
        optional: bool,
    },
    Text(Arc<[TextSegment]>),
    List(Arc<[Skeleton]>),
    Map(Arc<[(Text, Skeleton)]>),
    Each {
        list: Expression,
        name: Arc<str>,
        filter: Option<Expression>,
        body: Arc<Skeleton>,
    },
    Switch {
        on: Expression,
        cases: Arc<[(String, Skeleton)]>,
        default: Option<Arc<Skeleton>>,
    },
    /// A fragment used with variables of another name: `{ $use: usage, with: { usage: turn.usage } }`.
    With {
        name: Arc<str>,
        value: Expression,
        body: Arc<Skeleton>,
    },
    /// The request is rejected: `{ $reject: message, param: name }`.
    Reject {
        message: Arc<Skeleton>,
        param: Option<Arc<Skeleton>>,
    },
    /// The members of several maps; later ones take precedence.
    Merge(Arc<[Skeleton]>),
    If {
        condition: Expression,
        then: Arc<Skeleton>,
        otherwise: Option<Arc<Skeleton>>,
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

    /// A list; without placeholders it is a constant.
    pub(super) fn list(items: Vec<Skeleton>) -> Skeleton {
        let constants = items.iter().map(Skeleton::as_constant).collect::<Option<Vec<_>>>();
        let constant = constants.map(|items| Skeleton::Constant(Tree::List(items.into_iter().cloned().collect())));
        constant.unwrap_or_else(|| Skeleton::List(items.into()))
    }

    /// A map; without placeholders it is a constant.
    pub(super) fn map(entries: Vec<(Text, Skeleton)>) -> Skeleton {
        let constants = entries.iter().map(|(key, value)| Some((key.clone(), value.as_constant()?.clone())));
        match constants.collect::<Option<_>>() {
            Some(constants) => Skeleton::Constant(Tree::Map(constants)),
            None => Skeleton::Map(entries.into()),
        }
    }

    fn as_constant(&self) -> Option<&Tree> {
        let Skeleton::Constant(tree) = self else { return None };
        Some(tree)
    }

    /// Its fields, if it is a map and not a directive.
    pub fn into_map(self) -> Option<Vec<(Text, Skeleton)>> {
        match self {
            Skeleton::Map(entries) => Some(entries.to_vec()),
            Skeleton::Constant(Tree::Map(entries)) => {
                Some(entries.into_iter().map(|(k, v)| (k, Skeleton::Constant(v))).collect())
            }
            _ => None,
        }
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
