//! What happens once a choice has made tool calls: complete calls are written as text, the choice finishes early
//! (`stop_after_tools`, `limits.tool_calls`), and text or faults that follow are dropped (`tail_after_tools`,
//! `errors_after_tools`).

use super::tool_calls::CallState;
use super::{OnMoment, Turn};
use crate::domain::policy::{
    DuplicateCalls, ErrorsAfterTools, ItemsOverlap, StopAfterTools, TailAfterTools, ToolOrder,
};
use crate::domain::{Event, Fault, FaultKind, Finish, named_enum};

named_enum! {
    /// Why clients do not get a call.
    pub enum DiscardReason {
        /// It repeats an earlier one.
        Deduplicated = "deduplicated",
        /// It is in text that is dropped.
        Tail = "tail",
        /// The choice has made all calls that it may make.
        Cut = "cut",
    }
}

/// How many discarded calls are kept for the log, between two events.
const MAX_REPORTED: usize = 64;

impl CallState {
    /// Whether its arguments are complete, by what the backend reports or because they are one JSON value.
    pub(super) fn is_whole(&self) -> bool {
        self.complete || self.progress.is_complete()
    }
}

impl Turn {
    /// Text and what belongs to it, after the first call of its choice: policy `tail_after_tools`.
    pub(super) fn is_dropped_tail(&mut self, choice: usize) -> bool {
        if self.policies.tail_after_tools == TailAfterTools::Keep || !self.has_named_calls(choice) {
            return false;
        }
        let same_chunk = self.choices[choice].first_call_chunk == Some(self.chunk);
        let dropped = !(same_chunk && self.policies.tail_after_tools == TailAfterTools::SameChunk);
        self.late_events += u64::from(dropped);
        dropped
    }

    /// Whether a call in the text follows one that the backend sent as a call, and such text is dropped: models repeat
    /// their calls.
    pub(super) fn is_in_dropped_tail(&mut self, choice: usize) -> bool {
        let is_sent = |call: &CallState| call.ident.literal.is_none();
        self.choices.get(choice).is_some_and(|choice| choice.calls.iter().any(is_sent)) && self.is_dropped_tail(choice)
    }

    /// Calls of which the name is known: another one may be that of the response-format tool.
    fn has_named_calls(&self, choice: usize) -> bool {
        let is_known = |call: &CallState| call.ident.name.is_some() || self.tool_aliases.answer.is_none();
        let calls = self.choices.get(choice).map_or(&[][..], |c| &c.calls);
        calls.iter().any(|call| is_known(call) && !self.is_answer_call(call))
    }

    /// How many calls of a choice may be emitted.
    pub(super) fn max_calls(&self) -> usize {
        match self.policies.stop_after_tools {
            StopAfterTools::First => 1,
            StopAfterTools::Off | StopAfterTools::Burst => self.max_calls,
        }
    }

    /// Whether a call has to wait before it opens: it could repeat an earlier one.
    pub(super) fn must_be_whole(&self) -> bool {
        self.policies.duplicate_calls != DuplicateCalls::Keep
    }

    /// Whether a whole call repeats an earlier one, by the policy `duplicate_calls`.
    pub(super) fn is_duplicate(&self, choice: usize, call_index: usize) -> bool {
        let calls = &self.choices[choice].calls;
        let Some((call, earlier)) = calls.get(call_index).zip(calls.get(..call_index)) else { return false };
        let mut earlier = earlier.iter().filter(|other| !other.is_discarded);
        match self.policies.duplicate_calls {
            DuplicateCalls::Keep => false,
            DuplicateCalls::DropId => call.ident.id.is_some() && earlier.any(|other| other.ident.id == call.ident.id),
            DuplicateCalls::DropCall => {
                earlier.any(|other| other.ident.name == call.ident.name && other.received == call.received)
            }
            DuplicateCalls::DropText => {
                call.ident.literal.is_some() && earlier.any(|other| other.ident.literal == call.ident.literal)
            }
        }
    }

    /// A call that clients do not get.
    pub(super) fn discard_call(&mut self, choice: usize, call_index: usize, why: DiscardReason) {
        let call = &mut self.choices[choice].calls[call_index];
        (call.closed, call.is_discarded) = (true, true);
        self.late_events += 1;
        let is_textual = call.ident.literal.is_some();
        if let Some(name) = call.ident.name.clone().filter(|_| is_textual) {
            self.report_discarded(why, name);
        }
    }

    /// A call in the text of the model that clients do not get.
    pub(super) fn report_discarded(&mut self, why: DiscardReason, name: String) {
        if self.discarded.len() < MAX_REPORTED {
            self.discarded.push((why, name));
        }
    }

    /// The calls in the text of the model that clients do not get, since this was last called: why, and the tool.
    pub fn take_discarded(&mut self) -> Vec<(DiscardReason, String)> {
        std::mem::take(&mut self.discarded)
    }

    /// At the finish: the calls in their order, and which of them clients get.
    pub(super) fn select_calls(&mut self, choice: usize) {
        if self.policies.tool_order == ToolOrder::Index {
            // The key of a call is its index.
            let index = |call: &CallState| call.ident.key.as_deref().and_then(|key| key.parse::<u64>().ok());
            self.choices[choice].calls.sort_by_key(|call| index(call).unwrap_or(u64::MAX));
        }
        for call_index in 0..self.choices[choice].calls.len() {
            let call = &self.choices[choice].calls[call_index];
            let is_open = call.closed || call.item.is_some() || self.is_answer_call(call);
            if is_open {
                continue;
            }
            if call_index >= self.max_calls() {
                self.discard_call(choice, call_index, DiscardReason::Cut);
            } else if self.is_duplicate(choice, call_index) {
                self.discard_call(choice, call_index, DiscardReason::Deduplicated);
            }
        }
    }

    /// Whether a call has to close before it is written as text: only one item may be open.
    pub(super) fn closes_before_block(&self) -> bool {
        self.call_blocks.is_some() && self.policies.items_overlap == ItemsOverlap::Serial
    }

    /// Counts a call that is complete, and writes it as text, if it is the next one in the order of calls.
    pub(super) fn settle_call(&mut self, choice: usize, call_index: usize, on_moment: &mut OnMoment) {
        let call = &self.choices[choice].calls[call_index];
        let is_next = self.choices[choice].next_to_settle == call_index;
        if !is_next || !(call.closed || call.is_whole()) {
            return;
        }
        let counts = !call.is_discarded && !self.is_answer_call(call);
        self.choices[choice].next_to_settle += 1;
        if counts {
            self.choices[choice].settled_calls += 1;
            self.write_block(choice, call_index, on_moment);
        }
    }

    /// Writes the calls that are complete because the choice finishes.
    pub(super) fn settle_at_finish(&mut self, choice: usize, truncated: bool, on_moment: &mut OnMoment) {
        if self.closes_before_block() && !self.close_calls(choice, truncated, on_moment) {
            return;
        }
        let count = self.choices[choice].calls.len();
        for call_index in self.choices[choice].next_to_settle..count {
            let call = &mut self.choices[choice].calls[call_index];
            let is_cut_off = truncated && call_index + 1 == count && !call.is_whole();
            if call.ident.name.is_none() || is_cut_off {
                return;
            }
            call.complete = true;
            self.settle_call(choice, call_index, on_moment);
            if self.ended {
                return;
            }
        }
    }

    /// Finishes the choice if it has made all calls that it may make.
    pub(super) fn stop_after_calls(&mut self, choice: usize, on_moment: &mut OnMoment) {
        let settled = self.choices[choice].settled_calls;
        if settled > 0 && settled >= self.max_calls() && !self.ended && !self.choices[choice].finished {
            self.cut(choice, on_moment);
        }
    }

    /// Whether a choice has made calls, all of them are complete, and it may finish if no other call follows soon: policy
    /// `stop_after_tools: burst`. The number changes with every event of a call.
    pub fn burst(&self) -> Option<u64> {
        let is_running = |choice: usize| !self.choices[choice].finished && self.is_settled(choice);
        let waits = self.policies.stop_after_tools == StopAfterTools::Burst && !self.ended;
        (waits && (0..self.choices.len()).any(is_running)).then_some(self.call_events)
    }

    /// Ends the choices that have made their calls.
    pub fn end_burst(&mut self, on_moment: &mut OnMoment) {
        for choice in 0..self.choices.len() {
            if !self.ended && !self.choices[choice].finished && self.is_settled(choice) {
                self.cut(choice, on_moment);
            }
        }
    }

    /// Whether a choice has calls, and all of them are complete and settled.
    fn is_settled(&self, choice: usize) -> bool {
        let choice = &self.choices[choice];
        choice.settled_calls > 0 && choice.next_to_settle == choice.calls.len()
    }

    /// Finishes a choice after its calls. If it was the last one, the turn ends, and with it the backend's turn.
    fn cut(&mut self, choice: usize, on_moment: &mut OnMoment) {
        self.state.cut_after_tools = true;
        let held_back = std::mem::take(&mut self.choices[choice].held_back);
        self.late_events += held_back.len() as u64;
        for event in &held_back {
            self.release(size_of::<Event>() + event.heap_bytes());
        }
        self.finish(Some(choice), Finish::ToolCalls, on_moment);
        if !self.ended && self.is_finished() {
            self.end(on_moment);
        }
    }

    /// Policy `errors_after_tools: finish`: ends a turn in which every choice has made its calls. Returns false if the
    /// fault has to be reported.
    pub(super) fn finish_despite(&mut self, fault: &Fault, on_moment: &mut OnMoment) -> bool {
        let is_ours = matches!(fault.kind, FaultKind::Violation | FaultKind::Internal);
        let policy = self.policies.errors_after_tools;
        if policy == ErrorsAfterTools::Error || is_ours || self.truncating || self.choices.is_empty() {
            return false;
        }
        let is_done = |choice: usize| self.choices[choice].finished || self.is_settled(choice);
        let all_done = (0..self.choices.len()).all(is_done) && self.choices.len() >= self.requested_choices;
        let has_calls = (0..self.choices.len()).any(|choice| self.choices[choice].settled_calls > 0);
        if !all_done || !has_calls {
            return false;
        }
        // A fault while the turn finishes is reported.
        self.truncating = true;
        self.state.ended_by_fault = true;
        self.finish(None, Finish::ToolCalls, on_moment);
        if !self.ended {
            self.end(on_moment);
        }
        true
    }
}
