//! Turns that do not end well: failed by a fault or a violation, or truncated.

use super::{OnMoment, Turn};
use crate::domain::policy::OnPartial;
use crate::domain::{Fault, Finish, ItemState, Moment, MomentKind};

impl Turn {
    /// Ends the turn with a fault. Moments that were already emitted stay valid.
    pub fn fail(&mut self, fault: Fault, on_moment: &mut OnMoment) {
        if self.ended {
            self.late_events += 1;
            return;
        }
        if self.headers_sent && !self.opened && !self.ensure_choice(0, on_moment) {
            return;
        }
        if self.finish_despite(&fault, on_moment) {
            return;
        }
        let fault = match &self.reporter {
            Some(reporter) => reporter.report(fault),
            None => fault,
        };
        let incomplete = self.policies.on_partial == OnPartial::Incomplete && !self.truncating;
        if self.single_body && self.opened && fault.is_partial() && incomplete {
            self.truncate(on_moment);
            return;
        }
        if self.usage.is_known() || self.aggregated {
            self.state.usage = self.final_usage();
        }
        for item in self.state.items.iter_mut().filter(|i| i.state == ItemState::Open) {
            item.state = ItemState::Failed;
        }
        self.state.ended = Some(self.state.created + self.state.elapsed_ms / 1000);
        self.state.error = Some(fault);
        self.ended = true;
        on_moment(&self.state, &Moment::turn(MomentKind::TurnFail));
    }

    /// Fails the turn because a frame violates its schema or order. This applies even while the end of the turn is
    /// being emitted: a client that gets neither an end nor a failure would take a partial response for a complete one.
    pub fn fail_on_violation(&mut self, fault: Fault, on_moment: &mut OnMoment) {
        if self.state.error.is_some() {
            return;
        }
        self.ended = false;
        self.fail(fault, on_moment);
    }

    /// Ends the turn as if the backend had reached its token limit: the content so far is kept, and each open choice
    /// finishes with `length`.
    pub fn truncate(&mut self, on_moment: &mut OnMoment) {
        if self.ended || self.choices.is_empty() {
            return;
        }
        self.truncating = true;
        self.finish(None, Finish::Length, on_moment);
        while !self.ended && self.choices.len() < self.requested_choices {
            let next = self.choices.len();
            if !self.ensure_choice(next, on_moment) {
                return;
            }
            self.finish(Some(next), Finish::Length, on_moment);
        }
        if !self.ended {
            self.end(on_moment);
        }
    }
}
