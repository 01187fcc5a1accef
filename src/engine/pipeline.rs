//! The stages of a turn, connected, without IO: raw event → Event → Moment → Frame. Read this file first.
//!
//! The caller (`server`, `verify`, `cli`) pushes upstream events and writes the output. It owns clock and sockets.

pub use super::frame_validation::{SchemaMismatch, Violation, ViolationCause};
pub use super::observer::{Observer, TraceEvent, lock};
pub use super::turn_spec::{RenderMode, ResponseMode, TurnSpec, request_chars};

use super::decode::{self, DecodedEvent};
use super::event_cache::DeltaEvent;
use super::fault_report;
use super::frames::{FrameOutput, FrameProducer};
use super::inline::InlineStage;
use super::unread_answer::UnreadAnswer;
use crate::domain::policy::MalformedExtras;
use crate::domain::{Event, Fault, FaultKind, Frame, MalformedExtra, Policies, Redactor, StreamEnd, Tree};
use crate::mapping::config::backend::{BackendPlan, UndeclaredTools};
use crate::mapping::config::transcript::RecordedEvent;
use crate::turn::Turn;
use crate::turn::inline::MetadataLines;
use std::sync::Arc;

/// One turn, from the backend's events to the client's frames.
pub struct Pipeline {
    pub(super) backend: Arc<BackendPlan>,
    /// Searches text for blocks, if there can be any.
    pub(super) inline: Option<InlineStage>,
    /// Removes metadata lines, if the dialect does that.
    pub(super) metadata_lines: Option<MetadataLines>,
    pub(super) turn: Turn,
    pub(super) producer: FrameProducer,
    /// The backend sent a start event.
    pub(super) has_started: bool,
    pub(super) unread_answer: UnreadAnswer,
    /// The fault behind a truncated response. The client sees only that the response was truncated.
    pub(super) truncated_by: Option<Fault>,
    pub(super) redactor: Option<Redactor>,
    pub(super) began_ms: u64,
    /// The head of the backend's response, if its rules read it.
    pub(super) response_head: Tree,
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

impl Pipeline {
    /// Moves the bytes written since the last call into `into`.
    pub fn drain(&mut self, into: &mut Vec<u8>) {
        if let FrameOutput::Bytes(bytes) = &mut self.producer.output {
            into.append(bytes);
        }
    }

    /// Call when the request was sent. Frames result only if the policies open a turn immediately.
    pub fn begin(&mut self) -> PipelineOutput {
        let producer = &mut self.producer;
        self.turn.begin(&mut |state, moment| producer.on_moment(state, moment));
        self.take_output()
    }

    /// Call when the response of the backend begins, if its rules read its head.
    pub fn set_response_head(&mut self, head: Tree) {
        self.response_head = head;
    }

    /// Processes a raw event of the backend.
    pub fn push(&mut self, raw: &Tree, now_ms: u64) -> PipelineOutput {
        self.producer.trace(TraceEvent::Raw(raw));
        self.turn.next_chunk();
        let decoded = decode::decode_event(&self.backend, raw, &self.response_head);
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
        if let Some(fault) = self.unread_answer.record(raw, &decoded, &self.backend) {
            return self.fail(fault, now_ms);
        }
        let DecodedEvent { events, not_understood, malformed_extras, .. } = decoded;
        for (event, rule) in events {
            if self.is_undeclared_call(&event) {
                self.producer.trace(TraceEvent::Dropped("the client did not offer this tool", rule));
                continue;
            }
            self.push_decoded(event, rule, now_ms);
        }
        PipelineOutput { not_understood, malformed_extras, ..self.take_output() }
    }

    /// Processes a raw event of a known shape.
    pub fn push_delta(&mut self, delta: DeltaEvent, now_ms: u64) -> PipelineOutput {
        self.turn.next_chunk();
        if !self.turn.is_open() {
            for (event, rule) in delta.of.starts() {
                self.push_decoded(event, rule, now_ms);
            }
        }
        let (event, rule) = delta.into_event();
        if !self.is_undeclared_call(&event) {
            self.push_decoded(event, rule, now_ms);
        }
        self.take_output()
    }

    /// A call of an agent's own tool.
    fn is_undeclared_call(&self, event: &Event) -> bool {
        let Event::Tool { name: Some(name), .. } = event else { return false };
        let tools = &self.producer.request.content.tools;
        self.backend.undeclared_tools == UndeclaredTools::Drop
            && !tools.iter().any(|tool| tool.name.as_ref() == Some(name))
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
            StreamEnd::Marker | StreamEnd::Eof if self.unread_answer.is_unread() && !self.turn.is_open() => {
                Event::Fault {
                    fault: Fault::new(FaultKind::Malformed, "no rule of the backend's mapping reads its response"),
                    is_final: true,
                }
            }
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
                RecordedEvent::Idle => {
                    self.keepalive();
                }
                RecordedEvent::End => how = StreamEnd::Marker,
                RecordedEvent::Disconnect(why) => how = StreamEnd::Disconnected(why.clone()),
            }
        }
        self.finish(how, now_ms);
    }

    /// Processes an event without the rules of a backend: for tests of the turn and for witness values.
    pub fn push_event(&mut self, event: Event, now_ms: u64) -> PipelineOutput {
        self.turn.next_chunk();
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

    pub(super) fn advance(&mut self, event: Event, now_ms: u64) {
        let event = match event {
            Event::Fault { fault, is_final } => {
                let fault = match &self.redactor {
                    Some(redactor) => redactor.redact_fault(fault),
                    None => fault,
                };
                Event::Fault { fault: fault_report::reported(&self.producer.dialect, fault), is_final }
            }
            event => event,
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
        for (why, tool) in self.turn.take_discarded() {
            self.producer.trace(TraceEvent::InlineCall(why.name(), &tool));
        }
        if self.turn.is_over() && self.fault().is_none() {
            self.truncated_by = self.truncated_by.take().or(truncation);
        }
        self.fail_on_violation();
    }

    pub(super) fn fail_on_violation(&mut self) {
        if let Some(fault) = self.producer.failure.clone() {
            let fault = fault_report::reported(&self.producer.dialect, fault);
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
