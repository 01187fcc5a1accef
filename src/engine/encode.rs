//! Moment → Frame, turn → JSON body, fault → error envelope: renders the dialect's skeletons.

use super::fault_report;
use super::render::{CachedFrame, Markers, RenderError, Scope, draft, is_true, render};
use crate::domain::variables::FrameContext;
use crate::domain::{Draft, Fault, Frame, FrameBody, Moment, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::{DialectPlan, FrameContent, FramePlan};

/// Renders the frame of a moment; `None` if its `when:` is false.
pub fn frame(
    dialect: &DialectPlan,
    plan: &FramePlan,
    state: &TurnState,
    moment: &Moment,
    request: &TurnRequest,
    seq: u64,
) -> Result<Option<Frame>, RenderError> {
    let scope = Scope::frame(dialect, &FrameContext { state, moment, request, seq, frame: &plan.name });
    if let Some(when) = &plan.when
        && !is_true(when, &scope, &dialect.pool)?
    {
        return Ok(None);
    }
    let rendered = |skeleton| render(skeleton, &scope, &dialect.pool).map(Option::unwrap_or_default);
    let mut event = plan.event.clone();
    let body = match &plan.content {
        FrameContent::Data(skeleton) => {
            let data = rendered(skeleton)?;
            if let (None, Some(name)) = (&event, &dialect.encoding.event) {
                let inner = Scope::framing(&data, &plan.name);
                event = render(name, &inner, &dialect.pool)?.as_ref().and_then(Tree::as_str).map(str::to_owned);
            }
            FrameBody::Data(data)
        }
        FrameContent::Text(skeleton) => FrameBody::Text(one_line(rendered(skeleton)?)?),
        FrameContent::Comment(skeleton) => FrameBody::Comment(one_line(rendered(skeleton)?)?),
    };
    if event.as_deref().is_some_and(has_line_break) {
        return Err(RenderError::Failed("the event name contains a line break".into()));
    }
    Ok(Some(Frame { name: plan.name.clone(), moment: moment.kind, event, body }))
}

/// A cacheable frame for one cache key.
pub enum CacheEntry {
    /// Its `when:` is false for this key.
    Omitted,
    Frame(CachedFrame),
    /// It must be interpreted each time.
    Uncacheable,
}

/// Renders a cacheable frame once, with markers in place of the delta and the sequence number.
pub fn cache_entry(
    dialect: &DialectPlan,
    plan: &FramePlan,
    state: &TurnState,
    moment: &Moment,
    request: &TurnRequest,
) -> Result<CacheEntry, RenderError> {
    let markers = Markers::for_turn(&state.id);
    let marked = Moment { text: markers.delta.clone(), ..moment.clone() };
    let rendered = frame(dialect, plan, state, &marked, request, markers.seq)?;
    Ok(match rendered {
        None => CacheEntry::Omitted,
        Some(Frame { body: FrameBody::Data(tree), event, .. }) => {
            CachedFrame::new(tree, &markers, event).map_or(CacheEntry::Uncacheable, CacheEntry::Frame)
        }
        Some(_) => CacheEntry::Uncacheable,
    })
}

/// The JSON body, from the same state as the last frame.
pub fn body<'a>(
    dialect: &'a DialectPlan,
    state: &'a TurnState,
    request: &'a TurnRequest,
) -> Result<Draft<'a>, RenderError> {
    let mut scope = Scope::body(dialect, state, request);
    Ok(draft(&dialect.body.skeleton, &mut scope, &dialect.pool)?.unwrap_or_default())
}

/// The dialect's error envelope.
pub fn error(dialect: &DialectPlan, fault: &Fault) -> Result<Tree, RenderError> {
    let fault = fault_report::reported(dialect, fault.clone());
    let scope = Scope::error(dialect, &fault);
    Ok(render(&dialect.errors.skeleton, &scope, &dialect.pool)?.unwrap_or_default())
}

/// The content of a text or comment frame. A line break is an error, because it could start another frame.
fn one_line(tree: Tree) -> Result<String, RenderError> {
    let text = crate::mapping::language::field::scalar_text(&tree).unwrap_or_default();
    if has_line_break(&text) {
        return Err(RenderError::Failed("a text frame contains a line break".into()));
    }
    Ok(text)
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r', '\0'])
}
