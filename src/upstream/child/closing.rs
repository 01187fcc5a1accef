//! Cancels and closes the turns of a worker that no client reads any more.

use super::turn_entry::{Closing, Pending, TurnEntry};
use super::worker::TurnId;
use super::worker_task::WorkerTask;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a turn may take to be cancelled and closed, before it is forgotten.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl WorkerTask {
    pub(super) fn close(&mut self, turn: TurnId) {
        if let Some(entry) = self.turns.get_mut(&turn) {
            entry.closing.set(&self.status);
            entry.close();
        }
        self.settle(turn);
    }

    /// Makes the calls that cancel and close a turn, as far as they are due.
    pub(super) fn settle(&mut self, turn: TurnId) {
        while let Some(entry) = self.turns.get_mut(&turn) {
            match entry.next_closing_call(&self.values) {
                Closing::Call(call) => {
                    let id = self.writer.call(call, Pending::Closing { turn });
                    if let Some(entry) = self.turns.get_mut(&turn) {
                        entry.in_flight = id.is_some();
                    }
                }
                Closing::Wait => return,
                Closing::Done => self.forget(turn),
            }
        }
    }

    fn forget(&mut self, turn: TurnId) {
        if let Some(entry) = self.turns.remove(&turn) {
            if let Some(route) = &entry.route {
                self.routes.remove(route);
            }
            self.status.turns.fetch_sub(1, Ordering::Relaxed);
            if entry.closing.is_set() {
                self.status.closing.fetch_sub(1, Ordering::Relaxed);
            }
            self.status.changes.send_modify(|count| *count += 1);
        }
    }

    /// Closes turns that the process does not end, and forgets those that it does not close.
    pub(super) fn close_late_turns(&mut self) {
        let closed: Vec<TurnId> = self.turns.iter().filter(|(_, e)| e.closed_at.is_some()).map(|(t, _)| *t).collect();
        for turn in closed {
            // Also if no message of the turn arrives.
            self.turns.get_mut(&turn).map(TurnEntry::take_cancel_again);
            self.settle(turn);
        }
        let is_late = |entry: &TurnEntry| entry.closed_at.is_some_and(|at| at.elapsed() > CLOSE_TIMEOUT);
        let late: Vec<TurnId> = self.turns.iter().filter(|(_, e)| is_late(e)).map(|(turn, _)| *turn).collect();
        late.into_iter().for_each(|turn| self.forget(turn));
        let turns = &self.turns;
        self.writer.retain(|pending| pending.turn().is_none_or(|turn| turns.contains_key(&turn)));
    }
}
