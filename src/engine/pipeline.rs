//! The stages joined, without IO: RawEvent → Event → Moment → Frame. Read this file first.
//!
//! The shell (`serve`, `cli`) feeds what arrives and writes what comes out. It owns the clock and the sockets.

pub use super::frames::Breached;
pub use super::observer::{Broken, Observer, Sight};

use super::frames::{Out, Stage};
use super::{decode, encode};
use crate::domain::policy::{Head, IdleResult, OnEmpty, OnMalformed, OnPartial};
use crate::domain::{Ended, Event, Fault, FaultKind, Frame, Hidden, Masks, Policies, Tree, TurnRequest, TurnState};
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::transcript::Arrival;
use crate::order::OrderCheck;
use crate::turn::{Ids, Turn};
use std::sync::Arc;

/// One turn on its way from a backend to a client.
pub struct Pipeline {
    backend: Arc<BackendPlan>,
    turn: Turn,
    stage: Stage,
    /// The backend said that it answers.
    begun: bool,
    /// What went wrong where the client was told that the answer was cut, and no more.
    cut: Option<Fault>,
    hidden: Option<Hidden>,
    began_ms: u64,
}

/// How frames are filled. Both ways give the same bytes; the tests hold them against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// Steady frames are patched.
    Patched,
    /// Every frame is interpreted.
    Interpreted,
}

/// What the client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Stream,
    Body,
}

/// What came of one push.
#[derive(Debug, Default)]
pub struct Step {
    /// To be written together.
    pub frames: Vec<Frame>,
    /// Nothing follows: the backend may be left.
    pub over: bool,
}

/// What a pipeline is made for.
pub struct Order {
    pub backend: Arc<BackendPlan>,
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub validation: Validation,
    pub answer: Answer,
    pub masks: Masks,
    /// Our key for the backend.
    pub hidden: Option<Hidden>,
    pub ids: Ids,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl Pipeline {
    pub fn new(order: Order) -> Pipeline {
        let policies = order.dialect.resolved.policies.clone();
        let request = &order.request;
        let created = (order.now_ms / 1000) as i64;
        let turn = Turn::new(policies, order.ids, &request.model, request.n, created)
            .asked_chars(asked_chars(request))
            .masks(order.masks)
            .whole(order.answer == Answer::Body);
        let stage = Stage {
            dialect: order.dialect,
            request: order.request,
            validation: order.validation,
            answer: order.answer,
            order: OrderCheck::default(),
            seq: 0,
            out: Out::Frames(Vec::new()),
            patches: Vec::new(),
            filling: Filling::Patched,
            terminated: false,
            breach: None,
            breaches: Vec::new(),
            observer: None,
        };
        Pipeline {
            backend: order.backend,
            turn,
            stage,
            begun: false,
            cut: None,
            hidden: order.hidden,
            began_ms: order.now_ms,
        }
    }

    /// Frames are written as bytes, to be taken with [`Pipeline::drain`]; steps have none.
    pub fn writing(mut self) -> Pipeline {
        self.stage.out = Out::Bytes(Vec::new());
        self
    }

    pub fn filling(mut self, filling: Filling) -> Pipeline {
        self.stage.filling = filling;
        self
    }

    /// The bytes that were written since.
    pub fn drain(&mut self, into: &mut Vec<u8>) {
        if let Out::Bytes(bytes) = &mut self.stage.out {
            into.append(bytes);
        }
    }

    pub fn observe(mut self, observer: Box<dyn Observer>) -> Pipeline {
        self.stage.observer = Some(observer);
        self
    }

    /// The request was sent. Frames come of it only when the policies open a turn at once.
    pub fn begin(&mut self) -> Step {
        let stage = &mut self.stage;
        self.turn.begin(&mut |state, moment| stage.tell(state, moment));
        self.step()
    }

    /// A raw event arrived.
    pub fn push(&mut self, raw: &Tree, now_ms: u64) -> Step {
        self.stage.see(Sight::Raw(raw));
        let heard = decode::hear(&self.backend, raw);
        if let Some((why, rule)) = &heard.dropped {
            self.stage.see(Sight::Dropped(why, *rule));
        }
        if let Some(what) = &heard.puzzling {
            tracing::warn!(backend = self.backend.name, what, "a backend event was not fully understood");
            self.stage.see(Sight::Puzzling(what));
        }
        for (event, rule) in heard.events {
            self.stage.see(Sight::Event(&event, rule));
            self.advance(event, now_ms);
        }
        self.step()
    }

    /// The backend stopped talking. A client is told the end, or the fault.
    pub fn finish(&mut self, how: Ended, now_ms: u64) -> Step {
        let event = match how {
            // It is not the policy's empty answer: this one has a beginning, and no end.
            Ended::Marker | Ended::Eof if self.begun && !self.turn.is_open() => Event::Fault {
                fault: Fault::new(FaultKind::Empty, "the backend began an answer and said nothing"),
                last: true,
            },
            // After the last finish both are a good end; before it both are a truncation.
            Ended::Marker | Ended::Eof => Event::End,
            Ended::Cut(_) if self.turn.is_finished() => Event::End,
            Ended::Cut(why) => Event::Fault {
                fault: Fault::new(FaultKind::Truncated, format!("the backend was lost: {why}")),
                last: true,
            },
        };
        if !self.turn.is_over() {
            self.advance(event, now_ms);
        }
        self.step()
    }

    /// Everything that a transcript recorded, at once.
    pub fn play<'l>(&mut self, arrivals: impl IntoIterator<Item = &'l Arrival>, now_ms: u64) {
        let mut how = Ended::Eof;
        for arrival in arrivals {
            match arrival {
                Arrival::Raw(raw) => {
                    self.push(raw, now_ms);
                }
                Arrival::End => how = Ended::Marker,
                Arrival::Cut(why) => how = Ended::Cut(why.clone()),
            }
        }
        self.finish(how, now_ms);
    }

    /// An event that no rule had to read: what the laws are tried with.
    pub fn hear(&mut self, event: Event, now_ms: u64) -> Step {
        self.advance(event, now_ms);
        self.step()
    }

    /// Ends the turn with a fault of ours.
    pub fn fail(&mut self, fault: Fault, now_ms: u64) -> Step {
        self.advance(Event::Fault { fault, last: true }, now_ms);
        self.step()
    }

    /// The backend sends a stream, and the client waits for one body.
    pub fn bridged(&mut self) {
        self.turn.bridged();
    }

    /// The head of the stream has left: a fault is told inside it, and a stream begins before it fails.
    pub fn head_left(&mut self) {
        self.turn.head_left();
    }

    /// The backend said no: its status counts, and its own words where its rules find some.
    pub fn refused(&self, raws: &[Tree], refused: Fault) -> Fault {
        let heard = raws.iter().flat_map(|raw| decode::hear(&self.backend, raw).events);
        let said = heard.into_iter().find_map(|(event, _)| match event {
            Event::Fault { fault, .. } => Some(fault),
            _ => None,
        });
        let Some(said) = said else { return refused };
        let message = if said.message.is_empty() { refused.message } else { said.message };
        Fault {
            message,
            code: said.code,
            param: said.param,
            retry_after: refused.retry_after.or(said.retry_after),
            ..refused
        }
    }

    /// A piece that cannot be read: skipped and counted, or the end of the turn, as the policy says.
    pub fn malformed(&mut self, why: &str, now_ms: u64) -> Step {
        match self.policies().on_malformed {
            OnMalformed::Skip => Step { over: self.turn.is_over(), ..Step::default() },
            OnMalformed::Fail => {
                let message = format!("a piece of the backend's answer cannot be read: {why}");
                self.fail(Fault::new(FaultKind::Garbled, message), now_ms)
            }
        }
    }

    /// The backend fell silent in the middle of a stream.
    pub fn silent(&mut self, fault: Fault, now_ms: u64) -> Step {
        if self.turn.is_finished() {
            return self.finish(Ended::Eof, now_ms);
        }
        let cut = self.policies().stream_idle_result == IdleResult::FinishLength && self.has_spoken();
        if !cut || self.stage.answer == Answer::Body {
            return self.fail(fault, now_ms);
        }
        self.turn.clock(now_ms.saturating_sub(self.began_ms) as i64);
        let stage = &mut self.stage;
        self.turn.cut_short(&mut |state, moment| stage.tell(state, moment));
        self.cut = Some(fault);
        self.step()
    }

    fn policies(&self) -> &Policies {
        &self.stage.dialect.resolved.policies
    }

    /// All is said but for the count; a backend that does not end now is not waited for long.
    pub fn is_finished(&self) -> bool {
        self.turn.is_finished()
    }

    /// Has a client been told anything? Until then a fault can still be a plain HTTP error.
    pub fn is_open(&self) -> bool {
        self.turn.is_open()
    }

    /// Has the backend said anything of its answer? A turn that was opened at once waits for its first event as every
    /// other does.
    pub fn has_spoken(&self) -> bool {
        let state = self.turn.state();
        let said = || !state.items.is_empty() || state.choices.iter().any(|c| c.finish.is_some());
        self.turn.is_open() && (self.policies().head == Head::FirstEvent || said())
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.turn.state().error.as_ref()
    }

    /// A fault that the policies made a cut answer of.
    pub fn cut(&self) -> Option<&Fault> {
        self.cut.as_ref()
    }

    pub fn state(&self) -> &TurnState {
        self.turn.state()
    }

    pub fn late(&self) -> u64 {
        self.turn.late()
    }

    /// What broke its contract so far.
    pub fn breaches(&self) -> &[Breached] {
        &self.stage.breaches
    }

    /// The whole answer, once the turn is over; the fault that ended it otherwise.
    pub fn body(&mut self) -> Result<Tree, Fault> {
        if let Some(fault) = self.fault() {
            let policies = self.policies();
            let told = match fault.kind {
                FaultKind::Empty => match policies.on_empty {
                    OnEmpty::Failed => true,
                    // What began and said nothing is half an answer, of which nothing came.
                    OnEmpty::Completed => policies.on_partial == OnPartial::Failed,
                    OnEmpty::Error => false,
                },
                _ => fault.is_partial() && self.turn.is_open() && policies.on_partial == OnPartial::Failed,
            };
            if !told {
                return Err(fault.clone());
            }
        }
        let dialect = self.stage.dialect.clone();
        let body = encode::body(&dialect, self.turn.state(), &self.stage.request)
            .map_err(|e| Fault::new(FaultKind::Internal, format!("the body of `{}` failed: {e}", dialect.name)))?;
        let what = format!("the body of `{}`", dialect.name);
        let plan = &dialect.body;
        self.stage.check(&body, plan.schema.as_ref(), &what, "body", (plan.span, &plan.place))?;
        self.stage.see(Sight::Body(&body, plan.span));
        Ok(body)
    }

    fn advance(&mut self, event: Event, now_ms: u64) {
        let event = match (event, &self.hidden) {
            (Event::Fault { fault, last }, Some(hidden)) => Event::Fault { fault: hidden.redacted(fault), last },
            (event, _) => event,
        };
        let late = self.turn.late();
        self.begun |= matches!(event, Event::Start { .. });
        let lost = self.lost_by(&event);
        self.turn.clock(now_ms.saturating_sub(self.began_ms) as i64);
        let stage = &mut self.stage;
        self.turn.advance(event, &mut |state, moment| stage.tell(state, moment));
        if self.turn.late() > late {
            self.stage.see(Sight::Late);
        }
        if self.turn.is_over() && self.fault().is_none() {
            self.cut = self.cut.take().or(lost);
        }
        self.fail_if_breached();
    }

    fn fail_if_breached(&mut self) {
        if let Some(fault) = self.stage.breach.clone() {
            let stage = &mut self.stage;
            self.turn.breach(fault, &mut |state, moment| stage.tell(state, moment));
        }
    }

    /// What goes wrong if this is the last event.
    fn lost_by(&self, event: &Event) -> Option<Fault> {
        let unfinished = !self.turn.is_over() && self.turn.state().choices.iter().any(|c| c.finish.is_none());
        match event {
            Event::Fault { fault, last: true } if unfinished => Some(fault.clone()),
            Event::End if unfinished => {
                Some(Fault::new(FaultKind::Truncated, "the backend's answer ended in the middle"))
            }
            _ => None,
        }
    }

    fn step(&mut self) -> Step {
        self.fail_if_breached();
        let frames = match &mut self.stage.out {
            Out::Frames(frames) => std::mem::take(frames),
            Out::Bytes(_) => Vec::new(),
        };
        Step { frames, over: self.turn.is_over() }
    }
}

fn asked_chars(request: &TurnRequest) -> usize {
    let items = request.view.get("items").and_then(Tree::as_list).unwrap_or(&[]);
    items.iter().filter_map(|i| i.get("text").and_then(Tree::as_str)).map(|t| t.chars().count()).sum()
}
