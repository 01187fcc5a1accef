//! Records the trace of a turn, for `reframe test` and `reframe explain`.

use crate::diagnostics::Span;
use crate::domain::{Frame, FrameBody, Moment, Tree, TurnState};
use crate::engine::decode;
use crate::engine::pipeline::{Observer, TraceEvent, Violation};
use crate::mapping::config::backend::BackendPlan;
use std::sync::Arc;

/// One recorded step of a turn.
#[derive(Debug)]
pub enum TraceEntry {
    Raw(RawEvent),
    /// One line of text, and the rule that emitted the event.
    Event(String, Span),
    /// The reason, and the rule or setting that drops the event.
    Dropped(String, Span),
    NotUnderstood(String),
    /// So many bytes of text wait, because they could be an inline block.
    Held(usize),
    Late,
    Moment(Moment, Option<Box<TurnState>>),
    Frame(Frame, Span),
    Violation(Violation),
}

#[derive(Clone, Debug)]
pub struct RawEvent {
    /// Counted from 1.
    pub number: usize,
    pub name: String,
    /// The members that no rule reads, without indexes. Only with [`TraceDetail::Reads`].
    pub unread: Vec<String>,
    /// Only with [`TraceDetail::States`].
    pub data: Option<Tree>,
}

/// A data frame with its moment, event and raw event.
pub struct FrameTrace<'s> {
    pub frame: &'s Frame,
    pub data: &'s Tree,
    /// The frame in the mapping.
    pub span: Span,
    pub moment: Option<(&'s Moment, Option<&'s TurnState>)>,
    pub event: Option<(&'s str, Span)>,
    pub raw: Option<&'s RawEvent>,
}

/// How much of a turn is recorded.
#[derive(Clone, Copy, PartialEq)]
pub enum TraceDetail {
    /// Enough to locate the source of a frame.
    Locations,
    /// Also what no rule reads of the raw events.
    Reads,
    /// Also the raw events and the turn state at each moment.
    States,
}

pub struct TraceRecorder {
    backend: Arc<BackendPlan>,
    detail: TraceDetail,
    raw_events: usize,
    pub trace: Vec<TraceEntry>,
}

impl TraceRecorder {
    pub fn new(backend: Arc<BackendPlan>, detail: TraceDetail) -> TraceRecorder {
        TraceRecorder { backend, detail, raw_events: 0, trace: Vec::new() }
    }
}

impl Observer for TraceRecorder {
    fn on(&mut self, event: TraceEvent) {
        let states = self.detail == TraceDetail::States;
        let entry = match event {
            TraceEvent::Raw(raw) => {
                self.raw_events += 1;
                let name = describe_raw(&self.backend, raw);
                let unread = match self.detail {
                    TraceDetail::Reads => decode::unread_members(&self.backend, raw),
                    TraceDetail::Locations | TraceDetail::States => Vec::new(),
                };
                TraceEntry::Raw(RawEvent { number: self.raw_events, name, unread, data: states.then(|| raw.clone()) })
            }
            TraceEvent::Event(event, span) => TraceEntry::Event(event.summary(), span),
            TraceEvent::Dropped(why, rule) => TraceEntry::Dropped(why.to_owned(), rule),
            TraceEvent::NotUnderstood(what) => TraceEntry::NotUnderstood(what.to_owned()),
            TraceEvent::Held(bytes) => TraceEntry::Held(bytes),
            TraceEvent::Late => TraceEntry::Late,
            TraceEvent::Moment(moment, state) => {
                TraceEntry::Moment(moment.clone(), states.then(|| Box::new(state.clone())))
            }
            TraceEvent::Frame(frame, span) => TraceEntry::Frame(frame.clone(), span),
            TraceEvent::Violation(violation) => TraceEntry::Violation(violation.clone()),
            TraceEvent::InlineCall(..)
            | TraceEvent::InlineReasoning
            | TraceEvent::Body(..)
            | TraceEvent::NotRendered(..) => return,
        };
        self.trace.push(entry);
    }
}

/// The data frames in order, each with its moment, event and raw event.
pub fn data_frames(trace: &[TraceEntry]) -> Vec<FrameTrace<'_>> {
    let (mut raw, mut event, mut moment) = (None, None, None);
    let mut frames = Vec::new();
    for entry in trace {
        match entry {
            TraceEntry::Raw(r) => (raw, event, moment) = (Some(r), None, None),
            TraceEntry::Event(brief, span) => (event, moment) = (Some((brief.as_str(), *span)), None),
            TraceEntry::Moment(m, state) => moment = Some((m, state.as_deref())),
            TraceEntry::Frame(frame, span) => {
                if let FrameBody::Data(data) = &frame.body {
                    frames.push(FrameTrace { frame, data, span: *span, moment, event, raw });
                }
            }
            TraceEntry::Dropped(..) | TraceEntry::NotUnderstood(_) | TraceEntry::Held(_) => {}
            TraceEntry::Late | TraceEntry::Violation(_) => {}
        }
    }
    frames
}

/// A recognisable name for a raw event: its event name by the backend's rules, its type or method, or else its first
/// keys.
pub fn describe_raw(backend: &BackendPlan, raw: &Tree) -> String {
    let named = || ["type", "method", "event", "object"].iter().find_map(|k| raw.get(k).and_then(Tree::as_str));
    match (backend.rules.event_name(raw), raw.as_map()) {
        (Some(name), _) => name,
        (None, Some(members)) => named().map_or_else(
            || {
                let keys: Vec<&str> = members.iter().take(3).map(|(k, _)| &**k).collect();
                format!("{{{}}}", keys.join(", "))
            },
            str::to_owned,
        ),
        (None, None) => raw.type_name().to_owned(),
    }
}
