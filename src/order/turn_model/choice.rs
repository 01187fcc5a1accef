//! The states of one choice between `choice.open` and `choice.finish`: which items can be open at the same time, and
//! what closes them. Each kind of step corresponds to one code path of `turn/`.

use super::items::{MessageModel, ReasoningModel};
use super::{Tally, TurnModel};
use crate::domain::MomentKind as M;
use crate::domain::policy::{EmptyMessageItem, ItemsOverlap};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ChoiceModel {
    phase: ChoicePhase,
    message: MessageModel,
    /// A message was opened before, for the policy `empty_message_item`.
    has_message: bool,
    reasoning: ReasoningModel,
    /// How many calls are open.
    calls: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum ChoicePhase {
    #[default]
    Running,
    /// Message and reasoning are closed; the remaining calls are emitted one after the other.
    Closing,
    Finished,
}

type Transitions = Vec<(Vec<M>, ChoiceModel)>;

impl ChoiceModel {
    pub fn is_finished(&self) -> bool {
        self.phase == ChoicePhase::Finished
    }

    /// True while the rest of the choice is emitted without interruption by other choices.
    pub fn is_closing(&self) -> bool {
        self.phase == ChoicePhase::Closing
    }

    pub fn steps(&self, turn_model: &TurnModel) -> Transitions {
        let mut steps = Vec::new();
        match self.phase {
            ChoicePhase::Running => {
                // With `items_overlap: serial`, text and reasoning wait until the call is closed.
                let serial = turn_model.policies.items_overlap == ItemsOverlap::Serial;
                if !serial || self.calls == Tally::Zero {
                    self.content_steps(turn_model, &mut steps);
                    self.reasoning_steps(turn_model, &mut steps);
                }
                self.call_steps(turn_model, &mut steps);
                self.close_steps(turn_model, &mut steps);
                steps.push(self.finish(turn_model));
            }
            ChoicePhase::Closing => self.closing_steps(turn_model, &mut steps),
            ChoicePhase::Finished => {}
        }
        steps
    }

    /// Text, a refusal or an annotation arrives.
    fn content_steps(&self, turn_model: &TurnModel, steps: &mut Transitions) {
        for (moments, message) in self.message.receive(turn_model.output()) {
            steps.push((moments, ChoiceModel { message, ..*self }));
        }
        // With `CloseItems::AtFinish` all content belongs to one message, whatever item the backend assigns it to.
        if self.message == MessageModel::Closed || turn_model.closes_when_complete() {
            let (opening, opened) = self.open_message();
            for (moments, message) in opened.message.receive(turn_model.output()) {
                steps.push(([opening.as_slice(), &moments].concat(), ChoiceModel { message, ..opened }));
            }
        }
    }

    fn open_message(&self) -> (Vec<M>, ChoiceModel) {
        let moments = [self.message.close(), self.reasoning.close(), &[M::MessageOpen]].concat();
        (
            moments,
            ChoiceModel { message: MessageModel::Empty, has_message: true, reasoning: ReasoningModel::Closed, ..*self },
        )
    }

    /// Policy `empty_message_item`.
    fn ensure_message(&self, turn_model: &TurnModel) -> (Vec<M>, ChoiceModel) {
        let wanted = turn_model.policies.empty_message_item == EmptyMessageItem::Always;
        if wanted && !self.has_message { self.open_message() } else { (Vec::new(), *self) }
    }

    /// Another kind of item opens: the policy `close_items` decides whether the message closes.
    fn close_message_by_policy(&self, turn_model: &TurnModel) -> (Vec<M>, ChoiceModel) {
        match turn_model.closes_when_complete() {
            true => (self.message.close().to_vec(), ChoiceModel { message: MessageModel::Closed, ..*self }),
            false => (Vec::new(), *self),
        }
    }

    fn reasoning_steps(&self, turn_model: &TurnModel, steps: &mut Transitions) {
        for (moments, reasoning) in self.reasoning.receive(turn_model.output()) {
            steps.push((moments, ChoiceModel { reasoning, ..*self }));
        }
        let (closing_message, rest) = self.close_message_by_policy(turn_model);
        let opening = [self.reasoning.close(), &closing_message, &[M::ReasoningOpen]].concat();
        if turn_model.output().encrypted_reasoning {
            steps.push((opening.clone(), ChoiceModel { reasoning: ReasoningModel::Encrypted, ..rest }));
        }
        for (moments, reasoning) in ReasoningModel::Encrypted.receive(turn_model.output()) {
            steps.push(([opening.as_slice(), &moments].concat(), ChoiceModel { reasoning, ..rest }));
        }
    }

    fn call_steps(&self, turn_model: &TurnModel, steps: &mut Transitions) {
        if !turn_model.output().tools {
            return;
        }
        if self.calls == Tally::Zero || turn_model.policies.items_overlap == ItemsOverlap::Interleaved {
            let (ensuring, ensured) = self.ensure_message(turn_model);
            let (closing_message, rest) = ensured.close_message_by_policy(turn_model);
            let moments = [&ensuring, &closing_message, rest.reasoning.close(), &[M::ToolOpen]].concat();
            let calls = self.calls.after_one_more();
            steps.push((moments, ChoiceModel { reasoning: ReasoningModel::Closed, calls, ..rest }));
        }
        if self.calls != Tally::Zero {
            steps.push((vec![M::ToolArgs], *self));
        }
        if turn_model.closes_when_complete() {
            for calls in self.calls.after_one_less() {
                steps.push((vec![M::ToolClose], ChoiceModel { calls: *calls, ..*self }));
            }
        }
    }

    /// The backend reports an item as complete.
    fn close_steps(&self, turn_model: &TurnModel, steps: &mut Transitions) {
        if !turn_model.closes_when_complete() {
            return;
        }
        if self.message != MessageModel::Closed {
            steps.push((self.message.close().to_vec(), ChoiceModel { message: MessageModel::Closed, ..*self }));
        }
        if self.reasoning != ReasoningModel::Closed {
            steps.push((self.reasoning.close().to_vec(), ChoiceModel { reasoning: ReasoningModel::Closed, ..*self }));
        }
    }

    fn finish(&self, turn_model: &TurnModel) -> (Vec<M>, ChoiceModel) {
        let (ensuring, ensured) = self.ensure_message(turn_model);
        let moments = [&ensuring, ensured.reasoning.close(), ensured.message.close()].concat();
        let (message, reasoning) = (MessageModel::Closed, ReasoningModel::Closed);
        (moments, ChoiceModel { phase: ChoicePhase::Closing, message, reasoning, ..ensured })
    }

    fn closing_steps(&self, turn_model: &TurnModel, steps: &mut Transitions) {
        for calls in self.calls.after_one_less() {
            let closed = ChoiceModel { calls: *calls, ..*self };
            steps.push((vec![M::ToolClose], closed));
            steps.push((vec![M::ToolArgs, M::ToolClose], closed));
        }
        // A call that was held back opens now; with serial calls only after the open one has closed.
        let waits = turn_model.policies.items_overlap != ItemsOverlap::Interleaved && self.calls != Tally::Zero;
        if turn_model.output().tools && !waits {
            steps.push((vec![M::ToolOpen, M::ToolClose], *self));
            steps.push((vec![M::ToolOpen, M::ToolArgs, M::ToolClose], *self));
        }
        if self.calls == Tally::Zero {
            steps.push((vec![M::ChoiceFinish], ChoiceModel { phase: ChoicePhase::Finished, ..ChoiceModel::default() }));
        }
    }
}
