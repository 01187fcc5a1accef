//! Moment → Frame: renders the frames of a moment, validates them and hands them to the output.

use super::encode;
use super::encode::{CacheEntry, DraftBody, DraftFrame, Written};
use super::frame_validation::Violation;
use super::observer::{Observer, TraceEvent};
use super::pipeline::{RenderMode, ResponseMode};
use super::render::CacheKey;
use super::sse;
use crate::domain::variables::FrameContext;
use crate::domain::{Fault, FaultKind, Frame, FrameBody, Moment, MomentKind, TurnRequest, TurnState};
use crate::mapping::config::dialect::{DialectPlan, FramePlan};
use crate::mapping::config::gateway::Validation;
use crate::order::OrderCheck;
use reframe_json::Schema;
use std::sync::Arc;

pub(crate) struct FrameProducer {
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub validation: Validation,
    pub response_mode: ResponseMode,
    pub order: OrderCheck,
    pub seq: u64,
    pub output: FrameOutput,
    /// Cached frames by the ordinal of their plan; a few keys each.
    pub cache: Vec<Vec<(CacheKey, CacheEntry)>>,
    /// How many frames were sent, by the ordinal of their plan.
    pub counts: Vec<u64>,
    pub render_mode: RenderMode,
    /// A frame of `turn.end` was sent.
    pub is_terminated: bool,
    /// The current moment is a keepalive before the first frame.
    pub is_before_open: bool,
    /// A frame could not be rendered or violated its schema or order. Only the failure is sent after that.
    pub failure: Option<Fault>,
    pub violations: Vec<Violation>,
    pub observer: Option<Box<dyn Observer>>,
}

/// Where frames go.
pub(crate) enum FrameOutput {
    Frames(Vec<Frame>),
    Bytes(Vec<u8>),
}

/// Cache keys per frame: interleaved calls and two messages at once; more are rare.
const MAX_CACHE_KEYS: usize = 4;

impl FrameProducer {
    pub fn trace(&mut self, event: TraceEvent) {
        if let Some(observer) = &mut self.observer {
            observer.on(event);
        }
    }

    pub fn on_moment(&mut self, state: &TurnState, moment: &Moment) {
        // After a failure only `turn.fail` is sent, and after the terminator not even that.
        if self.failure.is_some() && (moment.kind != MomentKind::TurnFail || self.is_terminated) {
            return;
        }
        self.trace(TraceEvent::Moment(moment, state));
        if let Err(out_of_order) = self.order.advance(&self.dialect.orders, moment) {
            self.failure = self.report_out_of_order(out_of_order.moment.name(), out_of_order.scope);
            if self.failure.is_some() {
                return;
            }
        }
        if self.response_mode == ResponseMode::Body {
            return;
        }
        let (dialect, request) = (self.dialect.clone(), self.request.clone());
        for plan in dialect.frames(moment.kind) {
            if self.is_before_open && !plan.before_open {
                continue;
            }
            let cacheable = plan.cacheable && self.render_mode == RenderMode::Cached && moment.logprobs.is_none();
            if cacheable && self.send_cached(&dialect, plan, state, moment).is_some() {
                continue;
            }
            let context = FrameContext { state, moment, request: &request, seq: self.seq, frame: &plan.name };
            if self.write_known(&dialect, plan, &context) {
                continue;
            }
            match encode::draft_frame(&dialect, plan, &context) {
                Ok(None) => {}
                Ok(Some(frame)) if self.write_draft(&frame, plan, moment) => {}
                Ok(Some(frame)) => {
                    let frame = frame.into_frame(plan, moment);
                    match self.validate(&frame, plan) {
                        Ok(()) => self.send(frame, plan),
                        Err(_) if moment.kind == MomentKind::TurnFail => {
                            self.send_bare_failure(&dialect, plan, state, moment);
                        }
                        Err(fault) => {
                            self.failure = Some(fault);
                            return;
                        }
                    }
                }
                Err(error) => {
                    let fault = Fault::not_rendered(&format!("the frame `{}`", plan.name), error);
                    self.trace(TraceEvent::NotRendered(&fault, plan.span));
                    self.failure = Some(fault);
                    return;
                }
            }
        }
    }

    /// Replaces a failure frame that is not valid: without the state of the turn and without the fault's own message.
    fn send_bare_failure(&mut self, dialect: &DialectPlan, plan: &FramePlan, state: &TurnState, moment: &Moment) {
        let bare = TurnState {
            id: state.id.clone(),
            created: state.created,
            model: state.model.clone(),
            ended: state.ended,
            error: Some(Fault::new(FaultKind::Internal, "internal error")),
            ..TurnState::default()
        };
        // Nor is the request echoed: its content may be what violated the schema.
        let request = TurnRequest::minimal(&state.model, true);
        if let Ok(Some(frame)) = encode::frame(dialect, plan, &bare, moment, &request, self.seq)
            && self.validate(&frame, plan).is_ok()
        {
            self.send(frame, plan);
        }
    }

    fn count(&mut self, plan: &FramePlan) {
        if self.counts.is_empty() {
            self.counts.resize(self.dialect.frame_count(), 0);
        }
        if let Some(count) = self.counts.get_mut(plan.ordinal) {
            *count += 1;
        }
    }

    /// Writes a frame without a tree. False: it has to be sent as a frame of its own, because no valid frame had its shape
    /// before, or because somebody wants to see it.
    fn write_known(&mut self, dialect: &DialectPlan, plan: &FramePlan, context: &FrameContext) -> bool {
        let schema = self.schema_of(plan);
        let FrameOutput::Bytes(bytes) = &mut self.output else { return false };
        if self.observer.is_some() {
            return false;
        }
        match encode::write_known_frame(dialect, plan, context, schema, bytes) {
            Ok(Written::Frame) => self.count_sent(plan, context.moment.kind),
            Ok(Written::Omitted) => {}
            // The draft fails in the same way, and its error is reported.
            Ok(Written::Unknown) | Err(_) => return false,
        }
        true
    }

    /// Validates and writes a draft. False: it is not valid, or somebody wants to see it.
    fn write_draft(&mut self, frame: &DraftFrame, plan: &FramePlan, moment: &Moment) -> bool {
        let DraftBody::Data(data) = &frame.body else { return false };
        let (schema, format) = (self.schema_of(plan), self.dialect.encoding.format);
        match &mut self.output {
            FrameOutput::Bytes(bytes)
                if self.observer.is_none() && schema.is_none_or(|schema| schema.accepts_draft(data)) =>
            {
                sse::write_rendered(frame.event.as_deref(), format, bytes, |out| data.write(out));
                self.count_sent(plan, moment.kind);
                true
            }
            FrameOutput::Bytes(_) | FrameOutput::Frames(_) => false,
        }
    }

    /// What frames are validated with.
    fn schema_of<'p>(&self, plan: &'p FramePlan) -> Option<&'p Schema> {
        let named = plan.schema.as_ref().filter(|_| self.validation != Validation::Off)?;
        Some(&named.schema)
    }

    fn count_sent(&mut self, plan: &FramePlan, moment: MomentKind) {
        self.is_terminated |= moment == MomentKind::TurnEnd;
        self.count(plan);
        self.seq += u64::from(plan.is_counted);
    }

    fn send(&mut self, frame: Frame, plan: &FramePlan) {
        self.trace(TraceEvent::Frame(&frame, plan.span));
        self.count_sent(plan, frame.moment);
        match &mut self.output {
            FrameOutput::Frames(frames) => frames.push(frame),
            FrameOutput::Bytes(bytes) => sse::write(&frame, self.dialect.encoding.format, bytes),
        }
    }

    /// Sends a cacheable frame: rendered for its first delta, reused for the next ones. `None`: it must be interpreted.
    fn send_cached(
        &mut self,
        dialect: &DialectPlan,
        plan: &FramePlan,
        state: &TurnState,
        moment: &Moment,
    ) -> Option<()> {
        if self.cache.is_empty() {
            self.cache.resize_with(dialect.frame_count(), Vec::new);
        }
        let key = CacheKey::of(moment);
        let entries = self.cache.get_mut(plan.ordinal)?;
        let at = match entries.iter().position(|(k, _)| *k == key) {
            Some(at) => at,
            None => {
                // The interpreter fails in the same way, and its error is reported.
                let entry =
                    encode::cache_entry(dialect, plan, state, moment, &self.request).unwrap_or(CacheEntry::Uncacheable);
                if entries.len() >= MAX_CACHE_KEYS {
                    entries.remove(0);
                }
                entries.push((key, entry));
                entries.len() - 1
            }
        };
        let cached = match &mut entries.get_mut(at)?.1 {
            CacheEntry::Omitted => return Some(()),
            CacheEntry::Uncacheable => return None,
            CacheEntry::Frame(cached) => cached,
        };
        let seq = self.seq;
        if let Some(named) = plan.schema.as_ref().filter(|_| self.validation != Validation::Off)
            && !cached.is_valid(&named.schema, &moment.text, seq)
        {
            // The interpreted frame is checked again, and its violation is reported.
            return None;
        }
        match &mut self.output {
            FrameOutput::Bytes(bytes) if self.observer.is_none() => {
                let event = cached.event.as_deref();
                sse::write_rendered(event, dialect.encoding.format, bytes, |out| cached.write(&moment.text, seq, out));
                self.seq += 1;
                self.count(plan);
            }
            _ => {
                let data = cached.fill(&moment.text, seq).clone();
                let (name, event) = (plan.name.clone(), cached.event.clone());
                self.send(Frame { name, moment: moment.kind, event, body: FrameBody::Data(data) }, plan);
            }
        }
        Some(())
    }
}
