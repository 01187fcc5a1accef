//! Moment → Frame, turn → body, fault → error envelope: skeletons filled with the values of the turn.

use super::render::{Form, Marks, Place, RenderError, Scope, holds, render};
use crate::domain::{Fault, Frame, FrameBody, Moment, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::{Content, DialectPlan, FramePlan};

/// The frame that a plan makes of a moment; `None` when its `when:` does not hold.
pub fn frame(
    dialect: &DialectPlan,
    plan: &FramePlan,
    state: &TurnState,
    moment: &Moment,
    request: &TurnRequest,
    seq: u64,
) -> Result<Option<Frame>, RenderError> {
    let scope = Scope::moment(dialect, state, moment, request, seq, &plan.name);
    if let Some(when) = &plan.when
        && !holds(when, &scope, &dialect.pool)?
    {
        return Ok(None);
    }
    let fill = |skeleton| render(skeleton, &scope, &dialect.pool).map(Option::unwrap_or_default);
    let mut event = plan.event.clone();
    let body = match &plan.content {
        Content::Data(skeleton) => {
            let data = fill(skeleton)?;
            if let (None, Some(name)) = (&event, &dialect.wire.event) {
                let inner = Scope::framing(&data, &plan.name);
                event = render(name, &inner, &dialect.pool)?.as_ref().and_then(Tree::as_str).map(str::to_owned);
            }
            FrameBody::Data(data)
        }
        Content::Text(skeleton) => FrameBody::Text(text(fill(skeleton)?)?),
        Content::Comment(skeleton) => FrameBody::Comment(text(fill(skeleton)?)?),
    };
    if event.as_deref().is_some_and(breaks_lines) {
        return Err(RenderError("a line break in the event name".into()));
    }
    Ok(Some(Frame { name: plan.name.clone(), moment: moment.kind, event, body }))
}

/// What a steady frame comes down to at one place of the turn.
pub enum Patch {
    /// Its `when:` does not hold here.
    Nothing,
    Form(Form),
    /// It is filled the long way.
    Never,
}

/// Fills a steady frame once, with marks where its piece and its count will be.
pub fn patch(
    dialect: &DialectPlan,
    plan: &FramePlan,
    state: &TurnState,
    moment: &Moment,
    request: &TurnRequest,
) -> Result<Patch, RenderError> {
    let marks = Marks::of(&state.id);
    let marked = Moment { text: marks.piece.clone(), ..moment.clone() };
    let filled = frame(dialect, plan, state, &marked, request, marks.seq)?;
    Ok(match filled {
        None => Patch::Nothing,
        Some(Frame { body: FrameBody::Data(tree), event, .. }) => {
            Form::new(Place::of(moment), tree, &marks, event).map_or(Patch::Never, Patch::Form)
        }
        Some(_) => Patch::Never,
    })
}

/// The whole answer, from the same state that the last frame saw.
pub fn body(dialect: &DialectPlan, state: &TurnState, request: &TurnRequest) -> Result<Tree, RenderError> {
    let scope = Scope::body(dialect, state, request);
    Ok(render(&dialect.body.skeleton, &scope, &dialect.pool)?.unwrap_or_default())
}

/// The dialect's error envelope.
pub fn error(dialect: &DialectPlan, fault: &Fault) -> Result<Tree, RenderError> {
    let scope = Scope::error(dialect, fault);
    Ok(render(&dialect.errors.skeleton, &scope, &dialect.pool)?.unwrap_or_default())
}

/// What a text or comment frame says; a line break in it could begin another frame.
fn text(tree: Tree) -> Result<String, RenderError> {
    let text = crate::mapping::language::field::scalar_text(&tree).unwrap_or_default();
    if breaks_lines(&text) {
        return Err(RenderError("a line break in a text frame".into()));
    }
    Ok(text)
}

fn breaks_lines(text: &str) -> bool {
    text.contains(['\n', '\r', '\0'])
}
