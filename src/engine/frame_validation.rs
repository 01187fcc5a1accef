//! Run-time validation: every frame and body against its schema, every moment against the order. The mode is
//! `validation: strict`, `report` or `off`.

use super::frames::FrameProducer;
use super::observer::TraceEvent;
use crate::diagnostics::{Span, schema_message};
use crate::domain::{Fault, FaultKind, Frame, FrameBody, Scope, Tree};
use crate::mapping::config::dialect::{FramePlan, NamedSchema};
use crate::mapping::config::gateway::Validation;
use reframe_json::SchemaViolation;
use std::fmt;

/// A violation of a schema or of the order: the same value in logs, metrics, traces and diagnostics.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The frame's name, `body`, or the moment that was out of order.
    pub frame: String,
    /// `validation: report`: the frame was sent nevertheless.
    pub reported: bool,
    pub cause: ViolationCause,
}

#[derive(Clone, Debug)]
pub enum ViolationCause {
    Schema(Box<SchemaMismatch>),
    /// The order of this scope does not allow the moment.
    Order(Scope),
}

/// A frame, body or error that violates its schema.
#[derive(Clone, Debug)]
pub struct SchemaMismatch {
    /// "the frame `x`", "the body of `x`".
    pub what: String,
    /// The frame, body or error in the mapping.
    pub template: Span,
    /// Below `schemas/`.
    pub schema: String,
    pub violation: SchemaViolation,
    /// What was rendered. Only a turn with an observer keeps it: a log must not contain it.
    pub data: Option<Tree>,
}

/// What is validated.
#[derive(Clone, Copy)]
pub enum Output<'n> {
    Frame(&'n str),
    /// Of this dialect.
    Body(&'n str),
}

/// Further violations of a turn are not recorded.
const MAX_VIOLATIONS: usize = 32;

impl Violation {
    /// The frame, body or error in the mapping; `None` for a moment out of order.
    pub fn template(&self) -> Option<Span> {
        match &self.cause {
            ViolationCause::Schema(mismatch) => Some(mismatch.template),
            ViolationCause::Order(_) => None,
        }
    }

    /// The JSON pointer into the frame or body.
    pub fn pointer(&self) -> &str {
        match &self.cause {
            ViolationCause::Schema(mismatch) => &mismatch.violation.pointer,
            ViolationCause::Order(_) => "",
        }
    }

    /// The keyword of the schema that was violated, or `order`.
    pub fn keyword(&self) -> &str {
        match &self.cause {
            ViolationCause::Schema(mismatch) => &mismatch.violation.keyword,
            ViolationCause::Order(_) => "order",
        }
    }

    /// The fault that the client gets: what and where, without content.
    fn fault(&self) -> Fault {
        let message = match &self.cause {
            ViolationCause::Schema(mismatch) => {
                let at = if self.pointer().is_empty() { String::new() } else { format!(" at {}", self.pointer()) };
                format!("{} violates its schema{at} ({})", mismatch.what, self.keyword())
            }
            ViolationCause::Order(scope) => format!("`{}` is out of order in its {}", self.frame, scope.name()),
        };
        Fault::new(FaultKind::Violation, message)
    }

    /// For the author of the mapping: what is wrong with which value.
    pub fn message(&self) -> String {
        match &self.cause {
            ViolationCause::Schema(mismatch) => format!("{} violates its schema: {}", mismatch.what, mismatch.reason()),
            ViolationCause::Order(_) => self.fault().message,
        }
    }
}

impl SchemaMismatch {
    /// What is wrong with which value.
    pub fn reason(&self) -> String {
        schema_message::describe_with_value(&self.violation, self.data.as_ref().unwrap_or(&Tree::Null))
    }
}

impl fmt::Display for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Frame(name) => write!(f, "the frame `{name}`"),
            Output::Body(dialect) => write!(f, "the body of `{dialect}`"),
        }
    }
}

impl FrameProducer {
    pub(super) fn validate(&mut self, frame: &Frame, plan: &FramePlan) -> Result<(), Fault> {
        match &frame.body {
            FrameBody::Data(data) => {
                self.check_schema(data, plan.schema.as_ref(), Output::Frame(&frame.name), plan.span)
            }
            FrameBody::Text(_) | FrameBody::Comment(_) => Ok(()),
        }
    }

    /// `strict`: a violation is a fault that names the schema location but no content. `report`: it is only recorded.
    pub(super) fn check_schema(
        &mut self,
        data: &Tree,
        schema: Option<&NamedSchema>,
        output: Output,
        template: Span,
    ) -> Result<(), Fault> {
        let Some(named) = schema.filter(|_| self.validation != Validation::Off) else { return Ok(()) };
        if named.schema.accepts(data) {
            return Ok(());
        }
        let Err(violation) = named.schema.check(data) else { return Ok(()) };
        let data = self.observer.is_some().then(|| data.clone());
        let (what, schema) = (output.to_string(), named.name.clone());
        let mismatch = SchemaMismatch { what, template, schema, violation, data };
        let frame = match output {
            Output::Frame(name) => name,
            Output::Body(_) => "body",
        };
        self.record(frame, ViolationCause::Schema(Box::new(mismatch)))
    }

    pub(super) fn report_out_of_order(&mut self, moment: &str, scope: Scope) -> Option<Fault> {
        if self.validation == Validation::Off {
            return None;
        }
        self.record(moment, ViolationCause::Order(scope)).err()
    }

    fn record(&mut self, frame: &str, cause: ViolationCause) -> Result<(), Fault> {
        let reported = self.validation == Validation::Report;
        let violation = Violation { frame: frame.to_owned(), reported, cause };
        let fault = violation.fault();
        self.trace(TraceEvent::Violation(&violation));
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(violation);
        }
        if reported { Ok(()) } else { Err(fault) }
    }
}
