//! Locates the line of a mapping that causes a violation. It is searched only for violations that are reported.

use crate::diagnostics::Span;
use crate::engine::pipeline::{Observer, SchemaMismatch, TraceEvent, Violation, ViolationCause};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;

/// The line that causes a violation; `Span::NOWHERE` for an order that is not found.
pub fn locate(violation: &Violation, dialect: &DialectPlan, plan: &Plan) -> Span {
    match &violation.cause {
        ViolationCause::Schema(mismatch) => locate_mismatch(mismatch, dialect, plan),
        ViolationCause::Order(scope) => {
            let locator = plan.dialect_sources.of(dialect);
            locator.and_then(|l| l.locate_order(*scope)).unwrap_or(Span::NOWHERE)
        }
    }
}

/// A line in the dialect, its profile or shared.yaml.
pub fn locate_mismatch(mismatch: &SchemaMismatch, dialect: &DialectPlan, plan: &Plan) -> Span {
    let SchemaMismatch { template, violation, data, .. } = mismatch;
    let locator = plan.dialect_sources.of(dialect);
    let found = locator.zip(data.as_ref()).and_then(|(l, data)| l.locate_violation(*template, data, violation));
    found.unwrap_or(*template)
}

/// Records the first violation of a turn.
#[derive(Default)]
pub struct FirstViolation(pub Option<Violation>);

impl Observer for FirstViolation {
    fn on(&mut self, event: TraceEvent) {
        if let TraceEvent::Violation(violation) = event {
            self.0.get_or_insert_with(|| violation.clone());
        }
    }
}
