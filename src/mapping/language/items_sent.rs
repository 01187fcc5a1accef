//! Which kinds of items a dialect sends: those with a frame at one of their moments. A dialect that lists all items of a
//! turn, without a condition, sends all kinds.

use super::expression::Expression;
use super::skeleton::Skeleton;
use crate::domain::{MomentKind, SentItems};

/// `has_frames`: whether a moment has a frame. `outputs`: the skeletons of all frames, and the body.
pub fn items_sent<'s>(
    has_frames: impl Fn(MomentKind) -> bool,
    outputs: impl IntoIterator<Item = &'s Skeleton>,
) -> SentItems {
    use MomentKind as M;
    if outputs.into_iter().any(lists_all_items) {
        return SentItems::ALL;
    }
    let any = |moments: &[M]| moments.iter().any(|moment| has_frames(*moment));
    SentItems {
        messages: any(&[M::MessageOpen, M::PartOpen, M::TextDelta, M::RefusalDelta, M::PartClose, M::MessageClose]),
        reasoning: any(&[M::ReasoningOpen, M::SummaryOpen, M::SummaryDelta, M::SummaryClose])
            || any(&[M::ThoughtOpen, M::ThoughtDelta, M::ThoughtClose, M::ReasoningClose]),
        calls: any(&[M::ToolOpen, M::ToolArgs, M::ToolClose]),
    }
}

fn lists_all_items(skeleton: &Skeleton) -> bool {
    match skeleton {
        Skeleton::Constant(_) | Skeleton::Text(_) | Skeleton::Reject { .. } => false,
        Skeleton::Placeholder { expression, .. } => is_items(expression),
        Skeleton::List(entries) | Skeleton::Merge(entries) => entries.iter().any(lists_all_items),
        Skeleton::Map(entries) => entries.iter().any(|(_, value)| lists_all_items(value)),
        Skeleton::Each { list, filter, body, .. } => filter.is_none() && is_items(list) || lists_all_items(body),
        Skeleton::Switch { cases, default, .. } => {
            let cases = cases.iter().map(|(_, case)| case);
            cases.chain(default.as_deref()).any(lists_all_items)
        }
        Skeleton::With { body, .. } => lists_all_items(body),
        Skeleton::If { then, otherwise, .. } => {
            lists_all_items(then) || otherwise.as_deref().is_some_and(lists_all_items)
        }
    }
}

fn is_items(expression: &Expression) -> bool {
    match expression {
        Expression::Variable(path) => path.0.last().is_some_and(|field| &**field == "items"),
        Expression::Chain { .. } | Expression::Jinja { .. } => false,
    }
}
