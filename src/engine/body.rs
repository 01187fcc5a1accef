//! The JSON body of a turn: rendered from the state after the last event, also when a backend's stream is aggregated.

use super::encode;
use super::frame_validation::Output;
use super::observer::TraceEvent;
use super::pipeline::Pipeline;
use crate::domain::policy::{OnEmpty, OnPartial};
use crate::domain::{Fault, FaultKind, Tree};

impl Pipeline {
    /// The JSON body, once the turn is over; `Err` if the turn failed and the policies want an HTTP error.
    pub fn body(&mut self) -> Result<Tree, Fault> {
        if let Some(fault) = self.fault() {
            let policies = self.policies();
            let has_body = match fault.kind {
                FaultKind::Empty => match policies.on_empty {
                    OnEmpty::Failed => true,
                    // A response that started and has no content is a partial response.
                    OnEmpty::Completed => policies.on_partial == OnPartial::Failed,
                    OnEmpty::Error => false,
                },
                _ => fault.is_partial() && self.turn.is_open() && policies.on_partial == OnPartial::Failed,
            };
            if !has_body {
                return Err(fault.clone());
            }
        }
        let dialect = self.producer.dialect.clone();
        let plan = &dialect.body;
        let body = encode::body(&dialect, self.turn.state(), &self.producer.request).map_err(|error| {
            let fault = Fault::not_rendered(&format!("the body of `{}`", dialect.name), error);
            self.producer.trace(TraceEvent::NotRendered(&fault, plan.span));
            fault
        })?;
        let output = Output::Body(&dialect.name);
        self.producer.check_schema(&body, plan.schema.as_ref(), output, plan.span)?;
        self.producer.trace(TraceEvent::Body(&body, plan.span));
        Ok(body)
    }
}
