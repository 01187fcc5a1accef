//! Tool calls: when a call opens, and when it closes. A call opens when its name is known. It closes when the backend
//! closes it, at the finish, or when another call begins and its arguments are complete JSON.

use super::after_tools::DiscardReason;
use super::wrapped_input::WrappedInput;
use super::{OnMoment, Turn, deltas};
use crate::domain::policy::{EmptyArguments, ItemsOverlap, ToolArguments, ToolOrder};
use crate::domain::{
    CallIdentity, CallKind, Delta, Event, Fault, FaultKind, Item, ItemKind, ItemState, Moment, MomentKind,
};

/// The identifying fields of a call, as far as a delta has them.
#[derive(Debug, Default)]
pub(super) struct CallIdent {
    pub key: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    pub kind: Option<CallKind>,
    /// Clients get the call in the legacy form.
    pub legacy: bool,
    /// The text of a call that the model wrote into its text.
    pub literal: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct CallState {
    pub(super) ident: CallIdent,
    /// All arguments so far, emitted or not.
    pub(super) received: String,
    pub(super) progress: deltas::JsonProgress,
    /// For a custom tool that was sent to the backend as a function.
    pub(super) wrapped: Option<WrappedInput>,
    /// Arguments that are not emitted yet.
    pending: String,
    /// A high surrogate at the end of the last delta.
    pending_surrogate: Option<u16>,
    /// The call's item, once it is open.
    pub(super) item: Option<usize>,
    /// The backend has reported the call as complete.
    pub(super) complete: bool,
    pub(super) closed: bool,
    /// Clients do not get it.
    pub(super) is_discarded: bool,
}

impl CallState {
    /// Whether it calls one of these tools as a function.
    fn is_call_of(&self, tools: &[String]) -> bool {
        self.ident.kind != Some(CallKind::Custom) && self.ident.name.as_ref().is_some_and(|name| tools.contains(name))
    }

    fn add_arguments(&mut self, arguments: &str) {
        match &mut self.wrapped {
            Some(wrapped) => self.pending.push_str(&wrapped.push(arguments)),
            None => self.pending.push_str(arguments),
        }
    }
}

impl Turn {
    pub(super) fn tool(
        &mut self,
        choice: usize,
        ident: CallIdent,
        by: CallIdentity,
        delta: Option<Delta>,
        on_moment: &mut OnMoment,
    ) {
        let ident =
            CallIdent { id: ident.id.filter(|i| !i.is_empty()), name: ident.name.filter(|n| !n.is_empty()), ..ident };
        if ident.id.is_none() && ident.name.is_none() && delta.is_none() {
            return;
        }
        if self.is_late(choice) {
            if let (Some(name), Some(_)) = (ident.name, ident.literal) {
                self.report_discarded(DiscardReason::Cut, name);
            }
            return;
        }
        if !self.ensure_choice(choice, on_moment) {
            return;
        }
        let call_index = match self.find_call(choice, &ident, by, delta.as_ref()) {
            Some(call_index) => call_index,
            None => {
                if ident.literal.is_some() && self.is_in_dropped_tail(choice) {
                    self.report_discarded(DiscardReason::Tail, ident.name.unwrap_or_default());
                    return;
                }
                if !self.may_add_call(choice, on_moment) {
                    return;
                }
                self.count(size_of::<CallState>());
                self.choices[choice].calls.push(CallState::default());
                self.choices[choice].calls.len() - 1
            }
        };
        self.call_events += 1;
        let chunk = self.chunk;
        self.choices[choice].first_call_chunk.get_or_insert(chunk);
        let call = &mut self.choices[choice].calls[call_index];
        let delta = delta.map(|d| deltas::join_surrogates(&mut call.pending_surrogate, d));
        let text = delta.map(|d| deltas::new_suffix(d, || call.received.as_str())).unwrap_or_default();
        if call.closed {
            self.late_events += u64::from(!text.trim().is_empty());
            return;
        }
        let idents = call.ident.heap_bytes();
        call.ident.merge(ident);
        call.received.push_str(&text);
        call.progress.add(&text);
        // The call and its item both keep them.
        let size = 2 * (call.ident.heap_bytes() - idents + text.len());
        let arguments = call.received.len();
        if !self.charge(size, on_moment) || !self.may_keep_arguments(arguments, on_moment) {
            return;
        }
        let call = &mut self.choices[choice].calls[call_index];
        if call.ident.name.is_some() && call.ident.name == self.tool_aliases.answer {
            // The arguments of this tool are the content that the client requested.
            call.complete = true;
            let content = std::mem::take(&mut call.pending) + &text;
            let delta = Delta::Append(content);
            self.advance(Event::Text { choice, item: None, part: None, delta }, on_moment);
            return;
        }
        if call.wrapped.is_none() && call.is_call_of(&self.tool_aliases.custom) {
            call.wrapped = Some(WrappedInput::default());
            call.ident.kind = Some(CallKind::Custom);
            let before_the_name = std::mem::take(&mut call.pending);
            call.add_arguments(&before_the_name);
        }
        call.add_arguments(&text);
        self.flush_calls(choice, on_moment);
        self.stop_after_calls(choice, on_moment);
    }

    /// Emits all pending calls and arguments that can be emitted, in the order in which the calls were made.
    fn flush_calls(&mut self, choice: usize, on_moment: &mut OnMoment) {
        if self.policies.tool_order == ToolOrder::Index {
            return;
        }
        let serial = self.policies.items_overlap != ItemsOverlap::Interleaved;
        for call_index in 0..self.choices[choice].calls.len().min(self.max_calls()) {
            let call = &self.choices[choice].calls[call_index];
            if call.closed || self.is_answer_call(call) {
                self.settle_call(choice, call_index, on_moment);
                continue;
            }
            if call.ident.name.is_none() || (self.must_be_whole() && !call.is_whole()) {
                if serial { return } else { continue }
            }
            if call.item.is_none() && self.is_duplicate(choice, call_index) {
                self.discard_call(choice, call_index, DiscardReason::Deduplicated);
                continue;
            }
            self.emit_call(choice, call_index, on_moment);
            let another = call_index + 1 < self.choices[choice].calls.len();
            let call = &self.choices[choice].calls[call_index];
            let is_complete = call.complete || ((another || self.closes_before_block()) && call.progress.is_complete());
            let closes = self.policies.closes_when_complete() && is_complete;
            if closes {
                self.close_call(choice, call_index, ItemState::Done, on_moment);
            }
            if !self.ended {
                self.settle_call(choice, call_index, on_moment);
            }
            if self.ended || (serial && !closes) {
                return;
            }
        }
    }

    /// Opens the call if it is not open, and emits its pending arguments.
    fn emit_call(&mut self, choice: usize, call_index: usize, on_moment: &mut OnMoment) {
        let item = match self.choices[choice].calls[call_index].item {
            Some(item) => item,
            None => self.open_call(choice, call_index, on_moment),
        };
        let pending = std::mem::take(&mut self.choices[choice].calls[call_index].pending);
        self.emit_arguments(choice, item, pending, on_moment);
    }

    fn open_call(&mut self, choice: usize, call_index: usize, on_moment: &mut OnMoment) -> usize {
        self.ensure_message(choice, on_moment);
        self.close_message_by_policy(choice, on_moment);
        self.close_reasoning(choice, ItemState::Done, on_moment);
        let ident = &self.choices[choice].calls[call_index].ident;
        let (key, id, name) = (ident.key.clone(), ident.id.clone(), ident.name.clone().unwrap_or_default());
        let (kind, legacy) = (Item::call_kind(ident.kind.unwrap_or(CallKind::Function)), ident.is_legacy());
        let item = self.add_item(choice, kind, key.as_deref());
        self.state.items[item].legacy = legacy;
        self.next_block(item);
        let ordinal = self.state.items[item].ordinal;
        let call_id = id.unwrap_or_else(|| match &self.call_ids {
            Some(format) => format.id(choice, ordinal),
            None => format!("call_{}", self.ids.next()),
        });
        self.state.items[item].call_id = self.unique_call_id(call_id);
        self.state.items[item].name = name;
        let call = &mut self.choices[choice].calls[call_index];
        call.item = Some(item);
        let text = if self.opens_with_arguments { std::mem::take(&mut call.pending) } else { String::new() };
        self.state.items[item].arguments.push_str(&text);
        on_moment(&self.state, &Moment { text, ..Moment::item(MomentKind::ToolOpen, choice, item) });
        item
    }

    /// Clients find the call of a result by its id, so a repeated id gets a number.
    fn unique_call_id(&self, id: String) -> String {
        let is_free = |id: &str| self.state.items.iter().all(|item| item.call_id != id);
        if is_free(&id) {
            return id;
        }
        // There are fewer items than numbers.
        (2..).map(|number| format!("{id}_{number}")).find(|id| is_free(id)).unwrap_or(id)
    }

    fn emit_arguments(&mut self, choice: usize, item: usize, text: String, on_moment: &mut OnMoment) {
        if text.is_empty() {
            return;
        }
        self.state.items[item].arguments.push_str(&text);
        let text = match self.policies.tool_arguments {
            ToolArguments::Incremental => text,
            ToolArguments::Cumulative => self.state.items[item].arguments.clone(),
        };
        let moment = Moment { text, ..Moment::item(MomentKind::ToolArgs, choice, item) };
        on_moment(&self.state, &moment);
    }

    fn close_call(&mut self, choice: usize, call_index: usize, state: ItemState, on_moment: &mut OnMoment) {
        let call = &mut self.choices[choice].calls[call_index];
        call.closed = true;
        let Some(item) = call.item else { return };
        if let Some(wrapped) = &mut call.wrapped {
            let rest = wrapped.rest(&call.received);
            self.emit_arguments(choice, item, rest, on_moment);
        }
        let empty = self.state.items[item].arguments.is_empty() && self.state.items[item].kind == ItemKind::Function;
        if empty && state == ItemState::Done && self.policies.empty_arguments == EmptyArguments::Object {
            self.emit_arguments(choice, item, "{}".to_owned(), on_moment);
        }
        if !self.parse_input(item, on_moment) {
            return;
        }
        self.state.items[item].state = state;
        on_moment(&self.state, &Moment::item(MomentKind::ToolClose, choice, item));
    }

    /// The calls with these ids are complete; without ids, all calls so far.
    pub(super) fn batch(&mut self, choice: usize, ids: &[String], on_moment: &mut OnMoment) {
        if self.is_late(choice) || choice >= self.choices.len() {
            return;
        }
        for call in &mut self.choices[choice].calls {
            call.complete |= ids.is_empty() || call.ident.id.as_ref().is_some_and(|id| ids.contains(id));
        }
        self.flush_calls(choice, on_moment);
        self.stop_after_calls(choice, on_moment);
    }

    /// The backend has reported an item or a call as complete.
    pub(super) fn close(&mut self, choice: usize, item: Option<&str>, key: Option<&str>, on_moment: &mut OnMoment) {
        if choice >= self.choices.len() || self.choices[choice].finished {
            return;
        }
        if self.policies.closes_when_complete() {
            let closed = item.and_then(|k| self.choices[choice].item_of(k));
            if closed.is_some() && closed == self.choices[choice].message {
                self.close_message(choice, ItemState::Done, on_moment);
            } else if closed.is_some() && closed == self.choices[choice].reasoning {
                self.close_reasoning(choice, ItemState::Done, on_moment);
            }
        }
        let name = key.or(item);
        for call in &mut self.choices[choice].calls {
            let is_named = |n| call.ident.key.as_deref() == Some(n) || call.ident.id.as_deref() == Some(n);
            call.complete |= name.is_none_or(is_named);
        }
        self.flush_calls(choice, on_moment);
        self.stop_after_calls(choice, on_moment);
    }

    /// Emits and closes every call at the end of the choice. Returns false if the turn has failed: a call has no name, or
    /// arguments that cannot be represented.
    pub(super) fn close_calls(&mut self, choice: usize, truncated: bool, on_moment: &mut OnMoment) -> bool {
        let count = self.choices[choice].calls.len();
        for call_index in 0..count {
            let call = &self.choices[choice].calls[call_index];
            if call.closed || self.is_answer_call(call) {
                continue;
            }
            if call.ident.name.is_none() {
                let fault = Fault::new(FaultKind::Malformed, "the backend sent a tool call without a name");
                self.fail(fault, on_moment);
                return false;
            }
            self.emit_call(choice, call_index, on_moment);
            let last = call_index + 1 == count;
            let state = if truncated && last { ItemState::Truncated } else { ItemState::Done };
            self.close_call(choice, call_index, state, on_moment);
            if self.ended {
                return false;
            }
        }
        true
    }

    /// Policy `items_overlap: serial`: whether content has to wait for the open call. A call with complete JSON
    /// arguments is closed when other content follows.
    pub(super) fn must_wait_for_call(&mut self, choice: usize, on_moment: &mut OnMoment) -> bool {
        let finished = self.choices.get(choice).is_none_or(|c| c.finished);
        if self.policies.items_overlap != ItemsOverlap::Serial || finished {
            return false;
        }
        if let Some(open) = self.open_call_index(choice)
            && self.choices[choice].calls[open].progress.is_complete()
        {
            self.choices[choice].calls[open].complete = true;
            self.flush_calls(choice, on_moment);
        }
        self.open_call_index(choice).is_some()
    }

    /// The first open call.
    pub(super) fn open_call_index(&self, choice: usize) -> Option<usize> {
        self.choices.get(choice)?.calls.iter().position(|call| call.item.is_some() && !call.closed)
    }

    pub(super) fn has_calls(&self, choice: usize) -> bool {
        self.choices.get(choice).is_some_and(|c| c.calls.iter().any(|call| !self.is_answer_call(call)))
    }

    /// The names of the first calls, for a message.
    pub(super) fn call_names(&self, choice: usize) -> Vec<&str> {
        let calls = self.choices.get(choice).map_or(&[][..], |c| &c.calls);
        calls.iter().filter_map(|call| call.ident.name.as_deref()).take(5).collect()
    }

    /// True for a call of the tool that replaces the requested response format.
    pub(super) fn is_answer_call(&self, call: &CallState) -> bool {
        call.ident.name.is_some() && call.ident.name == self.tool_aliases.answer
    }

    /// True if the choice has calls, and all of them are calls of the response-format tool.
    pub(super) fn has_only_answer_calls(&self, choice: usize) -> bool {
        self.choices.get(choice).is_some_and(|l| !l.calls.is_empty() && l.calls.iter().all(|c| self.is_answer_call(c)))
    }
}
