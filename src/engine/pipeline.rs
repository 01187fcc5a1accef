//! The stages of a turn, connected, without IO: raw event → Event → Moment → Frame. Read this file first.
//!
//! The caller (`server`, `verify`, `cli`) pushes upstream events and writes the output. It owns clock and sockets.

pub use super::frame_validation::{SchemaMismatch, Violation, ViolationCause};
pub use super::observer::{Observer, TraceEvent, lock};

use super::decode::{self, DecodedEvent};
use super::frames::{FrameOutput, FrameProducer};
use super::inline::InlineStage;
use crate::domain::policy::{MalformedExtras, StreamStart};
use crate::domain::{
    Event, Fault, FaultKind, Frame, MalformedExtra, Policies, Redactor, StreamEnd, ToolAliases, Tree, TurnRequest,
    TurnState,
};
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::transcript::RecordedEvent;
use crate::order::OrderCheck;
use crate::turn::{Ids, Turn};
use std::sync::Arc;

/// One turn, from the backend's events to the client's frames.
pub struct Pipeline {
    pub(super) backend: Arc<BackendPlan>,
    /// Searches text for blocks, if there can be any.
    pub(super) inline: Option<InlineStage>,
    pub(super) turn: Turn,
    pub(super) producer: FrameProducer,
    /// The backend sent a start event.
    has_started: bool,
    /// The backend sent raw events, and the rules read nothing of any of them.
    is_unread: bool,
    /// No raw event with content has arrived.
    is_first: bool,
    /// The fault behind a truncated response. The client sees only that the response was truncated.
    pub(super) truncated_by: Option<Fault>,
    redactor: Option<Redactor>,
    pub(super) began_ms: u64,
}

/// How frames are rendered. Both modes give the same bytes; the golden tests compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderMode {
    /// Cacheable frames are rendered once per cache key; later ones reuse the bytes.
    Cached,
    /// Every frame is interpreted.
    Interpreted,
}

/// The form of the response that the client requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    Stream,
    Body,
}

/// The output of one step of the pipeline.
#[derive(Debug, Default)]
pub struct PipelineOutput {
    /// To be written together; empty if the pipeline writes bytes.
    pub frames: Vec<Frame>,
    /// No output follows: the upstream request may be dropped.
    pub is_over: bool,
    /// What the rules could not read of the raw event, for the log: the core itself writes none.
    pub not_understood: Option<String>,
    /// Extras that were dropped, for metrics and the log.
    pub malformed_extras: Vec<MalformedExtra>,
}

/// The inputs of a pipeline.
pub struct TurnSpec {
    pub backend: Arc<BackendPlan>,
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub validation: Validation,
    pub response_mode: ResponseMode,
    pub tool_aliases: ToolAliases,
    /// Removes the backend's API key from messages.
    pub redactor: Option<Redactor>,
    pub ids: Ids,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl Pipeline {
    pub fn new(spec: TurnSpec) -> Pipeline {
        let policies = spec.dialect.resolved.policies.clone();
        let inline = InlineStage::of_turn(&spec);
        let request = &spec.request;
        let created = (spec.now_ms / 1000) as i64;
        let reads = match spec.response_mode {
            ResponseMode::Stream => spec.dialect.stream_reads,
            ResponseMode::Body => spec.dialect.body_reads,
        };
        let turn = Turn::new(policies, spec.ids, &request.model, request.n, created)
            .request_chars(request_chars(request))
            .keep_logprobs(reads.logprobs)
            .represents_calls(reads.calls)
            .parse_inputs(reads.inputs)
            .sends(spec.dialect.sent)
            .tool_aliases(spec.tool_aliases)
            .single_body(spec.response_mode == ResponseMode::Body);
        let producer = FrameProducer {
            dialect: spec.dialect,
            request: spec.request,
            validation: spec.validation,
            response_mode: spec.response_mode,
            order: OrderCheck::default(),
            seq: 0,
            output: FrameOutput::Frames(Vec::new()),
            cache: Vec::new(),
            render_mode: RenderMode::Cached,
            is_terminated: false,
            failure: None,
            violations: Vec::new(),
            observer: None,
        };
        Pipeline {
            backend: spec.backend,
            inline,
            turn,
            producer,
            has_started: false,
            is_unread: false,
            is_first: true,
            truncated_by: None,
            redactor: spec.redactor,
            began_ms: spec.now_ms,
        }
    }

    /// Limits the memory of what the turn keeps, in bytes.
    pub fn with_memory_limit(mut self, bytes: usize) -> Pipeline {
        self.turn.set_memory_limit(bytes);
        if let Some(inline) = &mut self.inline {
            inline.pass.set_memory_limit(bytes);
        }
        self
    }

    /// Writes frames as bytes, to be taken with [`Pipeline::drain`]; outputs then contain no frames.
    pub fn with_byte_output(mut self) -> Pipeline {
        self.producer.output = FrameOutput::Bytes(Vec::new());
        self
    }

    pub fn with_render_mode(mut self, mode: RenderMode) -> Pipeline {
        self.producer.render_mode = mode;
        self
    }

    /// Moves the bytes written since the last call into `into`.
    pub fn drain(&mut self, into: &mut Vec<u8>) {
        if let FrameOutput::Bytes(bytes) = &mut self.producer.output {
            into.append(bytes);
        }
    }

    pub fn with_observer(mut self, observer: Box<dyn Observer>) -> Pipeline {
        self.producer.observer = Some(observer);
        self
    }

    /// Call when the request was sent. Frames result only if the policies open a turn immediately.
    pub fn begin(&mut self) -> PipelineOutput {
        let producer = &mut self.producer;
        self.turn.begin(&mut |state, moment| producer.on_moment(state, moment));
        self.take_output()
    }

    /// Processes a raw event of the backend.
    pub fn push(&mut self, raw: &Tree, now_ms: u64) -> PipelineOutput {
        self.producer.trace(TraceEvent::Raw(raw));
        let decoded = decode::decode_event(&self.backend, raw);
        if let Some((why, rule)) = &decoded.dropped {
            self.producer.trace(TraceEvent::Dropped(why, *rule));
        }
        if let Some(what) = &decoded.not_understood {
            self.turn.mark_unread();
            self.producer.trace(TraceEvent::NotUnderstood(what));
        }
        for extra in &decoded.malformed_extras {
            self.producer.trace(TraceEvent::NotUnderstood(&extra.detail));
        }
        if self.policies().malformed_extras == MalformedExtras::Fail
            && let Some(extra) = decoded.malformed_extras.first()
        {
            let message = format!("the backend sent malformed {}: {}", extra.kind.name(), extra.detail);
            return self.fail(Fault::new(FaultKind::Malformed, message), now_ms);
        }
        if !is_empty(raw) {
            self.is_unread = decoded.is_unread(&self.backend) && (self.is_unread || self.is_first);
            self.is_first = false;
        }
        let DecodedEvent { events, not_understood, malformed_extras, .. } = decoded;
        for (event, rule) in events {
            self.push_decoded(event, rule, now_ms);
        }
        PipelineOutput { not_understood, malformed_extras, ..self.take_output() }
    }

    /// Call at the end of the upstream response. Emits the end of the turn, or the fault.
    pub fn finish(&mut self, how: StreamEnd, now_ms: u64) -> PipelineOutput {
        self.flush_inline(now_ms);
        let event = match how {
            // Not the empty response of the policy `on_empty`: this one was started and never finished.
            StreamEnd::Marker | StreamEnd::Eof if self.has_started && !self.turn.is_open() => Event::Fault {
                fault: Fault::new(FaultKind::Empty, "the backend started a response but sent no content"),
                is_final: true,
            },
            // Nor is this an empty response: it has content that is lost.
            StreamEnd::Marker | StreamEnd::Eof if self.is_unread && !self.turn.is_open() => Event::Fault {
                fault: Fault::new(FaultKind::Malformed, "no rule of the backend's mapping reads its response"),
                is_final: true,
            },
            // Both complete the turn after the last finish, and truncate it before.
            StreamEnd::Marker | StreamEnd::Eof => Event::End,
            StreamEnd::Disconnected(_) if self.turn.is_finished() => Event::End,
            StreamEnd::Disconnected(why) => Event::Fault {
                fault: Fault::new(FaultKind::Truncated, format!("the connection to the backend was lost: {why}")),
                is_final: true,
            },
        };
        if !self.turn.is_over() {
            self.advance(event, now_ms);
        }
        self.take_output()
    }

    /// Pushes all events of a transcript, without delays.
    pub fn replay<'l>(&mut self, arrivals: impl IntoIterator<Item = &'l RecordedEvent>, now_ms: u64) {
        let mut how = StreamEnd::Eof;
        for arrival in arrivals {
            match arrival {
                RecordedEvent::Raw(raw) => {
                    self.push(raw, now_ms);
                }
                RecordedEvent::End => how = StreamEnd::Marker,
                RecordedEvent::Disconnect(why) => how = StreamEnd::Disconnected(why.clone()),
            }
        }
        self.finish(how, now_ms);
    }

    /// Processes an event without the rules of a backend: for tests of the turn and for witness values.
    pub fn push_event(&mut self, event: Event, now_ms: u64) -> PipelineOutput {
        self.advance(event, now_ms);
        self.take_output()
    }

    /// Ends the turn with a fault that is not an event of the backend.
    pub fn fail(&mut self, fault: Fault, now_ms: u64) -> PipelineOutput {
        self.flush_inline(now_ms);
        self.advance(Event::Fault { fault, is_final: true }, now_ms);
        self.take_output()
    }

    /// Call when the backend sends a stream and the client waits for one body.
    pub fn mark_aggregated(&mut self) {
        self.turn.mark_aggregated();
    }

    /// Call when the response headers were sent: a later fault is sent inside the stream, after its opening frames.
    pub fn mark_headers_sent(&mut self) {
        self.turn.mark_headers_sent();
    }

    pub(super) fn policies(&self) -> &Policies {
        &self.producer.dialect.resolved.policies
    }

    /// No output follows.
    pub fn is_over(&self) -> bool {
        self.turn.is_over()
    }

    /// Every choice is finished; only usage and the end of the stream may follow, and they are not waited for long.
    pub fn is_finished(&self) -> bool {
        self.turn.is_finished()
    }

    /// Whether the turn has opened for the client. Until then a fault can still be a plain HTTP error.
    pub fn is_open(&self) -> bool {
        self.turn.is_open()
    }

    /// Whether the backend has sent part of its response. A turn that was opened immediately still waits for its first
    /// event, so for it only items and finished choices count.
    pub fn has_output(&self) -> bool {
        let state = self.turn.state();
        let has_content = || !state.items.is_empty() || state.choices.iter().any(|c| c.finish.is_some());
        self.turn.is_open() && (self.policies().stream_start == StreamStart::FirstEvent || has_content())
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.turn.state().error.as_ref()
    }

    /// The fault that the policies turned into a truncated response.
    pub fn truncated_by(&self) -> Option<&Fault> {
        self.truncated_by.as_ref()
    }

    pub fn state(&self) -> &TurnState {
        self.turn.state()
    }

    /// The number of events that arrived after the end of the turn.
    pub fn late_events(&self) -> u64 {
        self.turn.late_events()
    }

    /// The schema and order violations so far.
    pub fn violations(&self) -> &[Violation] {
        &self.producer.violations
    }

    pub(super) fn advance(&mut self, event: Event, now_ms: u64) {
        let event = match (event, &self.redactor) {
            (Event::Fault { fault, is_final }, Some(redactor)) => {
                Event::Fault { fault: redactor.redact_fault(fault), is_final }
            }
            (event, _) => event,
        };
        let late = self.turn.late_events();
        self.has_started |= matches!(event, Event::Start { .. });
        let truncation = self.truncation_by(&event);
        self.turn.set_elapsed_ms(now_ms.saturating_sub(self.began_ms) as i64);
        let producer = &mut self.producer;
        self.turn.advance(event, &mut |state, moment| producer.on_moment(state, moment));
        if self.turn.late_events() > late {
            self.producer.trace(TraceEvent::Late);
        }
        if self.turn.is_over() && self.fault().is_none() {
            self.truncated_by = self.truncated_by.take().or(truncation);
        }
        self.fail_on_violation();
    }

    pub(super) fn fail_on_violation(&mut self) {
        if let Some(fault) = self.producer.failure.clone() {
            let producer = &mut self.producer;
            self.turn.fail_on_violation(fault, &mut |state, moment| producer.on_moment(state, moment));
        }
    }

    /// The fault that truncates the turn if this is its last event.
    fn truncation_by(&self, event: &Event) -> Option<Fault> {
        let unfinished = !self.turn.is_over() && self.turn.state().choices.iter().any(|c| c.finish.is_none());
        match event {
            Event::Fault { fault, is_final: true } if unfinished => Some(fault.clone()),
            Event::End if unfinished => {
                Some(Fault::new(FaultKind::Truncated, "the backend's response ended before it was complete"))
            }
            _ => None,
        }
    }

    pub(super) fn take_output(&mut self) -> PipelineOutput {
        self.fail_on_violation();
        let frames = match &mut self.producer.output {
            FrameOutput::Frames(frames) => std::mem::take(frames),
            FrameOutput::Bytes(_) => Vec::new(),
        };
        PipelineOutput { frames, is_over: self.turn.is_over(), ..PipelineOutput::default() }
    }
}

/// The length of the request's text, from which usage is estimated.
fn request_chars(request: &TurnRequest) -> usize {
    let contents = request.content.items().iter().filter_map(|item| item.content());
    contents.map(|content| content.text().chars().count()).sum()
}

/// A document without content.
fn is_empty(raw: &Tree) -> bool {
    match raw {
        Tree::Null => true,
        Tree::List(items) => items.is_empty(),
        Tree::Map(members) => members.is_empty(),
        Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => false,
    }
}
