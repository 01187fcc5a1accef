//! Moment → Frame, turn → JSON body, fault → error envelope: renders the dialect's skeletons.

use super::fault_report;
use super::render::{CachedFrame, Markers, RenderError, Scope, draft, is_true, render, write, write_known};
use super::sse;
use crate::domain::variables::FrameContext;
use crate::domain::{Draft, Fault, Frame, FrameBody, Moment, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::{DialectPlan, FrameContent, FramePlan};
use crate::mapping::config::event_name::EventName;
use reframe_json::Schema;
use std::borrow::Cow;

/// A frame as it is rendered: without a copy of what exists already.
pub struct DraftFrame<'a> {
    /// The SSE event name, if the dialect's framing sets one.
    pub event: Option<Cow<'a, str>>,
    pub body: DraftBody<'a>,
}

pub enum DraftBody<'a> {
    Data(Draft<'a>),
    Text(String),
    Comment(String),
}

impl DraftFrame<'_> {
    pub fn into_frame(self, plan: &FramePlan, moment: &Moment) -> Frame {
        let body = match self.body {
            DraftBody::Data(draft) => FrameBody::Data(draft.into_tree()),
            DraftBody::Text(text) => FrameBody::Text(text),
            DraftBody::Comment(text) => FrameBody::Comment(text),
        };
        Frame { name: plan.name.clone(), moment: moment.kind, event: self.event.map(Cow::into_owned), body }
    }
}

/// Renders the frame of a moment; `None` if its `when:` is false.
pub fn draft_frame<'a>(
    dialect: &'a DialectPlan,
    plan: &'a FramePlan,
    context: &FrameContext<'a>,
) -> Result<Option<DraftFrame<'a>>, RenderError> {
    let mut scope = Scope::frame(dialect, context);
    if let Some(when) = &plan.when
        && !is_true(when, &scope, &dialect.pool)?
    {
        return Ok(None);
    }
    let mut rendered = |skeleton| draft(skeleton, &mut scope, &dialect.pool).map(Option::unwrap_or_default);
    let mut event = plan.event.as_deref().map(Cow::Borrowed);
    let body = match &plan.content {
        FrameContent::Data(skeleton) => {
            let data = rendered(skeleton)?;
            if let (None, Some(name)) = (&event, &dialect.encoding.event) {
                let name = draft(name, &mut Scope::framing(&data, &plan.name), &dialect.pool)?;
                event = name.as_ref().and_then(Draft::as_str).map(|name| Cow::Owned(name.to_owned()));
            }
            DraftBody::Data(data)
        }
        FrameContent::Text(skeleton) => DraftBody::Text(one_line(rendered(skeleton)?.into_tree())?),
        FrameContent::Comment(skeleton) => DraftBody::Comment(one_line(rendered(skeleton)?.into_tree())?),
    };
    if event.as_deref().is_some_and(has_line_break) {
        return Err(RenderError::Failed("the event name contains a line break".into()));
    }
    Ok(Some(DraftFrame { event, body }))
}

/// Whether a frame was written.
pub enum Written {
    Frame,
    /// Its `when:` is false.
    Omitted,
    /// Nothing was written: the frame has to be drafted and validated.
    Unknown,
}

/// Renders a frame into the stream, without a draft of it, if a valid frame had its shape before. `schema`: what frames
/// are validated with.
pub fn write_known_frame(
    dialect: &DialectPlan,
    plan: &FramePlan,
    context: &FrameContext,
    schema: Option<&Schema>,
    out: &mut Vec<u8>,
) -> Result<Written, RenderError> {
    let event = match &plan.event_name {
        EventName::None => None,
        EventName::Fixed(name) => Some(&**name),
        EventName::Rendered => return Ok(Written::Unknown),
    };
    let FrameContent::Data(skeleton) = &plan.content else { return Ok(Written::Unknown) };
    let mut scope = Scope::frame(dialect, context);
    if let Some(when) = &plan.when
        && !is_true(when, &scope, &dialect.pool)?
    {
        return Ok(Written::Omitted);
    }
    let start = out.len();
    let mut written = Ok(false);
    sse::write_rendered(event, dialect.encoding.format, out, |out| {
        written = match schema {
            Some(schema) => write_known(skeleton, &mut scope, &dialect.pool, schema, out),
            None => write(skeleton, &mut scope, &dialect.pool, out),
        };
    });
    match written {
        Ok(true) => Ok(Written::Frame),
        Ok(false) | Err(_) => {
            out.truncate(start);
            written.map(|_| Written::Unknown)
        }
    }
}

/// The body as text, without a draft of it, if a valid body had its shape before.
pub fn write_known_body(
    dialect: &DialectPlan,
    state: &TurnState,
    request: &TurnRequest,
    schema: Option<&Schema>,
    out: &mut Vec<u8>,
) -> Result<bool, RenderError> {
    let mut scope = Scope::body(dialect, state, request);
    match schema {
        Some(schema) => write_known(&dialect.body.skeleton, &mut scope, &dialect.pool, schema, out),
        None => write(&dialect.body.skeleton, &mut scope, &dialect.pool, out),
    }
}

/// A frame of its own.
pub fn frame(
    dialect: &DialectPlan,
    plan: &FramePlan,
    state: &TurnState,
    moment: &Moment,
    request: &TurnRequest,
    seq: u64,
) -> Result<Option<Frame>, RenderError> {
    let rendered = draft_frame(dialect, plan, &FrameContext { state, moment, request, seq, frame: &plan.name })?;
    Ok(rendered.map(|frame| frame.into_frame(plan, moment)))
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
