//! Converts a backend's events into moments. `Turn` is the only mutable state of a turn, and it is pure: no I/O, no
//! clock.
//!
//! Each moment is emitted with the state that the client must see at that point: when an item opens, it is still empty.

mod budget;
mod call_identity;
mod call_input;
mod choice_state;
mod deltas;
mod extra;
mod failure;
mod finish;
mod ids;
pub mod inline;
mod items;
mod legacy_call;
mod messages;
mod reasoning;
mod tool_calls;
mod usage;
mod wrapped_input;

pub use budget::Limits;
pub use ids::Ids;

use crate::domain::policy::{ChoiceFrames, IdsPolicy, StreamStart};
use crate::domain::{
    Choice, Event, Fault, FaultKind, Moment, MomentKind, PartKind, Policies, SentItems, ToolAliases, TurnState, Usage,
};
use choice_state::{ChoiceState, PendingLogprobs};

/// Callback for every moment, with the state at that moment.
pub type OnMoment<'t> = dyn FnMut(&TurnState, &Moment) + 't;

pub struct Turn {
    state: TurnState,
    policies: Policies,
    ids: Ids,
    choices: Vec<ChoiceState>,
    /// The number of choices the client requested (`n`).
    requested_choices: usize,
    /// Characters of text in the request, for `usage: estimate`.
    request_chars: usize,
    /// Kept out of the state until the end, because the envelope that opens a stream must not contain usage yet.
    usage: Usage,
    /// Log-probabilities that arrived before their choice was opened.
    first_logprobs: PendingLogprobs,
    /// The dialect reads log-probabilities after the frame of their text.
    keep_logprobs: bool,
    tool_aliases: ToolAliases,
    /// Whether the client's dialect can represent tool calls.
    represents_calls: bool,
    /// Whether the dialect reads the arguments of calls as JSON.
    parse_inputs: bool,
    /// The kinds of items that the dialect sends.
    sent: SentItems,
    sent_items: usize,
    /// The number of blocks so far.
    blocks: usize,
    /// The client gets one JSON body, so the outcome can still change its content.
    single_body: bool,
    /// The body is aggregated from a stream of the backend.
    aggregated: bool,
    headers_sent: bool,
    opened: bool,
    /// Set while the turn is being truncated: a fault in that phase fails the turn instead of truncating it again.
    truncating: bool,
    ended: bool,
    late_events: u64,
    /// A part of the response was not understood.
    has_unread: bool,
    /// The memory that is kept, by [`Limits::bytes`].
    bytes: usize,
    limits: Limits,
}

impl Turn {
    pub fn new(policies: Policies, mut ids: Ids, model: &str, requested_choices: usize, created: i64) -> Turn {
        let state = TurnState { id: ids.next(), created, model: model.to_owned(), ..TurnState::default() };
        Turn {
            state,
            policies,
            ids,
            choices: Vec::new(),
            requested_choices,
            request_chars: 0,
            usage: Usage::default(),
            first_logprobs: PendingLogprobs::default(),
            keep_logprobs: true,
            tool_aliases: ToolAliases::default(),
            represents_calls: true,
            parse_inputs: true,
            sent: SentItems::ALL,
            sent_items: 0,
            blocks: 0,
            single_body: false,
            aggregated: false,
            headers_sent: false,
            opened: false,
            truncating: false,
            ended: false,
            late_events: 0,
            has_unread: false,
            bytes: 0,
            limits: Limits::default(),
        }
    }

    /// Sets the size of the request for `usage: estimate`.
    pub fn request_chars(mut self, chars: usize) -> Turn {
        self.request_chars = chars;
        self
    }

    /// Sets whether log-probabilities are kept after the frame of their text.
    pub fn keep_logprobs(mut self, keep: bool) -> Turn {
        self.keep_logprobs = keep;
        self
    }

    /// Sets whether the client's dialect can represent tool calls.
    pub fn represents_calls(mut self, represents_calls: bool) -> Turn {
        self.represents_calls = represents_calls;
        self
    }

    /// Sets whether the arguments of calls are also kept as JSON.
    pub fn parse_inputs(mut self, parse: bool) -> Turn {
        self.parse_inputs = parse;
        self
    }

    /// Sets the kinds of items that the client's dialect sends: only these are counted.
    pub fn sends(mut self, sent: SentItems) -> Turn {
        self.sent = sent;
        self
    }

    pub fn set_memory_limit(&mut self, bytes: usize) {
        self.limits.bytes = bytes;
    }

    /// Sets the tools that were sent to the backend in another form; their calls are converted back.
    pub fn tool_aliases(mut self, tool_aliases: ToolAliases) -> Turn {
        self.tool_aliases = tool_aliases;
        self
    }

    /// Sets whether the client gets one JSON body instead of a stream.
    pub fn single_body(mut self, single_body: bool) -> Turn {
        self.single_body = single_body;
        self
    }

    pub fn state(&self) -> &TurnState {
        &self.state
    }

    /// True after the first moment was emitted.
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// True when every requested choice has a finish reason. Only usage can still follow.
    pub fn is_finished(&self) -> bool {
        !self.choices.is_empty()
            && self.choices.len() >= self.requested_choices
            && self.choices.iter().all(|c| c.finished)
    }

    /// True after the last moment: nothing more is emitted.
    pub fn is_over(&self) -> bool {
        self.ended
    }

    /// Number of events that arrived after their choice or the turn had ended, and were ignored.
    pub fn late_events(&self) -> u64 {
        self.late_events
    }

    pub fn set_elapsed_ms(&mut self, elapsed_ms: i64) {
        self.state.elapsed_ms = elapsed_ms;
    }

    /// Opens the turn before the first event of the backend, if the policy `stream_start` requires it.
    pub fn begin(&mut self, on_moment: &mut OnMoment) {
        if self.policies.stream_start == StreamStart::Immediately && !self.ended {
            self.ensure_choice(0, on_moment);
        }
    }

    /// Records that the backend streams although the client gets one body.
    pub fn mark_aggregated(&mut self) {
        self.aggregated = self.single_body;
    }

    /// Records that the rules did not understand a part of the response. A response of which nothing else is left fails.
    pub fn mark_unread(&mut self) {
        self.has_unread = true;
    }

    /// Records that the response headers of a stream were sent. If the turn fails now, it is opened first.
    pub fn mark_headers_sent(&mut self) {
        self.headers_sent = true;
    }

    pub fn advance(&mut self, event: Event, on_moment: &mut OnMoment) {
        if self.ended {
            self.late_events += 1;
            return;
        }
        let Some(event) = self.hold_back(event, on_moment) else { return };
        let closes_calls_of = match &event {
            Event::Tool { choice, .. } | Event::Batch { choice, .. } | Event::Close { choice, .. } => Some(*choice),
            _ => None,
        };
        match event {
            Event::Start { .. } if self.opened => {}
            Event::Start { id, model, created } => {
                self.count(model.as_ref().map_or(0, String::len) + id.as_ref().map_or(0, String::len));
                self.state.model = model.unwrap_or_else(|| std::mem::take(&mut self.state.model));
                if self.policies.ids == IdsPolicy::Backend {
                    self.state.id =
                        id.filter(|id| ids::is_usable_id(id)).unwrap_or_else(|| std::mem::take(&mut self.state.id));
                    self.state.created = created.unwrap_or(self.state.created);
                }
            }
            Event::Text { choice, item, part, delta } => {
                self.text(choice, TextTarget { item, part, kind: PartKind::Text }, delta, on_moment);
            }
            Event::Refusal { choice, item, part, delta } => {
                self.text(choice, TextTarget { item, part, kind: PartKind::Refusal }, delta, on_moment);
            }
            Event::Reasoning { choice, item, kind, part, delta, encrypted } => {
                self.reasoning(choice, item, kind, part, delta, encrypted, on_moment);
            }
            Event::Annotation { choice, annotation, .. } => self.annotation(choice, annotation, on_moment),
            Event::Logprobs { choice, logprobs, .. } => self.logprobs(choice, logprobs, on_moment),
            Event::Tool { choice, key, id, name, kind, by, legacy, delta } => {
                let ident = tool_calls::CallIdent { key, id, name, kind };
                match legacy {
                    true => self.legacy_call(choice, ident, delta, on_moment),
                    false => self.tool(choice, ident, by.0, delta, on_moment),
                }
            }
            Event::Batch { choice, ids } => self.batch(choice, &ids, on_moment),
            Event::Close { choice, item, key } => self.close(choice, item.as_deref(), key.as_deref(), on_moment),
            Event::Usage { usage, merge } => {
                self.usage.merge(usage, merge);
                self.state.usage_so_far = self.usage;
            }
            Event::Extra { choice, name, value } => self.extra(choice, &name, value, on_moment),
            Event::Finish { choice, reason: Some(reason), .. } => self.finish(choice, reason, on_moment),
            Event::Finish { choice, reason: None, other } => {
                self.finish_unknown(choice, &other.unwrap_or_default(), on_moment);
            }
            Event::Fault { fault, is_final } => {
                if is_final {
                    self.fail(fault, on_moment);
                }
            }
            Event::End => self.end(on_moment),
        }
        if let Some(choice) = closes_calls_of {
            self.release_held_back(choice, on_moment);
        }
    }

    /// Policy `items_overlap: serial`: text and reasoning wait until the open call of their choice is closed.
    fn hold_back(&mut self, event: Event, on_moment: &mut OnMoment) -> Option<Event> {
        let choice = match &event {
            Event::Text { choice, .. }
            | Event::Refusal { choice, .. }
            | Event::Reasoning { choice, .. }
            | Event::Annotation { choice, .. }
            | Event::Logprobs { choice, .. } => *choice,
            Event::Tool { .. } | Event::Batch { .. } | Event::Close { .. } => return Some(event),
            Event::Start { .. } | Event::Usage { .. } | Event::Extra { .. } | Event::Finish { .. } => {
                return Some(event);
            }
            Event::Fault { .. } | Event::End => return Some(event),
        };
        if !self.must_wait_for_call(choice, on_moment) {
            // Earlier events come first.
            self.release_held_back(choice, on_moment);
            return (!self.ended).then_some(event);
        }
        let size = size_of::<Event>() + event.heap_bytes();
        if self.charge(size, on_moment) {
            self.choices[choice].held_back.push(event);
        }
        None
    }

    /// Processes the events that were held back, unless a call is open.
    fn release_held_back(&mut self, choice: usize, on_moment: &mut OnMoment) {
        // The first check is for the hot path: without the policy nothing is ever held back.
        if self.choices.get(choice).is_none_or(|c| c.held_back.is_empty())
            || self.ended
            || self.open_call_index(choice).is_some()
        {
            return;
        }
        let held_back = std::mem::take(&mut self.choices[choice].held_back);
        for event in held_back {
            // It is charged again for what the turn keeps of it.
            self.release(size_of::<Event>() + event.heap_bytes());
            self.advance(event, on_moment);
        }
    }

    /// Opens the turn and all choices up to this one, because clients index choices by order of appearance.
    /// Returns false if the index exceeds the limit; the turn has then failed.
    fn ensure_choice(&mut self, choice: usize, on_moment: &mut OnMoment) -> bool {
        if choice >= self.limits.choices {
            let message =
                format!("the backend sent choice index {choice}; the limit is {} choices", self.limits.choices);
            self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
            return false;
        }
        if !self.opened {
            self.opened = true;
            self.state.first_output_ms = Some(self.state.elapsed_ms);
            let together = self.policies.choice_frames == ChoiceFrames::Together;
            if together {
                self.choices.resize_with(self.requested_choices.min(self.limits.choices), ChoiceState::default);
                self.state.choices = (0..self.choices.len()).map(|index| Choice { index, finish: None }).collect();
            }
            on_moment(&self.state, &Moment::turn(MomentKind::TurnOpen));
            for index in 0..self.choices.len() {
                on_moment(&self.state, &Moment::choice(MomentKind::ChoiceOpen, index));
            }
        }
        while self.choices.len() <= choice {
            let index = self.choices.len();
            self.choices.push(ChoiceState::default());
            self.state.choices.push(Choice { index, finish: None });
            on_moment(&self.state, &Moment::choice(MomentKind::ChoiceOpen, index));
        }
        true
    }

    /// True, and counted, if the choice has already finished.
    fn is_late(&mut self, choice: usize) -> bool {
        let late = self.choices.get(choice).is_some_and(|c| c.finished);
        self.late_events += u64::from(late);
        late
    }
}

/// The item and part that a text delta belongs to, in the backend's numbering.
#[derive(Debug)]
struct TextTarget {
    item: Option<String>,
    part: Option<usize>,
    kind: PartKind,
}
