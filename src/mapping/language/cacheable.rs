//! Decides at load which frames are cacheable: from one delta to the next only the delta changes. Such a frame is
//! rendered once and then reused with the new delta (`engine::render::frame_cache`).

use super::expression::{Expression, VariablePath};
use super::skeleton::Skeleton;
use super::visitor::{Binding, VisitedExpression};

/// Variables that are constant within one part of one item.
const STABLE: &[&str] = &[
    "turn.id",
    "turn.created",
    "turn.model",
    "frame",
    "choice.index",
    "item.id",
    "item.index",
    "item.ordinal",
    "item.kind",
    "item.call_id",
    "item.name",
    "item.legacy",
    "part.index",
    "part.kind",
];
/// Variables that change with every delta. They may be the only content of a placeholder.
const DELTAS: &[&str] = &["text", "args", "seq"];
/// Usually null. A frame where it is not null is rendered without the cache.
const RARE: &str = "logprobs";

/// Whether a frame can be cached.
pub fn is_cacheable(when: Option<&Expression>, data: &Skeleton) -> bool {
    let is_stable = |expression: &Expression, bound: &[Binding]| {
        expression.variables().iter().all(|path| is_stable_variable(path, bound))
    };
    let mut cacheable = when.is_none_or(|when| is_stable(when, &[]));
    data.visit(&mut |visited| {
        cacheable &= visited.is_value && is_delta(&visited) || is_stable(visited.expression, visited.bound);
    });
    cacheable
}

fn is_stable_variable(path: &VariablePath, bound: &[Binding]) -> bool {
    let root = path.0.first().map(|s| &**s).unwrap_or_default();
    if is_bound(root, bound) || matches!(root, "request" | "policy") || path.0.len() == 1 && root == RARE {
        return true;
    }
    STABLE.contains(&path.0.join(".").as_str())
}

fn is_delta(visited: &VisitedExpression) -> bool {
    match visited.expression {
        Expression::Variable(path) => {
            path.0.len() == 1 && DELTAS.contains(&&*path.0[0]) && !is_bound(&path.0[0], visited.bound)
        }
        Expression::Jinja { text, .. } => is_sequence_offset(text),
        Expression::Chain { .. } => false,
    }
}

fn is_bound(root: &str, bound: &[Binding]) -> bool {
    bound.iter().any(|binding| binding.name == root)
}

/// `seq + 1`: a sequence number with an offset.
fn is_sequence_offset(text: &str) -> bool {
    text.strip_prefix("seq")
        .and_then(|rest| rest.trim().strip_prefix('+'))
        .is_some_and(|n| n.trim().parse::<u16>().is_ok())
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_language_cacheable.rs"]
mod tests;
