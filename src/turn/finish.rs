//! How a turn ends: the finish of each choice, the end of the stream, a fault. After that nothing is told.

use super::{Tell, Turn};
use crate::domain::policy::{BodyUsage, OnEmpty, OnPartial, UsagePolicy};
use crate::domain::{Fault, FaultKind, Finish, ItemState, Moment, MomentKind, Usage};

impl Turn {
    pub(super) fn finish(&mut self, choice: Option<usize>, reason: Finish, tell: &mut Tell) {
        if !self.reach(choice.unwrap_or(0), tell) {
            return;
        }
        let choices = match choice {
            Some(one) => one..one + 1,
            None => 0..self.lanes.len(),
        };
        for index in choices {
            if self.over || (choice.is_some() && self.is_late(index)) || self.lanes[index].finished {
                continue;
            }
            self.finish_choice(index, reason, tell);
        }
    }

    fn finish_choice(&mut self, choice: usize, reason: Finish, tell: &mut Tell) {
        let finish = self.strongest(choice, reason);
        // No client has a word for an answer that was taken back: it is a failure.
        if matches!(finish, Finish::Cancelled | Finish::Error) {
            let message = match finish {
                Finish::Cancelled => "the backend cancelled the turn",
                _ => "the backend ended the turn with an error",
            };
            self.fail(Fault::new(FaultKind::Backend, message), tell);
            return;
        }
        self.ensure_message(choice, tell);
        let cut = finish.is_cut();
        let calls_open = self.has_open_call(choice);
        let how = if cut && !calls_open { ItemState::Cut } else { ItemState::Done };
        self.close_reasoning(choice, how, tell);
        self.close_message(choice, how, tell);
        if !self.close_calls(choice, cut, tell) {
            return;
        }
        self.lanes[choice].finished = true;
        self.state.choices[choice].finish = Some(finish);
        tell(&self.state, &Moment::choice(MomentKind::ChoiceFinish, choice));
    }

    /// A backend that made calls and says "stop" meant the calls, unless the policy ranks them lower.
    fn strongest(&self, choice: usize, reason: Finish) -> Finish {
        let reason = match reason {
            Finish::ToolCalls if self.only_answered(choice) => Finish::Stop,
            other => other,
        };
        let said = [Some(reason), self.has_calls(choice).then_some(Finish::ToolCalls)];
        let ranked = self.policies.finish_precedence.iter().copied();
        ranked.filter(|f| said.contains(&Some(*f))).chain([reason]).next().unwrap_or(reason)
    }

    fn has_open_call(&self, choice: usize) -> bool {
        self.state.items_of(choice).any(|i| i.is_call() && i.state == ItemState::Open)
    }

    /// The framing's end marker, or the end of the bytes.
    pub(super) fn end(&mut self, tell: &mut Tell) {
        if self.lanes.is_empty() {
            if !(self.whole && self.policies.on_empty == OnEmpty::Completed) {
                self.fail(Fault::new(FaultKind::Empty, "the backend ended without an answer"), tell);
                return;
            }
            // An answer without output, not even an empty message.
            self.reach(0, tell);
            self.lanes[0].finished = true;
            self.state.choices[0].finish = Some(Finish::Stop);
            tell(&self.state, &Moment::choice(MomentKind::ChoiceFinish, 0));
        }
        if self.lanes.iter().any(|l| !l.finished) {
            self.fail(Fault::new(FaultKind::Truncated, "the backend's answer ended in the middle"), tell);
            return;
        }
        if self.lanes.len() < self.asked {
            let message = format!("the backend gave {} of {} choices", self.lanes.len(), self.asked);
            self.fail(Fault::new(FaultKind::Truncated, message).param("n"), tell);
            return;
        }
        let finishes: Vec<Finish> = self.state.choices.iter().filter_map(|c| c.finish).collect();
        let ranked = self.policies.finish_precedence.iter().copied();
        self.state.finish = ranked.filter(|f| finishes.contains(f)).chain(finishes.iter().copied()).next();
        self.state.ended = Some(self.state.created + self.state.elapsed_ms / 1000);
        tell(&self.state, &Moment::turn(MomentKind::TurnFinish));
        self.state.usage = self.counted();
        if self.state.usage.is_some() {
            tell(&self.state, &Moment::turn(MomentKind::Usage));
        }
        tell(&self.state, &Moment::turn(MomentKind::TurnClose));
        self.over = true;
        tell(&self.state, &Moment::turn(MomentKind::TurnEnd));
    }

    fn counted(&self) -> Option<Usage> {
        let reported = self.usage.is_known().then_some(self.usage);
        match self.policies.usage {
            UsagePolicy::AsReported if self.bridged && self.policies.body_usage == BodyUsage::Zeros => {
                Some(reported.unwrap_or(Usage::ZERO))
            }
            UsagePolicy::AsReported => reported,
            UsagePolicy::Zeros => Some(reported.unwrap_or(Usage::ZERO)),
            UsagePolicy::Estimate => Some(reported.unwrap_or_else(|| self.estimate())),
        }
    }

    /// Four characters a token: coarse, but never called a report.
    fn estimate(&self) -> Usage {
        let tokens = |chars: usize| chars.div_ceil(4) as u64;
        let output: usize = self
            .state
            .items
            .iter()
            .map(|i| {
                let texts = i.parts.iter().chain(&i.summaries).map(|p| p.text.chars().count()).sum::<usize>();
                texts + i.arguments.chars().count()
            })
            .sum();
        let (input, output) = (tokens(self.asked_chars), tokens(output));
        Usage { input: Some(input), output: Some(output), total: Some(input + output), ..Usage::ZERO }
    }

    /// Ends the turn wherever it stands. What was said so far stays said.
    pub fn fail(&mut self, fault: Fault, tell: &mut Tell) {
        if self.over {
            self.late += 1;
            return;
        }
        if self.head_left && !self.opened && !self.reach(0, tell) {
            return;
        }
        let incomplete = self.policies.on_partial == OnPartial::Incomplete && !self.cutting;
        if self.whole && self.opened && fault.is_partial() && incomplete {
            self.cut_short(tell);
            return;
        }
        if self.usage.is_known() || self.bridged {
            self.state.usage = self.counted();
        }
        for item in self.state.items.iter_mut().filter(|i| i.state == ItemState::Open) {
            item.state = ItemState::Failed;
        }
        self.state.ended = Some(self.state.created + self.state.elapsed_ms / 1000);
        self.state.error = Some(fault);
        self.over = true;
        tell(&self.state, &Moment::turn(MomentKind::TurnFail));
    }

    /// What was to be told may not leave. The turn fails, also where it was telling its end: a client that hears neither end
    /// nor failure takes half an answer for a whole one.
    pub fn breach(&mut self, fault: Fault, tell: &mut Tell) {
        if self.state.error.is_some() {
            return;
        }
        self.over = false;
        self.fail(fault, tell);
    }

    /// Ends the turn as if the backend had run out of room: what came is kept, and the client is told that it is cut.
    pub fn cut_short(&mut self, tell: &mut Tell) {
        if self.over || self.lanes.is_empty() {
            return;
        }
        self.cutting = true;
        self.finish(None, Finish::Length, tell);
        while !self.over && self.lanes.len() < self.asked {
            let next = self.lanes.len();
            if !self.reach(next, tell) {
                return;
            }
            self.finish(Some(next), Finish::Length, tell);
        }
        if !self.over {
            self.end(tell);
        }
    }
}
