//! Trace events of a turn, for `explain`, the verification at load and the tests.

use crate::diagnostics::Span;
use crate::domain::{Event, Fault, Frame, Moment, Scope, Tree, TurnState};
use reframe_json::SchemaViolation;

/// Receives the trace events of a turn.
pub trait Observer: Send {
    fn on(&mut self, event: TraceEvent);
}

/// One step of a turn, in order.
pub enum TraceEvent<'a> {
    Raw(&'a Tree),
    Event(&'a Event, Span),
    /// The reason, and the rule or setting that drops the event.
    Dropped(&'a str, Span),
    NotUnderstood(&'a str),
    /// An event arrived after the end of the turn.
    Late,
    Moment(&'a Moment, &'a TurnState),
    Frame(&'a Frame, Span),
    /// The JSON body, in place of frames.
    Body(&'a Tree, Span),
    /// A frame or a body violated its schema, with its line in the mapping. Under `validation: report` it is sent
    /// nevertheless, and its `Frame` or `Body` follows.
    Violation(&'a Fault, Span, ViolationDetails<'a>),
    /// A moment that the order of its scope does not allow.
    OutOfOrder(&'a Fault, Scope),
}

/// A schema violation and the data that caused it.
#[derive(Clone, Copy)]
pub struct ViolationDetails<'a> {
    /// "the frame `x`", "the body of `x`".
    pub what: &'a str,
    /// Below `schemas/`.
    pub schema: &'a str,
    pub violation: &'a SchemaViolation,
    pub data: &'a Tree,
}
