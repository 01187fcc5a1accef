//! A turn as its worker knows it: what its calls kept, whether it has ended, and how far it is cancelled and closed.

use super::turn_queue::{TurnMessage, TurnSender};
use super::worker::{ClosingMark, TurnId};
use crate::domain::Tree;
use crate::engine::conversation::{self, CallList, OutgoingCall, SessionValues};
use crate::mapping::config::backend::BackendPlan;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an answer belongs to.
pub enum Pending {
    Session {
        step: usize,
    },
    Turn {
        turn: TurnId,
        step: usize,
    },
    /// A call that cancels or closes a turn.
    Closing {
        turn: TurnId,
    },
    /// A call about a turn, of `on_fault:` or `on_silence:`.
    Inquiry {
        turn: TurnId,
        list: CallList,
        step: usize,
    },
}

pub struct TurnEntry {
    plan: Arc<BackendPlan>,
    /// `None` once nobody reads the turn.
    messages: Option<TurnSender>,
    pub kept: Tree,
    /// The value of `route_by:`.
    pub route: Option<String>,
    /// A call is not answered yet.
    pub in_flight: bool,
    pub is_cancelled: bool,
    /// The process has ended the turn.
    pub is_ended: bool,
    pub closed_at: Option<Instant>,
    pub closing: ClosingMark,
    next_cancel: usize,
    has_cancelled: bool,
    /// The process rejected the cancellation. It may accept it after its next message: some processes cannot cancel a
    /// turn that they have accepted and not begun.
    cancels_again: bool,
    rejected_cancels: usize,
    next_close: usize,
    /// When it was last sent a message.
    last_message: Instant,
    /// The calls of `on_silence:` were made since then.
    was_asked: bool,
    pub held: Option<HeldMessages>,
}

/// A message that reports a fault, and those after it, while the calls of `on_fault:` are made.
pub struct HeldMessages {
    pub messages: Vec<(Tree, usize)>,
    pub kept: Tree,
    since: Instant,
}

/// How long a message waits for the answers to the calls of `on_fault:`, and how many messages wait.
const LONGEST_HOLD: Duration = Duration::from_secs(5);
const MOST_HELD: usize = 64;

impl HeldMessages {
    pub fn new(message: Tree, bytes: usize) -> HeldMessages {
        HeldMessages { messages: vec![(message, bytes)], kept: Tree::Map(Vec::new()), since: Instant::now() }
    }

    pub fn is_overdue(&self) -> bool {
        self.messages.len() > MOST_HELD || self.since.elapsed() > LONGEST_HOLD
    }
}

/// The next step of a turn that is to be cancelled or closed.
pub enum Closing {
    Call(OutgoingCall),
    /// For an answer, for the end of the turn, or because the turn is not over.
    Wait,
    Done,
}

/// How often a turn is cancelled again after the process rejected that.
const MAX_REJECTED_CANCELS: usize = 8;

/// How long the process may take to end a cancelled turn, before it is closed nevertheless.
const END_TIMEOUT: Duration = Duration::from_secs(5);

impl Pending {
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Pending::Session { .. } => None,
            Pending::Turn { turn, .. } | Pending::Closing { turn } | Pending::Inquiry { turn, .. } => Some(*turn),
        }
    }
}

impl TurnEntry {
    pub fn new(plan: Arc<BackendPlan>, messages: TurnSender, closing: ClosingMark) -> TurnEntry {
        TurnEntry {
            plan,
            messages: Some(messages),
            kept: Tree::Map(Vec::new()),
            route: None,
            in_flight: false,
            is_cancelled: false,
            is_ended: false,
            closed_at: None,
            closing,
            next_cancel: 0,
            has_cancelled: false,
            cancels_again: false,
            rejected_cancels: 0,
            next_close: 0,
            last_message: Instant::now(),
            was_asked: false,
            held: None,
        }
    }

    pub fn plan(&self) -> &Arc<BackendPlan> {
        &self.plan
    }

    /// A message of the process arrived.
    pub fn on_message(&mut self) {
        self.last_message = Instant::now();
        self.was_asked = false;
    }

    /// Whether the calls of `on_silence:` are due. They are then no longer.
    pub fn take_silence(&mut self) -> bool {
        let after = self.plan.conversation.as_ref().and_then(|c| Some(c.on_silence.as_ref()?.after));
        let is_running = self.messages.is_some() && self.held.is_none() && !self.is_ended && !self.is_cancelled;
        let is_due = is_running
            && !self.in_flight
            && !self.was_asked
            && after.is_some_and(|after| self.last_message.elapsed() >= after);
        self.was_asked |= is_due;
        is_due
    }

    /// False if the queue of the turn is full.
    pub fn send(&self, message: TurnMessage, bytes: usize) -> bool {
        self.messages.as_ref().is_none_or(|messages| messages.send(message, bytes))
    }

    pub fn close(&mut self) {
        self.messages = None;
        self.is_cancelled = true;
        self.closed_at.get_or_insert_with(Instant::now);
    }

    /// The process rejected a call that cancels or closes the turn.
    pub fn on_rejected_closing(&mut self) {
        if self.next_close == 0 && !self.is_ended && self.rejected_cancels < MAX_REJECTED_CANCELS {
            self.rejected_cancels += 1;
            self.cancels_again = true;
        }
    }

    /// Whether the calls of `cancel:` are due again. They are then made from the first on.
    pub fn take_cancel_again(&mut self) -> bool {
        if self.cancels_again {
            self.next_cancel = 0;
        }
        std::mem::take(&mut self.cancels_again)
    }

    /// Keeps what the call of this step keeps. Returns the route of the turn when it becomes known.
    pub fn keep(&mut self, step: usize, message: &Tree) -> Option<String> {
        let conversation = self.plan.conversation.as_ref()?;
        conversation::keep(conversation.turn.get(step)?, message, &mut self.kept);
        if self.route.is_some() {
            return None;
        }
        self.route = self.kept.get(&conversation.route_by.keep.value).and_then(Tree::as_str).map(str::to_owned);
        self.route.clone()
    }

    /// Whether the process ends its turn with this message.
    pub fn ends_with(&self, message: &Tree) -> bool {
        let method = message.get("method").and_then(Tree::as_str);
        let ended_by = self.plan.conversation.as_ref().map_or(&[] as &[String], |c| &c.ended_by);
        method.is_some_and(|method| ended_by.iter().any(|name| name == method))
    }

    /// The next call that cancels or closes the turn.
    pub fn next_closing_call(&mut self, values: &SessionValues) -> Closing {
        let plan = self.plan.clone();
        let Some(conversation) = &plan.conversation else { return Closing::Done };
        if self.in_flight {
            return Closing::Wait;
        }
        if self.is_cancelled && !self.is_ended {
            let call = conversation::next_of(conversation, CallList::Cancel, self.next_cancel, &self.kept, values);
            if let Ok(Some(call)) = call {
                self.next_cancel = call.step + 1;
                self.has_cancelled = true;
                return Closing::Call(call);
            }
        }
        let Some(closed_at) = self.closed_at else { return Closing::Wait };
        let awaits_end = self.has_cancelled && !self.is_ended && !conversation.ended_by.is_empty();
        if awaits_end && closed_at.elapsed() < END_TIMEOUT {
            return Closing::Wait;
        }
        match conversation::next_of(conversation, CallList::Close, self.next_close, &self.kept, values) {
            Ok(Some(call)) => {
                self.next_close = call.step + 1;
                Closing::Call(call)
            }
            Ok(None) | Err(_) => Closing::Done,
        }
    }
}
