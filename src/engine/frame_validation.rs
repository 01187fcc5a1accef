//! Run-time validation: every frame and body against its schema, every moment against the order. The mode is
//! `validation: strict`, `report` or `off`.

use super::frames::FrameProducer;
use super::observer::{TraceEvent, ViolationDetails};
use crate::diagnostics::Span;
use crate::domain::{Fault, FaultKind, Frame, FrameBody, Scope, Tree};
use crate::mapping::config::dialect::{FramePlan, NamedSchema};
use crate::mapping::config::gateway::Validation;

/// A violation of a schema or of the order, for logs and metrics: what and where, never the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The frame's name, `body`, or the moment that was out of order.
    pub frame: String,
    pub pointer: String,
    /// The keyword of the schema that was violated, or `order`.
    pub keyword: String,
    /// The line of the frame in the mapping.
    pub location: String,
    /// `validation: report`: the frame was sent nevertheless.
    pub reported: bool,
}

/// Further violations of a turn are not recorded.
const MAX_VIOLATIONS: usize = 32;

impl FrameProducer {
    pub(super) fn validate(&mut self, frame: &Frame, plan: &FramePlan) -> Result<(), Fault> {
        match &frame.body {
            FrameBody::Data(data) => {
                let what = format!("the frame `{}`", frame.name);
                self.check_schema(data, plan.schema.as_ref(), &what, &frame.name, (plan.span, &plan.location))
            }
            FrameBody::Text(_) | FrameBody::Comment(_) => Ok(()),
        }
    }

    /// `strict`: a violation is a fault that names the schema location but no content. `report`: it is only recorded.
    pub(super) fn check_schema(
        &mut self,
        data: &Tree,
        schema: Option<&NamedSchema>,
        what: &str,
        name: &str,
        (span, location): (Span, &str),
    ) -> Result<(), Fault> {
        let Some(named) = schema.filter(|_| self.validation != Validation::Off) else { return Ok(()) };
        if named.schema.is_valid(data) {
            return Ok(());
        }
        let Err(violation) = named.schema.check(data) else { return Ok(()) };
        let at = if violation.pointer.is_empty() { String::new() } else { format!(" at {}", violation.pointer) };
        let message = format!("{what} violates its schema{at} ({})", violation.keyword);
        let fault = Fault::new(FaultKind::Violation, message);
        let details = ViolationDetails { what, schema: &named.name, violation: &violation, data };
        self.trace(TraceEvent::Violation(&fault, span, details));
        self.record_violation(name, &violation.pointer, &violation.keyword, location);
        if self.validation == Validation::Strict { Err(fault) } else { Ok(()) }
    }

    pub(super) fn report_out_of_order(&mut self, moment: &str, scope: Scope) -> Option<Fault> {
        if self.validation == Validation::Off {
            return None;
        }
        let why = format!("`{moment}` is out of order in its {}", scope.name());
        let fault = Fault::new(FaultKind::Violation, why);
        self.trace(TraceEvent::OutOfOrder(&fault, scope));
        self.record_violation(moment, "", "order", "");
        (self.validation == Validation::Strict).then_some(fault)
    }

    fn record_violation(&mut self, frame: &str, pointer: &str, keyword: &str, location: &str) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation {
                frame: frame.to_owned(),
                pointer: pointer.to_owned(),
                keyword: keyword.to_owned(),
                location: location.to_owned(),
                reported: self.validation == Validation::Report,
            });
        }
    }
}
