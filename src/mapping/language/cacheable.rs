//! Decides at load which frames are cacheable: from one delta to the next only the delta changes. Such a frame is
//! rendered once and then reused with the new delta (`engine::render::frame_cache`).

use super::expression::{Expression, VariablePath};
use super::skeleton::{Skeleton, TextSegment};

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
    "part.index",
    "part.kind",
];
/// Variables that change with every delta. They may be the only content of a placeholder.
const DELTAS: &[&str] = &["text", "args", "seq"];
/// Usually null. A frame where it is not null is rendered without the cache.
const RARE: &str = "logprobs";

/// Whether a frame can be cached.
pub fn is_cacheable(when: Option<&Expression>, data: &Skeleton) -> bool {
    when.is_none_or(|w| is_stable_expression(w, &[])) && is_cacheable_skeleton(data, &mut Vec::new())
}

fn is_cacheable_skeleton(node: &Skeleton, bound: &mut Vec<String>) -> bool {
    match node {
        Skeleton::Constant(_) => true,
        Skeleton::Placeholder { expression: Expression::Variable(path), optional: false } if is_delta(path, bound) => {
            true
        }
        Skeleton::Placeholder { expression: Expression::Jinja { text, .. }, optional: false }
            if is_sequence_offset(text) =>
        {
            true
        }
        Skeleton::Placeholder { expression: e, .. } => is_stable_expression(e, bound),
        Skeleton::Text(segments) => segments.iter().all(|s| match s {
            TextSegment::Text(_) => true,
            TextSegment::Placeholder(e) => is_stable_expression(e, bound),
        }),
        Skeleton::List(items) => items.iter().all(|s| is_cacheable_skeleton(s, bound)),
        Skeleton::Map(entries) => entries.iter().all(|(_, s)| is_cacheable_skeleton(s, bound)),
        Skeleton::Each { list, name, filter, body } => {
            is_stable_expression(list, bound) && {
                bound.push(name.to_string());
                let cacheable = filter.as_ref().is_none_or(|f| is_stable_expression(f, bound))
                    && is_cacheable_skeleton(body, bound);
                bound.pop();
                cacheable
            }
        }
        Skeleton::Switch { on, cases, default } => {
            is_stable_expression(on, bound)
                && cases.iter().all(|(_, s)| is_cacheable_skeleton(s, bound))
                && default.iter().all(|s| is_cacheable_skeleton(s, bound))
        }
        Skeleton::With { name, value, body } => {
            is_stable_expression(value, bound) && {
                bound.push(name.to_string());
                let cacheable = is_cacheable_skeleton(body, bound);
                bound.pop();
                cacheable
            }
        }
        Skeleton::If { condition, then, otherwise } => {
            is_stable_expression(condition, bound)
                && is_cacheable_skeleton(then, bound)
                && otherwise.iter().all(|s| is_cacheable_skeleton(s, bound))
        }
    }
}

fn is_stable_expression(e: &Expression, bound: &[String]) -> bool {
    match e {
        Expression::Variable(path) | Expression::Chain { path, .. } => is_stable(path, bound),
        Expression::Jinja { variables, .. } => variables.iter().all(|path| is_stable(path, bound)),
    }
}

fn is_stable(path: &VariablePath, bound: &[String]) -> bool {
    let root = path.0.first().map(|s| &**s).unwrap_or_default();
    if bound.iter().any(|b| b == root) || matches!(root, "request" | "policy") || path.0.len() == 1 && root == RARE {
        return true;
    }
    STABLE.contains(&path.0.join(".").as_str())
}

fn is_delta(path: &VariablePath, bound: &[String]) -> bool {
    path.0.len() == 1 && DELTAS.contains(&&*path.0[0]) && !bound.iter().any(|b| **b == *path.0[0])
}

/// `seq + 1`: a sequence number with an offset.
fn is_sequence_offset(text: &str) -> bool {
    text.strip_prefix("seq")
        .and_then(|rest| rest.trim().strip_prefix('+'))
        .is_some_and(|n| n.trim().parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::MomentKind;
    use crate::domain::variables::variables_at;
    use crate::mapping::language::scope::VariableScope;

    #[test]
    fn the_listed_variables_exist() {
        let variables = variables_at(MomentKind::TextDelta).chain(variables_at(MomentKind::ToolArgs));
        let scope = VariableScope::new("a delta", variables);
        for path in STABLE.iter().chain(DELTAS).chain([&RARE]) {
            assert!(scope.resolve(path).is_ok(), "{path}");
        }
    }
}
