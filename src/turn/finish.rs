//! How a turn ends: the finish of each choice, the end of the stream, or a fault. No moment follows.

use super::{OnMoment, Turn};
use crate::domain::policy::{EmptyCompletion, FinishWithoutCalls, OnEmpty, UnknownFinish};
use crate::domain::{Fault, FaultKind, Finish, HintStrength, ItemState, Moment, MomentKind};

/// The characters of a backend's word that a message contains.
const MAX_WORD: usize = 40;
/// The signs of finish reasons that are kept: two for each choice.
const MAX_HINTS: usize = 256;

impl Turn {
    pub(super) fn finish(&mut self, choice: Option<usize>, reason: Finish, on_moment: &mut OnMoment) {
        if !self.ensure_choice(choice.unwrap_or(0), on_moment) {
            return;
        }
        let choices = match choice {
            Some(one) => one..one + 1,
            None => 0..self.choices.len(),
        };
        for index in choices {
            if self.ended || (choice.is_some() && self.is_late(index)) || self.choices[index].finished {
                continue;
            }
            self.finish_choice(index, reason, on_moment);
        }
    }

    /// A sign of the finish reason. Only the first of each strength counts.
    pub(super) fn hint(&mut self, choice: Option<usize>, reason: Option<Finish>, strength: HintStrength) {
        let is_known = self.hints.iter().any(|(of, known, _)| *of == choice && *known == strength);
        if let Some(reason) = reason.filter(|_| !is_known && self.hints.len() < MAX_HINTS) {
            self.hints.push((choice, strength, reason));
        }
    }

    /// The reason that a sign gave for the choice, or for all choices.
    pub(super) fn hinted(&self, choice: Option<usize>, strength: HintStrength) -> Option<Finish> {
        let of_choice = self
            .hints
            .iter()
            .filter(|(of, known, _)| *known == strength && (of.is_none() || choice.is_none() || *of == choice));
        of_choice.map(|(_, _, reason)| *reason).next()
    }

    /// A finish with a word that the backend's mapping does not know: a sign, or the policy `unknown_finish`, decides.
    pub(super) fn finish_unknown(&mut self, choice: Option<usize>, word: &str, on_moment: &mut OnMoment) {
        if choice.is_some_and(|choice| self.is_late(choice)) {
            return;
        }
        let hinted = self.hinted(choice, HintStrength::Strong).or_else(|| self.hinted(choice, HintStrength::Weak));
        if let Some(reason) = hinted {
            self.finish(choice, reason, on_moment);
            return;
        }
        let has_output = self.state.items.iter().any(|item| choice.is_none_or(|choice| item.choice == choice))
            || self.choices.iter().any(|choice| choice.legacy_call.is_some());
        match self.policies.unknown_finish {
            UnknownFinish::Stop if has_output => self.finish(choice, Finish::Stop, on_moment),
            UnknownFinish::Stop | UnknownFinish::Fail => {
                let word: String = word.chars().take(MAX_WORD).collect();
                let message = format!("the backend finished with `{word}`, which its mapping does not know");
                self.fail(Fault::new(FaultKind::Backend, message), on_moment);
            }
        }
    }

    fn finish_choice(&mut self, choice: usize, reason: Finish, on_moment: &mut OnMoment) {
        self.use_legacy_call(choice, on_moment);
        // Here and below: a call that is complete only now may have been the last that the choice may make.
        if self.has_finished(choice) {
            return;
        }
        let finish = match self.check_output(choice).and_then(|()| self.check_calls(choice, reason)) {
            Ok(reason) => self.resolve_finish(choice, reason),
            Err(fault) => {
                self.fail(fault, on_moment);
                return;
            }
        };
        // Clients have no finish reason for these, so the turn fails.
        if matches!(finish, Finish::Cancelled | Finish::Error) {
            let message = match finish {
                Finish::Cancelled => "the backend cancelled the turn",
                _ => "the backend ended the turn with an error",
            };
            self.fail(Fault::new(FaultKind::Backend, message), on_moment);
            return;
        }
        let truncated = finish.is_truncated();
        self.select_calls(choice);
        // Content that was held back follows the open call. Its arguments are incomplete, so it may be truncated.
        if !self.choices[choice].held_back.is_empty() {
            if !self.close_calls(choice, truncated, on_moment) {
                return;
            }
            self.release_held_back(choice, on_moment);
            if self.has_finished(choice) {
                return;
            }
        }
        self.settle_at_finish(choice, truncated, on_moment);
        if self.has_finished(choice) {
            return;
        }
        self.ensure_message(choice, on_moment);
        let calls_open = self.has_open_call(choice);
        let state = if truncated && !calls_open { ItemState::Truncated } else { ItemState::Done };
        self.close_reasoning(choice, state, on_moment);
        self.close_message(choice, state, on_moment);
        if !self.close_calls(choice, truncated, on_moment) || self.has_finished(choice) {
            return;
        }
        self.choices[choice].finished = true;
        self.state.choices[choice].finish = Some(finish);
        on_moment(&self.state, &Moment::choice(MomentKind::ChoiceFinish, choice));
    }

    fn has_finished(&self, choice: usize) -> bool {
        self.ended || self.choices[choice].finished
    }

    /// What a client would see as an empty success is a fault: nothing of the response was understood, or it is an
    /// answer tool without arguments.
    fn check_output(&self, choice: usize) -> Result<(), Fault> {
        if self.has_unread && self.is_empty(choice) {
            return Err(Fault::new(FaultKind::Malformed, "nothing in the backend's response could be read"));
        }
        if self.has_only_answer_calls(choice) && self.is_empty(choice) {
            return Err(Fault::new(FaultKind::Malformed, "the backend's answer is empty"));
        }
        Ok(())
    }

    fn is_empty(&self, choice: usize) -> bool {
        !self.has_calls(choice) && self.state.items_of(choice).next().is_none()
    }

    /// The finish reason, if calls and finish fit together. What a client would see as an empty success is a fault: a
    /// finish for calls that were not made, or calls that the dialect cannot represent.
    fn check_calls(&self, choice: usize, reason: Finish) -> Result<Finish, Fault> {
        let has_text = || self.state.items_of(choice).flat_map(|i| &i.parts).any(|p| p.kind.is_output());
        if !self.has_calls(choice) {
            let is_for_calls = matches!(reason, Finish::ToolCalls | Finish::FunctionCall);
            return match self.policies.finish_without_calls {
                _ if !is_for_calls || self.has_only_answer_calls(choice) => Ok(reason),
                FinishWithoutCalls::Stop if has_text() => Ok(Finish::Stop),
                FinishWithoutCalls::Stop | FinishWithoutCalls::Fail => {
                    let message = format!("the backend finished with `{}` but made no call", reason.name());
                    Err(Fault::new(FaultKind::Malformed, message))
                }
            };
        }
        if self.represents_calls || has_text() {
            return Ok(reason);
        }
        let names = self.call_names(choice).join("`, `");
        let message = format!("the model called `{names}` instead of answering with text; this API has no tool calls");
        Err(Fault { code: Some("unsupported_tool_call".into()), ..Fault::new(FaultKind::Backend, message) })
    }

    /// The finish reason by the policy `finish_precedence`. Some backends report "stop" after tool calls, so calls
    /// count as a reason of their own.
    fn resolve_finish(&self, choice: usize, reason: Finish) -> Finish {
        let of_calls = self.has_calls(choice).then(|| self.finish_of_calls(choice));
        let reason = match reason {
            Finish::ToolCalls | Finish::FunctionCall if self.has_only_answer_calls(choice) => Finish::Stop,
            Finish::ToolCalls | Finish::FunctionCall => of_calls.unwrap_or(reason),
            Finish::Stop if self.policies.empty_completion == EmptyCompletion::Length && self.is_empty(choice) => {
                Finish::Length
            }
            other => other,
        };
        let candidates = [Some(reason), of_calls];
        let ranked = self.policies.finish_precedence.iter().copied();
        ranked.filter(|f| candidates.contains(&Some(*f))).chain([reason]).next().unwrap_or(reason)
    }

    fn has_open_call(&self, choice: usize) -> bool {
        self.state.items_of(choice).any(|i| i.is_call() && i.state == ItemState::Open)
    }

    /// The stream ended, by the framing's end marker or at the end of the bytes.
    pub(super) fn end(&mut self, on_moment: &mut OnMoment) {
        if self.choices.is_empty() {
            if !(self.single_body && self.policies.on_empty == OnEmpty::Completed) {
                self.fail(Fault::new(FaultKind::Empty, "the backend ended without an answer"), on_moment);
                return;
            }
            // A completed response without any output item.
            self.ensure_choice(0, on_moment);
            self.choices[0].finished = true;
            self.state.choices[0].finish = Some(Finish::Stop);
            on_moment(&self.state, &Moment::choice(MomentKind::ChoiceFinish, 0));
        }
        if self.choices.iter().any(|c| !c.finished) {
            self.fail(
                Fault::new(FaultKind::Truncated, "the backend's response ended before it was complete"),
                on_moment,
            );
            return;
        }
        if self.choices.len() < self.requested_choices {
            let message =
                format!("the backend returned {} of {} requested choices", self.choices.len(), self.requested_choices);
            self.fail(Fault::new(FaultKind::Truncated, message).param("n"), on_moment);
            return;
        }
        let finishes: Vec<Finish> = self.state.choices.iter().filter_map(|c| c.finish).collect();
        let ranked = self.policies.finish_precedence.iter().copied();
        self.state.finish = ranked.filter(|f| finishes.contains(f)).chain(finishes.iter().copied()).next();
        self.state.ended = Some(self.state.created + self.state.elapsed_ms / 1000);
        on_moment(&self.state, &Moment::turn(MomentKind::TurnFinish));
        self.state.usage = self.final_usage();
        if self.state.usage.is_some() {
            on_moment(&self.state, &Moment::turn(MomentKind::Usage));
        }
        on_moment(&self.state, &Moment::turn(MomentKind::TurnClose));
        self.ended = true;
        on_moment(&self.state, &Moment::turn(MomentKind::TurnEnd));
    }
}
