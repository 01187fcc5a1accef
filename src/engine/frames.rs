//! Moment → Frame → "may it leave?".

use super::encode;
use super::encode::Patch;
use super::observer::{Broken, Observer, Sight};
use super::pipeline::{Answer, Filling};
use super::render::Place;
use super::sse;
use crate::diagnostics::Span;
use crate::domain::{Fault, FaultKind, Frame, FrameBody, Moment, MomentKind, Scope, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::{DialectPlan, FramePlan, NamedSchema};
use crate::mapping::config::gateway::Validation;
use crate::order::OrderCheck;
use std::sync::Arc;

pub(crate) struct Stage {
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub validation: Validation,
    pub answer: Answer,
    pub order: OrderCheck,
    pub seq: u64,
    pub out: Out,
    /// Steady frames as they were filled last, by the place of their plan; a few places each.
    pub patches: Vec<Vec<(Place, Patch)>>,
    pub filling: Filling,
    /// A frame of the end has left.
    pub terminated: bool,
    /// A frame broke the contract; nothing leaves any more but the failure.
    pub breach: Option<Fault>,
    pub breaches: Vec<Breached>,
    pub observer: Option<Box<dyn Observer>>,
}

/// Where frames go.
pub(crate) enum Out {
    Frames(Vec<Frame>),
    Bytes(Vec<u8>),
}

/// A broken contract, for logs and metrics: what and where, never what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breached {
    /// The frame's name, `body`, or the moment that was out of order.
    pub frame: String,
    pub pointer: String,
    /// The keyword of the schema that refused, or `order`.
    pub keyword: String,
    pub place: String,
    /// It left nevertheless.
    pub reported: bool,
}

/// Calls that take turns, two messages: more places than this at once are rare.
const PLACES: usize = 4;
/// A turn that breaks more than this has been told of enough.
const MAX_BREACHES: usize = 32;

impl Stage {
    pub fn see(&mut self, sight: Sight) {
        if let Some(observer) = &mut self.observer {
            observer.see(sight);
        }
    }

    pub fn tell(&mut self, state: &TurnState, moment: &Moment) {
        // After a breach only the failure leaves, and after a terminator not even that.
        if self.breach.is_some() && (moment.kind != MomentKind::TurnFail || self.terminated) {
            return;
        }
        self.see(Sight::Moment(moment, state));
        if let Err(out_of_order) = self.order.see(&self.dialect.orders, moment) {
            self.breach = self.out_of_order(out_of_order.moment.word(), out_of_order.scope);
            if self.breach.is_some() {
                return;
            }
        }
        if self.answer == Answer::Body {
            return;
        }
        let dialect = self.dialect.clone();
        for plan in dialect.frames(moment.kind) {
            let patchable = plan.steady && self.filling == Filling::Patched && moment.value.is_null();
            if patchable && self.patched(&dialect, plan, state, moment).is_some() {
                continue;
            }
            match encode::frame(&dialect, plan, state, moment, &self.request, self.seq) {
                Ok(None) => {}
                Ok(Some(frame)) => match self.may_leave(&frame, plan) {
                    Ok(()) => self.leave(frame, plan.span),
                    Err(_) if moment.kind == MomentKind::TurnFail => self.fail_plainly(&dialect, plan, state, moment),
                    Err(breach) => {
                        self.breach = Some(breach);
                        return;
                    }
                },
                Err(error) => {
                    let message = format!("the frame `{}` failed: {error}", plan.name);
                    tracing::error!(frame = %plan.name, %error, "a frame could not be made");
                    self.breach = Some(Fault::new(FaultKind::Internal, message));
                    return;
                }
            }
        }
    }

    /// A failure that cannot be told as it is, is told bare: without what came before, and without its own words.
    fn fail_plainly(&mut self, dialect: &DialectPlan, plan: &FramePlan, state: &TurnState, moment: &Moment) {
        let bare = TurnState {
            id: state.id.clone(),
            created: state.created,
            model: state.model.clone(),
            ended: state.ended,
            error: Some(Fault::new(FaultKind::Internal, "internal error")),
            ..TurnState::default()
        };
        // Nor is the request said back: what it held may be what went wrong.
        let request = TurnRequest::plain(&state.model, true);
        if let Ok(Some(frame)) = encode::frame(dialect, plan, &bare, moment, &request, self.seq)
            && self.may_leave(&frame, plan).is_ok()
        {
            self.leave(frame, plan.span);
        }
    }

    fn leave(&mut self, frame: Frame, made: Span) {
        self.terminated |= frame.moment == MomentKind::TurnEnd;
        self.see(Sight::Frame(&frame, made));
        if matches!(frame.body, FrameBody::Data(_)) {
            self.seq += 1;
        }
        match &mut self.out {
            Out::Frames(frames) => frames.push(frame),
            Out::Bytes(bytes) => sse::write(&frame, self.dialect.wire.kind, bytes),
        }
    }

    /// A steady frame: filled at its first piece, patched with the others. `None`: it has to be filled the long way.
    fn patched(&mut self, dialect: &DialectPlan, plan: &FramePlan, state: &TurnState, moment: &Moment) -> Option<()> {
        if self.patches.is_empty() {
            self.patches.resize_with(dialect.frame_count(), Vec::new);
        }
        let place = Place::of(moment);
        let kept = self.patches.get_mut(plan.ordinal)?;
        let at = match kept.iter().position(|(p, _)| *p == place) {
            Some(at) => at,
            None => {
                // What goes wrong here goes wrong the long way too, and is told there.
                let patch = encode::patch(dialect, plan, state, moment, &self.request).unwrap_or(Patch::Never);
                if kept.len() >= PLACES {
                    kept.remove(0);
                }
                kept.push((place, patch));
                kept.len() - 1
            }
        };
        let form = match &mut kept.get_mut(at)?.1 {
            Patch::Nothing => return Some(()),
            Patch::Never => return None,
            Patch::Form(form) => form,
        };
        let seq = self.seq;
        if self.validation != Validation::Off
            && let Some(named) = &plan.schema
            && !named.schema.is_valid(form.set(&moment.text, seq))
        {
            // The long way says what is wrong, in the same words as ever.
            return None;
        }
        match &mut self.out {
            Out::Bytes(bytes) if self.observer.is_none() => {
                let event = form.event.as_deref();
                sse::write_ready(event, dialect.wire.kind, bytes, |out| form.write(&moment.text, seq, out));
                self.seq += 1;
            }
            _ => {
                let data = form.set(&moment.text, seq).clone();
                let (name, event) = (plan.name.clone(), form.event.clone());
                self.leave(Frame { name, moment: moment.kind, event, body: FrameBody::Data(data) }, plan.span);
            }
        }
        Some(())
    }

    fn may_leave(&mut self, frame: &Frame, plan: &FramePlan) -> Result<(), Fault> {
        match &frame.body {
            FrameBody::Data(data) => {
                let what = format!("the frame `{}`", frame.name);
                self.check(data, plan.schema.as_ref(), &what, &frame.name, (plan.span, &plan.place))
            }
            FrameBody::Text(_) | FrameBody::Comment(_) => Ok(()),
        }
    }

    /// Strict: a fault that says what and where, but nothing of what was said. Report: a note.
    pub fn check(
        &mut self,
        data: &Tree,
        schema: Option<&NamedSchema>,
        what: &str,
        name: &str,
        made: (Span, &str),
    ) -> Result<(), Fault> {
        let Some(named) = schema.filter(|_| self.validation != Validation::Off) else { return Ok(()) };
        if named.schema.is_valid(data) {
            return Ok(());
        }
        let Err(breach) = named.schema.check(data) else { return Ok(()) };
        let at = if breach.pointer.is_empty() { String::new() } else { format!(" at {}", breach.pointer) };
        let message = format!("{what} breaks its schema{at} ({})", breach.keyword);
        let fault = Fault::new(FaultKind::Breach, message);
        let broken = Broken { what, schema: &named.name, breach: &breach, data };
        self.see(Sight::Breach(&fault, made.0, broken));
        self.note(name, &breach.pointer, &breach.keyword, made.1);
        if self.validation == Validation::Strict { Err(fault) } else { Ok(()) }
    }

    fn out_of_order(&mut self, moment: &str, scope: Scope) -> Option<Fault> {
        if self.validation == Validation::Off {
            return None;
        }
        let why = format!("`{moment}` is out of order in its {}", scope.word());
        let fault = Fault::new(FaultKind::Breach, why);
        self.see(Sight::OutOfOrder(&fault, scope));
        self.note(moment, "", "order", "");
        (self.validation == Validation::Strict).then_some(fault)
    }

    fn note(&mut self, frame: &str, pointer: &str, keyword: &str, place: &str) {
        if self.breaches.len() < MAX_BREACHES {
            self.breaches.push(Breached {
                frame: frame.to_owned(),
                pointer: pointer.to_owned(),
                keyword: keyword.to_owned(),
                place: place.to_owned(),
                reported: self.validation == Validation::Report,
            });
        }
    }
}
