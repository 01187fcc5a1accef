//! What goes by in a turn, for those who watch: `explain`, the proof at load, the tests.

use crate::diagnostics::Span;
use crate::domain::{Event, Fault, Frame, Moment, Scope, Tree, TurnState};
use reframe_json::Breach;

/// Watches a turn go by.
pub trait Observer: Send {
    fn see(&mut self, sight: Sight);
}

/// What an observer sees, in order.
pub enum Sight<'a> {
    Raw(&'a Tree),
    Event(&'a Event, Span),
    /// Why, and what says so.
    Dropped(&'a str, Span),
    Puzzling(&'a str),
    /// An event came after its time.
    Late,
    Moment(&'a Moment, &'a TurnState),
    Frame(&'a Frame, Span),
    /// The whole answer, in place of frames.
    Body(&'a Tree, Span),
    /// A frame or a body broke the contract, where it is made, and what its schema says. It may leave all the same
    /// (`validation: report`), and is then seen next.
    Breach(&'a Fault, Span, Broken<'a>),
    /// A moment came that has no place in the order of its scope.
    OutOfOrder(&'a Fault, Scope),
}

/// What a schema refused.
#[derive(Clone, Copy)]
pub struct Broken<'a> {
    /// "the frame `x`", "the body of `x`".
    pub what: &'a str,
    /// Below `schemas/`.
    pub schema: &'a str,
    pub breach: &'a Breach,
    pub data: &'a Tree,
}
