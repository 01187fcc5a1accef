//! Trace events of a turn, for `explain`, the verification at load and the tests.

use super::frame_validation::Violation;
use crate::diagnostics::Span;
use crate::domain::{Event, Fault, Frame, Moment, Tree, TurnState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives the trace events of a turn.
pub trait Observer: Send {
    fn on(&mut self, event: TraceEvent);
}

/// The caller keeps a handle and reads what was recorded after the turn.
impl<O: Observer> Observer for Arc<Mutex<O>> {
    fn on(&mut self, event: TraceEvent) {
        lock(self).on(event);
    }
}

/// The observer behind a handle, also after a panic in another thread.
pub fn lock<O>(observer: &Mutex<O>) -> MutexGuard<'_, O> {
    observer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One step of a turn, in order.
pub enum TraceEvent<'a> {
    Raw(&'a Tree),
    Event(&'a Event, Span),
    /// The reason, and the rule or setting that drops the event.
    Dropped(&'a str, Span),
    NotUnderstood(&'a str),
    /// So many bytes of text wait, because they could be an inline block.
    Held(usize),
    /// What happened to a call in the text of a model: `found`, `deduplicated`, `tail` or `cut`. With its tool.
    InlineCall(&'static str, &'a str),
    /// A block of reasoning in the text of a model was found.
    InlineReasoning,
    /// An event arrived after the end of the turn.
    Late,
    Moment(&'a Moment, &'a TurnState),
    Frame(&'a Frame, Span),
    /// The JSON body, in place of frames.
    Body(&'a Tree, Span),
    /// An expression of a frame or the body failed.
    NotRendered(&'a Fault, Span),
    /// A frame or a body violated its schema, or a moment its order. Under `validation: report` the frame is sent
    /// nevertheless, and its `Frame` or `Body` follows.
    Violation(&'a Violation),
}
