//! Event → Moment. The only memory of a turn, typed and pure: what is open, what was said, what may still come.
//!
//! A moment is told while the state is just as the client has to see it: an item that opens is still empty.

mod choice_state;
mod deltas;
mod finish;
mod ids;
mod messages;
mod reasoning;
mod tool_calls;

pub use ids::Ids;

use crate::domain::policy::{ChoiceFrames, Head, IdsPolicy};
use crate::domain::{Event, Fault, FaultKind, Masks, Moment, MomentKind, Policies, Tree, TurnState, Usage};
use choice_state::Lane;

/// Is told every moment, with the state at that moment.
pub type Tell<'t> = dyn FnMut(&TurnState, &Moment) + 't;

pub struct Turn {
    state: TurnState,
    policies: Policies,
    ids: Ids,
    lanes: Vec<Lane>,
    /// How many choices the client asked for.
    asked: usize,
    /// How much text it sent, for an estimate.
    asked_chars: usize,
    /// Kept out of the state until the end: an envelope that opens a stream has no usage yet.
    usage: Usage,
    /// Log-probabilities that came before their choice was opened.
    first_logprobs: Tree,
    masks: Masks,
    /// The answer is one body: how it ended may still change what it says.
    whole: bool,
    /// That body is made of a stream.
    bridged: bool,
    head_left: bool,
    opened: bool,
    /// What goes wrong while an answer is cut short is a failure: there is nothing left to cut.
    cutting: bool,
    over: bool,
    late: u64,
    bytes: usize,
    limits: Limits,
}

/// A backend is not trusted with our memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of text and arguments, all together.
    pub bytes: usize,
    pub choices: usize,
    pub items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 64 << 20, choices: 128, items: 10_000 }
    }
}

impl Turn {
    pub fn new(policies: Policies, mut ids: Ids, model: &str, asked: usize, created: i64) -> Turn {
        let state = TurnState { id: ids.next(), created, model: model.to_owned(), ..TurnState::default() };
        Turn {
            state,
            policies,
            ids,
            lanes: Vec::new(),
            asked,
            asked_chars: 0,
            usage: Usage::default(),
            first_logprobs: Tree::Null,
            masks: Masks::default(),
            whole: false,
            bridged: false,
            head_left: false,
            opened: false,
            cutting: false,
            over: false,
            late: 0,
            bytes: 0,
            limits: Limits::default(),
        }
    }

    /// For the policy `usage: estimate`.
    pub fn asked_chars(mut self, chars: usize) -> Turn {
        self.asked_chars = chars;
        self
    }

    /// Tools that the backend knows as something else: their calls become what the client meant.
    pub fn masks(mut self, masks: Masks) -> Turn {
        self.masks = masks;
        self
    }

    /// The client waits for one body.
    pub fn whole(mut self, whole: bool) -> Turn {
        self.whole = whole;
        self
    }

    pub fn state(&self) -> &TurnState {
        &self.state
    }

    /// Has a client been told anything yet?
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// Has every choice that was asked for said why it ended? What is still to come is only the count.
    pub fn is_finished(&self) -> bool {
        !self.lanes.is_empty() && self.lanes.len() >= self.asked && self.lanes.iter().all(|l| l.finished)
    }

    /// Nothing is told any more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Events that came too late to be told.
    pub fn late(&self) -> u64 {
        self.late
    }

    pub fn clock(&mut self, elapsed_ms: i64) {
        self.state.elapsed_ms = elapsed_ms;
    }

    /// Opens the turn before the backend has said anything (policy `head: at_once`).
    pub fn begin(&mut self, tell: &mut Tell) {
        if self.policies.head == Head::AtOnce && !self.over {
            self.reach(0, tell);
        }
    }

    /// The backend sends a stream, and the client waits for one body.
    pub fn bridged(&mut self) {
        self.bridged = self.whole;
    }

    /// The client has seen the head of a stream: one that fails now begins first.
    pub fn head_left(&mut self) {
        self.head_left = true;
    }

    pub fn advance(&mut self, event: Event, tell: &mut Tell) {
        if self.over {
            self.late += 1;
            return;
        }
        match event {
            Event::Start { .. } if self.opened => {}
            Event::Start { id, model, created } => {
                self.state.model = model.unwrap_or_else(|| std::mem::take(&mut self.state.model));
                if self.policies.ids == IdsPolicy::Backend {
                    self.state.id =
                        id.filter(|id| ids::is_sane(id)).unwrap_or_else(|| std::mem::take(&mut self.state.id));
                    self.state.created = created.unwrap_or(self.state.created);
                }
            }
            Event::Text { choice, item, part, piece } => self.text(choice, At { item, part }, piece, Voice::Text, tell),
            Event::Refusal { choice, item, part, piece } => {
                self.text(choice, At { item, part }, piece, Voice::Refusal, tell);
            }
            Event::Reasoning { choice, item, kind, part, piece, encrypted } => {
                self.reasoning(choice, item, kind, part, piece, encrypted, tell);
            }
            Event::Annotation { choice, value, .. } => self.annotation(choice, value, tell),
            Event::Logprobs { choice, value, .. } => self.logprobs(choice, value),
            Event::Tool { choice, key, id, name, kind, piece } => {
                self.tool(choice, tool_calls::Named { key, id, name, kind }, piece, tell);
            }
            Event::Batch { choice, ids } => self.batch(choice, &ids, tell),
            Event::Close { choice, item, key } => self.close(choice, item.as_deref(), key.as_deref(), tell),
            Event::Usage { usage, merge } => self.usage.merge(usage, merge),
            Event::Finish { choice, reason } => self.finish(choice, reason, tell),
            Event::Fault { fault, last } => {
                if last {
                    self.fail(fault, tell);
                }
            }
            Event::End => self.end(tell),
        }
    }

    /// Opens the turn, and the choices up to this one: clients index choices by the order in which they appear.
    /// False when the backend went beyond what it may ask of us, and the turn has failed.
    fn reach(&mut self, choice: usize, tell: &mut Tell) -> bool {
        if choice >= self.limits.choices {
            let message = format!("the backend spoke of choice {choice}; at most {} are read", self.limits.choices);
            self.fail(Fault::new(FaultKind::Garbled, message), tell);
            return false;
        }
        if !self.opened {
            self.opened = true;
            self.state.first_ms = Some(self.state.elapsed_ms);
            let together = self.policies.choice_frames == ChoiceFrames::Together;
            if together {
                self.lanes.resize_with(self.asked.min(self.limits.choices), Lane::default);
                self.state.choices = (0..self.lanes.len()).map(choice_state::choice).collect();
            }
            tell(&self.state, &Moment::turn(MomentKind::TurnOpen));
            for index in 0..self.lanes.len() {
                self.open_choice(index, tell);
            }
        }
        while self.lanes.len() <= choice {
            let index = self.lanes.len();
            self.lanes.push(Lane::default());
            self.state.choices.push(choice_state::choice(index));
            self.open_choice(index, tell);
        }
        true
    }

    fn open_choice(&mut self, index: usize, tell: &mut Tell) {
        tell(&self.state, &Moment::choice(MomentKind::ChoiceOpen, index));
    }

    /// What a choice says after its finish is late.
    fn is_late(&mut self, choice: usize) -> bool {
        let late = self.lanes.get(choice).is_some_and(|l| l.finished);
        self.late += u64::from(late);
        late
    }

    /// Counts what is kept; false when that is too much, and the turn has failed.
    fn keep(&mut self, bytes: usize, tell: &mut Tell) -> bool {
        self.bytes += bytes;
        if self.bytes > self.limits.bytes || self.state.items.len() >= self.limits.items {
            let message = "the backend's answer is larger than this gateway keeps";
            self.fail(Fault::new(FaultKind::Garbled, message), tell);
            return false;
        }
        true
    }
}

/// Where a piece of text belongs, as the backend names it.
#[derive(Debug)]
struct At {
    item: Option<String>,
    part: Option<usize>,
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Text,
    Refusal,
}
