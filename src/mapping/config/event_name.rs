//! The SSE event name of the frames of a plan, as far as it is known at load.

use super::dialect_plan::{FrameContent, FramePlan, StreamEncoding};
use crate::domain::Tree;
use crate::domain::variables;
use crate::mapping::grammar::notation::LINE_BREAKS;
use crate::mapping::language::expression::Expression;
use crate::mapping::language::skeleton::Skeleton;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventName {
    None,
    Fixed(Arc<str>),
    /// It depends on the content of the frame.
    Rendered,
}

impl EventName {
    /// The frame's own name, or that of the framing: mostly the name of the frame, or a member that has it.
    pub fn of(plan: &FramePlan, encoding: &StreamEncoding) -> EventName {
        match (&plan.event, &plan.content, &encoding.event) {
            (Some(own), ..) => EventName::fixed(own),
            (None, FrameContent::Text(_) | FrameContent::Comment(_), _) | (None, _, None) => EventName::None,
            (None, FrameContent::Data(data), Some(name)) => match (variable(name), data) {
                (Some([root, member]), Skeleton::Map(members)) if &**root == variables::DATA.0 => {
                    let found = members.iter().find(|(name, _)| **name == **member);
                    found.map_or(EventName::Rendered, |(_, skeleton)| EventName::of_value(skeleton, plan))
                }
                _ => EventName::of_value(name, plan),
            },
        }
    }

    fn of_value(skeleton: &Skeleton, plan: &FramePlan) -> EventName {
        match (skeleton, variable(skeleton)) {
            (Skeleton::Constant(Tree::Str(text)), _) => EventName::fixed(text),
            (_, Some([root])) if &**root == variables::FRAME.0 => EventName::fixed(&plan.name),
            _ => EventName::Rendered,
        }
    }

    /// A line break is an error when the frame is rendered.
    fn fixed(name: &str) -> EventName {
        if name.contains(LINE_BREAKS) { EventName::Rendered } else { EventName::Fixed(name.into()) }
    }
}

/// The variable that a skeleton consists of.
fn variable(skeleton: &Skeleton) -> Option<&[Arc<str>]> {
    match skeleton {
        Skeleton::Placeholder { expression: Expression::Variable(path), .. } => Some(&path.0),
        _ => None,
    }
}
