//! What reaches a pipeline besides events: error responses and malformed events of the backend, silence, and the clock of
//! the keepalive.

use super::decode;
use super::pipeline::{Pipeline, PipelineOutput, ResponseMode};
use crate::domain::policy::{OnIdle, OnMalformed};
use crate::domain::{Event, Fault, FaultKind, Moment, MomentKind, StreamEnd, Tree};

impl Pipeline {
    /// The fault of an upstream error response: `from_status`, with the message, code and param that the backend's
    /// rules find in the body.
    pub fn upstream_fault(&self, raws: &[Tree], from_status: Fault) -> Fault {
        let events = raws.iter().flat_map(|raw| decode::decode_event(&self.backend, raw).events);
        let from_body = events.into_iter().find_map(|(event, _)| match event {
            Event::Fault { fault, .. } => Some(fault),
            _ => None,
        });
        let Some(from_body) = from_body else { return from_status };
        let message = if from_body.message.is_empty() { from_status.message } else { from_body.message };
        Fault {
            message,
            code: from_body.code,
            param: from_body.param,
            retry_after: from_status.retry_after.or(from_body.retry_after),
            ..from_status
        }
    }

    /// An upstream event that cannot be parsed is skipped, or ends the turn, by the policy `on_malformed`.
    pub fn push_malformed(&mut self, why: &str, now_ms: u64) -> PipelineOutput {
        match self.policies().on_malformed {
            OnMalformed::Skip => PipelineOutput { is_over: self.turn.is_over(), ..PipelineOutput::default() },
            OnMalformed::Fail => {
                let message = format!("an event of the backend cannot be parsed: {why}");
                self.fail(Fault::new(FaultKind::Malformed, message), now_ms)
            }
        }
    }

    /// Call when the backend has sent nothing for its idle timeout.
    pub fn idle_timeout(&mut self, fault: Fault, now_ms: u64) -> PipelineOutput {
        if self.turn.is_finished() {
            return self.finish(StreamEnd::Eof, now_ms);
        }
        self.flush_inline(now_ms);
        let truncates = self.policies().on_idle == OnIdle::FinishLength && self.has_output();
        if !truncates || self.producer.response_mode == ResponseMode::Body {
            return self.fail(fault, now_ms);
        }
        self.turn.set_elapsed_ms(now_ms.saturating_sub(self.began_ms) as i64);
        let producer = &mut self.producer;
        self.turn.truncate(&mut |state, moment| producer.on_moment(state, moment));
        self.truncated_by = Some(fault);
        self.take_output()
    }

    /// Call when a keepalive is due. Returns whether the dialect has frames for it (moment `idle`); they are only sent
    /// in an open turn.
    pub fn keepalive(&mut self) -> bool {
        if self.producer.dialect.frames(MomentKind::Idle).is_empty() || !self.turn.is_open() || self.turn.is_over() {
            return false;
        }
        self.producer.on_moment(self.turn.state(), &Moment::turn(MomentKind::Idle));
        self.fail_on_violation();
        true
    }
}
