//! The JSON body of a turn: rendered from the state after the last event, also when a backend's stream is aggregated.

use super::encode;
use super::frame_validation::Output;
use super::observer::TraceEvent;
use super::pipeline::Pipeline;
use crate::domain::policy::{OnEmpty, OnPartial};
use crate::domain::{Draft, Fault, FaultKind, Tree};
use crate::mapping::config::gateway::Validation;
use reframe_json::into_text;

/// Of most bodies.
const BODY_CAPACITY: usize = 2 * 1024;

impl Pipeline {
    /// The JSON body as a tree, once the turn is over; `Err` if the turn failed and the policies want an HTTP error.
    pub fn body(&mut self) -> Result<Tree, Fault> {
        self.render_body(|body| body.into_tree())
    }

    /// The same as text, without a tree: what is validated is what is written.
    pub fn body_json(&mut self) -> Result<String, Fault> {
        let mut text = Vec::with_capacity(BODY_CAPACITY);
        if self.write_known_body(&mut text) {
            return Ok(into_text(text));
        }
        self.render_body(|body| body.to_json())
    }

    /// False: the body has to be drafted, because no valid body had its shape before, or because there is none.
    fn write_known_body(&self, out: &mut Vec<u8>) -> bool {
        let producer = &self.producer;
        if self.fault().is_some() || producer.observer.is_some() {
            return false;
        }
        let schema = producer.dialect.body.schema.as_ref().filter(|_| producer.validation != Validation::Off);
        let (state, schema) = (self.turn.state(), schema.map(|named| &*named.schema));
        encode::write_known_body(&producer.dialect, state, &producer.request, schema, out).unwrap_or(false)
    }

    fn render_body<T>(&mut self, result: impl FnOnce(Draft) -> T) -> Result<T, Fault> {
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
        let body = match encode::body(&dialect, self.turn.state(), &self.producer.request) {
            Ok(body) => body,
            Err(error) => {
                let fault = Fault::not_rendered(&format!("the body of `{}`", dialect.name), error);
                self.producer.trace(TraceEvent::NotRendered(&fault, plan.span));
                return Err(fault);
            }
        };
        let is_valid = self.producer.validation == Validation::Off
            || plan.schema.as_ref().is_none_or(|named| named.schema.accepts_draft(&body));
        if is_valid && self.producer.observer.is_none() {
            return Ok(result(body));
        }
        let body = body.into_tree();
        let output = Output::Body(&dialect.name);
        self.producer.check_schema(&body, plan.schema.as_ref(), output, plan.span)?;
        self.producer.trace(TraceEvent::Body(&body, plan.span));
        Ok(result(Draft::Owned(body)))
    }
}
