//! Converts a backend's events into moments. `Turn` is the only mutable state of a turn, and it is pure: no I/O, no
//! clock.
//!
//! Each moment is emitted with the state that the client must see at that point: when an item opens, it is still empty.

pub mod after_tools;
mod budget;
mod call_block;
mod call_identity;
mod call_input;
mod choice_state;
mod deltas;
mod extra;
mod failure;
mod finish;
mod held_back;
mod ids;
pub mod inline;
mod items;
mod legacy_call;
mod messages;
mod opening;
mod reasoning;
mod settings;
mod tool_calls;
mod usage;
mod wrapped_input;

pub use budget::Limits;
pub use ids::Ids;

use crate::domain::call_block::CallBlockFormat;
use crate::domain::call_id::CallIdFormat;
use crate::domain::{
    Event, FaultReporter, Finish, HintStrength, Moment, PartKind, Policies, SentItems, ToolAliases, TurnState, Usage,
};
use after_tools::DiscardReason;
use choice_state::{ChoiceState, PendingLogprobs};
use messages::TextTarget;
use std::sync::Arc;

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
    /// Calls in the text of the model that clients do not get, for the log.
    discarded: Vec<(DiscardReason, String)>,
    /// A part of the response was not understood.
    has_unread: bool,
    /// The frame that opens a call reads its first arguments.
    opens_with_arguments: bool,
    /// The ids of calls to which the backend gives none, if the dialect has a format for them.
    call_ids: Option<Arc<CallIdFormat>>,
    /// How calls are written as text, if the dialect does that.
    call_blocks: Option<Arc<CallBlockFormat>>,
    /// How many calls a choice may make.
    max_calls: usize,
    /// The number of the backend's event, for `tail_after_tools: same_chunk`.
    chunk: u64,
    /// Signs of finish reasons, the first of each strength and choice.
    hints: Vec<(Option<usize>, HintStrength, Finish)>,
    /// Events of calls so far.
    call_events: u64,
    /// How the dialect reports faults.
    reporter: Option<Arc<dyn FaultReporter>>,
    /// The memory that is kept, by [`Limits::bytes`].
    bytes: usize,
    limits: Limits,
}

impl Turn {
    /// Call before the events of each raw event.
    pub fn next_chunk(&mut self) {
        self.chunk += 1;
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
            if let Event::Tool { name: Some(name), literal, .. } = event
                && literal.0.is_some()
            {
                self.report_discarded(DiscardReason::Cut, name);
            }
            return;
        }
        let Some(event) = self.hold_back(event, on_moment) else { return };
        let closes_calls_of = match &event {
            Event::Tool { choice, .. } | Event::Batch { choice, .. } | Event::Close { choice, .. } => Some(*choice),
            _ => None,
        };
        match event {
            Event::Start { .. } if self.opened => {}
            // Read before the turn.
            Event::MetadataKeys { .. } => {}
            Event::Start { id, model, created } => self.start(id, model, created),
            Event::Text { choice, item, part, delta } => {
                self.text(choice, TextTarget { item, part, ..TextTarget::of(PartKind::Text) }, delta, on_moment);
            }
            Event::Refusal { choice, item, part, delta } => {
                self.text(choice, TextTarget { item, part, ..TextTarget::of(PartKind::Refusal) }, delta, on_moment);
            }
            Event::Reasoning { choice, item, kind, part, delta, encrypted } => {
                self.reasoning(choice, item, kind, part, delta, encrypted, on_moment);
            }
            Event::Annotation { choice, annotation, .. } => self.annotation(choice, annotation, on_moment),
            Event::Logprobs { choice, logprobs, .. } => self.logprobs(choice, logprobs, on_moment),
            Event::Tool { choice, key, id, name, kind, by, legacy, literal, delta } => {
                let ident = tool_calls::CallIdent { key, id, name, kind, literal: literal.0, legacy: false };
                match legacy {
                    true => self.legacy_call(choice, ident, delta, on_moment),
                    false => self.tool(choice, ident, by.0, delta, on_moment),
                }
            }
            Event::Batch { choice, ids } => self.batch(choice, &ids, on_moment),
            Event::AwaitResults { choice } => {
                if self.has_calls(choice) {
                    self.finish(Some(choice), Finish::ToolCalls, on_moment);
                }
            }
            Event::Close { choice, item, key } => self.close(choice, item.as_deref(), key.as_deref(), on_moment),
            Event::Usage { usage, merge, trigger } => {
                self.usage.merge(usage, merge);
                self.state.usage_trigger = trigger.or(self.state.usage_trigger.take());
                self.state.usage_so_far = self.usage;
            }
            Event::Extra { choice, name, value } => self.extra(choice, &name, value, on_moment),
            Event::FinishHint { choice, reason, strength } => self.hint(choice, reason, strength),
            Event::Finish { choice, reason: Some(reason), .. } => {
                let reason = self.hinted(choice, HintStrength::Strong).unwrap_or(reason);
                self.finish(choice, reason, on_moment);
            }
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

    /// True, and counted, if the choice has already finished.
    fn is_late(&mut self, choice: usize) -> bool {
        let late = self.choices.get(choice).is_some_and(|c| c.finished);
        self.late_events += u64::from(late);
        late
    }
}
