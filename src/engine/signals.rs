//! What reaches a pipeline besides events: error responses and malformed events of the backend, silence, and the clock of
//! the keepalive.

use super::decode;
use super::pipeline::{Pipeline, PipelineOutput, ResponseMode};
use crate::domain::policy::{OnIdle, OnMalformed};
use crate::domain::{Event, Fault, FaultKind, Moment, MomentKind, StreamEnd, Tree};

impl Pipeline {
    /// The fault of an upstream error response: by its status, with the message, code and param that the backend's rules
    /// find in the body. `text` is the body as one line, if it is short.
    pub fn error_response(&self, status: u16, retry_after: Option<u64>, text: Option<&str>, raws: &[Tree]) -> Fault {
        let why = text.map_or(String::new(), |text| format!(": {text}"));
        let message = match status {
            300..=399 => format!("the backend responded with {status}, a redirect, which is not followed"),
            _ => format!("the backend responded with {status}{why}"),
        };
        let from_status = Fault { status: Some(status), retry_after, ..Fault::new(FaultKind::Backend, message) };
        self.upstream_fault(raws, from_status)
    }

    /// `from_status`, with what the rules of the backend find in the body.
    pub fn upstream_fault(&self, raws: &[Tree], from_status: Fault) -> Fault {
        let Some(from_body) = self.fault_in(raws) else { return from_status };
        let message = if from_body.message.is_empty() { from_status.message } else { from_body.message };
        Fault {
            message,
            code: from_body.code,
            param: from_body.param,
            retry_after: from_status.retry_after.or(from_body.retry_after),
            ..from_status
        }
    }

    /// The fault of a call that a child process rejected: what the backend's rules read of the answer.
    pub fn call_fault(&self, answer: &Tree, unread: Fault) -> Fault {
        self.fault_in(std::slice::from_ref(answer)).unwrap_or(unread)
    }

    fn fault_in(&self, raws: &[Tree]) -> Option<Fault> {
        let mut events =
            raws.iter().flat_map(|raw| decode::decode_event(&self.backend, raw, &self.response_head).events);
        events.find_map(|(event, _)| match event {
            Event::Fault { fault, .. } => Some(fault),
            _ => None,
        })
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

    /// A number if the turn ends unless another call follows soon (policy `stop_after_tools: burst`). It changes with every
    /// event of a call.
    pub fn burst(&self) -> Option<u64> {
        self.turn.burst()
    }

    /// Call when no other call has followed within `timeouts.after_tools`.
    pub fn end_burst(&mut self, now_ms: u64) -> PipelineOutput {
        self.flush_inline(now_ms);
        self.turn.set_elapsed_ms(now_ms.saturating_sub(self.began_ms) as i64);
        let producer = &mut self.producer;
        self.turn.end_burst(&mut |state, moment| producer.on_moment(state, moment));
        self.take_output()
    }

    /// Call when a keepalive is due. Returns whether the dialect has frames for it (moment `idle`). Before the turn is
    /// open, these are the frames with `before_open`, and they send the response headers.
    pub fn keepalive(&mut self) -> bool {
        let is_open = self.turn.is_open();
        let mut frames = self.producer.dialect.frames(MomentKind::Idle).iter();
        if self.turn.is_over() || !frames.any(|frame| is_open || frame.before_open) {
            return false;
        }
        if !is_open {
            self.mark_headers_sent();
        }
        self.producer.is_before_open = !is_open;
        self.producer.on_moment(self.turn.state(), &Moment::turn(MomentKind::Idle));
        self.producer.is_before_open = false;
        self.fail_on_violation();
        true
    }
}
