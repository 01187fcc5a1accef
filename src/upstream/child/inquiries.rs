//! Inquiries: calls about a turn that are not calls of the turn itself. `on_fault:` asks about a message that reports a
//! fault, `on_silence:` about a turn without messages.

use super::turn_entry::{HeldMessages, Pending, TurnEntry};
use super::worker::TurnId;
use super::worker_task::WorkerTask;
use crate::domain::Tree;
use crate::engine::conversation::{self, CallList};

impl WorkerTask {
    /// Makes the calls about a turn from this step on, up to the first one with an answer.
    pub(super) fn inquire(&mut self, turn: TurnId, list: CallList, mut from: usize) {
        while let Some(entry) = self.turns.get(&turn) {
            let conversation = entry.plan().conversation.as_ref();
            let next = conversation.map(|c| conversation::next_of(c, list, from, &entry.kept, &self.values));
            let Some(Ok(Some(call))) = next else { break };
            let step = call.step;
            from = step + 1;
            if self.writer.call(call, Pending::Inquiry { turn, list, step }).is_some() {
                return;
            }
        }
        if list == CallList::Fault {
            self.release(turn);
        }
    }

    pub(super) fn on_inquiry_answer(&mut self, turn: TurnId, list: CallList, step: usize, message: Tree, bytes: usize) {
        let Some(entry) = self.turns.get_mut(&turn) else { return };
        let plan = entry.plan().clone();
        let call = plan.conversation.as_ref().and_then(|c| conversation::calls_of(c, list).get(step));
        match (list, &mut entry.held, call) {
            (CallList::Fault, Some(held), Some(call)) => conversation::keep(call, &message, &mut held.kept),
            (CallList::Silence, _, _) => self.deliver(turn, message, bytes),
            _ => return,
        }
        self.inquire(turn, list, step + 1);
    }

    /// Passes on the messages that were held back.
    pub(super) fn release(&mut self, turn: TurnId) {
        let Some(held) = self.turns.get_mut(&turn).and_then(|entry| entry.held.take()) else { return };
        let mut kept = Some(held.kept).filter(|kept| kept.as_map().is_some_and(|kept| !kept.is_empty()));
        for (mut message, bytes) in held.messages {
            if let Some(kept) = kept.take() {
                message.insert("kept", kept);
            }
            self.deliver(turn, message, bytes);
        }
    }

    /// Asks about silent turns, and passes on what waited too long.
    pub(super) fn inquire_about_turns(&mut self) {
        let silent: Vec<TurnId> = self.turns.iter_mut().filter_map(|(t, e)| e.take_silence().then_some(*t)).collect();
        silent.into_iter().for_each(|turn| self.inquire(turn, CallList::Silence, 0));
        let is_overdue = |entry: &TurnEntry| entry.held.as_ref().is_some_and(HeldMessages::is_overdue);
        let overdue: Vec<TurnId> = self.turns.iter().filter(|(_, e)| is_overdue(e)).map(|(turn, _)| *turn).collect();
        overdue.into_iter().for_each(|turn| self.release(turn));
    }
}
