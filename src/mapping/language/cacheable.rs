//! Which frames are the same from one piece to the next but for the piece itself: those are filled once and then only
//! patched (`fill::Form`). Decided when the plan is made.

use super::expression::{Expr, Path};
use super::skeleton::{Skeleton, TextSegment};

/// What does not change while the same part of the same item goes on.
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
/// What does, and may stand alone in a hole.
const PIECES: &[&str] = &["text", "args", "seq"];
/// Mostly nothing; a frame that has some is filled the long way.
const RARE: &str = "logprobs";

/// Can a frame be patched?
pub fn is_steady(when: Option<&Expr>, data: &Skeleton) -> bool {
    when.is_none_or(|w| expr(w, &[])) && skeleton(data, &mut Vec::new())
}

fn skeleton(node: &Skeleton, bound: &mut Vec<String>) -> bool {
    match node {
        Skeleton::Constant(_) => true,
        Skeleton::Hole { expr: Expr::Variable(path), optional: false } if is_piece(path, bound) => true,
        Skeleton::Hole { expr: Expr::Engine { text, .. }, optional: false } if counts(text) => true,
        Skeleton::Hole { expr: e, .. } => expr(e, bound),
        Skeleton::Text(segments) => segments.iter().all(|s| match s {
            TextSegment::Text(_) => true,
            TextSegment::Hole(e) => expr(e, bound),
        }),
        Skeleton::List(items) => items.iter().all(|s| skeleton(s, bound)),
        Skeleton::Map(entries) => entries.iter().all(|(_, s)| skeleton(s, bound)),
        Skeleton::Each { list, name, filter, body } => {
            expr(list, bound) && {
                bound.push(name.to_string());
                let sound = filter.as_ref().is_none_or(|f| expr(f, bound)) && skeleton(body, bound);
                bound.pop();
                sound
            }
        }
        Skeleton::Switch { on, cases, default } => {
            expr(on, bound)
                && cases.iter().all(|(_, s)| skeleton(s, bound))
                && default.iter().all(|s| skeleton(s, bound))
        }
        Skeleton::With { name, value, body } => {
            expr(value, bound) && {
                bound.push(name.to_string());
                let sound = skeleton(body, bound);
                bound.pop();
                sound
            }
        }
        Skeleton::If { condition, then, otherwise } => {
            expr(condition, bound) && skeleton(then, bound) && otherwise.iter().all(|s| skeleton(s, bound))
        }
    }
}

fn expr(e: &Expr, bound: &[String]) -> bool {
    match e {
        Expr::Variable(path) | Expr::Chain { path, .. } => is_stable(path, bound),
        Expr::Engine { reads, .. } => reads.iter().all(|path| is_stable(path, bound)),
    }
}

fn is_stable(path: &Path, bound: &[String]) -> bool {
    let root = path.0.first().map(|s| &**s).unwrap_or_default();
    if bound.iter().any(|b| b == root) || matches!(root, "request" | "policy") || path.0.len() == 1 && root == RARE {
        return true;
    }
    STABLE.contains(&path.0.join(".").as_str())
}

fn is_piece(path: &Path, bound: &[String]) -> bool {
    path.0.len() == 1 && PIECES.contains(&&*path.0[0]) && !bound.iter().any(|b| **b == *path.0[0])
}

/// `seq + 1`: a count that begins elsewhere.
fn counts(text: &str) -> bool {
    text.strip_prefix("seq")
        .and_then(|rest| rest.trim().strip_prefix('+'))
        .is_some_and(|n| n.trim().parse::<u16>().is_ok())
}
