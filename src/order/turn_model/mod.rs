//! A model of `turn/`: an automaton that accepts every sequence of moments a turn can emit under given policies. It may
//! accept more than that, never less; `tests/it/laws.rs` checks random turns against it.

mod choice;
mod items;
mod many_choices;
mod two_choices;

use super::Automaton;
use super::proof::{Counterexample, MomentNfa};
use crate::domain::policy::{AggregateUsage, EmptyMessageItem, OnEmpty, ReasoningPolicy, UsagePolicy};
use crate::domain::{MomentKind as M, Policies, Scope};
use choice::ChoiceModel;
use items::{MessageModel, ReasoningModel};
use many_choices::Precision;

/// The kinds of output that the backends of a mapping set can emit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputKinds {
    pub text: bool,
    pub refusal: bool,
    pub annotations: bool,
    pub summaries: bool,
    pub thoughts: bool,
    /// Reasoning without readable content.
    pub encrypted_reasoning: bool,
    pub tools: bool,
    pub usage: bool,
}

/// How many choices (`n`) a request can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceCount {
    One,
    Several,
}

/// The parameters that determine which sequences of moments are possible.
#[derive(Clone, Copy, Debug)]
pub struct TurnModel<'p> {
    pub policies: &'p Policies,
    pub output: OutputKinds,
    pub choices: ChoiceCount,
}

/// The phase of a turn; `T` is the state of a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TurnPhase<T> {
    NotStarted,
    Running(T),
    Ended,
}

/// The state of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ItemModel {
    New,
    Message(MessageModel),
    Reasoning(ReasoningModel),
    Call,
    Closed,
}

impl TurnModel<'_> {
    /// The possible sequences of one scope, reduced to the `visible` moments. Fewer moments make a smaller automaton.
    pub fn model(&self, scope: Scope, visible: &dyn Fn(M) -> bool) -> MomentNfa {
        match (scope, self.choices) {
            (Scope::Turn, ChoiceCount::One) => self.turn().project(visible),
            (Scope::Turn, ChoiceCount::Several) => many_choices::model(self, visible).0,
            (Scope::Choice, _) => self.choice().project(visible),
            (Scope::Item, _) => self.item().project(visible),
        }
    }

    /// A shortest possible sequence that violates the order. `None` if there is none, or if none is certain to be
    /// possible.
    pub fn counterexample(&self, scope: Scope, order: &Automaton) -> Option<Counterexample> {
        let visible = |moment: M| order.mentions(moment);
        match (scope, self.choices) {
            (Scope::Turn, ChoiceCount::Several) => {
                let (many, precision) = many_choices::model(self, &visible);
                let counterexample = many.counterexample(order)?;
                match precision {
                    Precision::Exact => Some(counterexample),
                    Precision::OverApproximation => two_choices::model(self, &visible).counterexample(order),
                }
            }
            (Scope::Turn, ChoiceCount::One) | (Scope::Choice | Scope::Item, _) => {
                self.model(scope, &visible).counterexample(order)
            }
        }
    }

    /// True if any turn can emit this moment.
    pub fn can_emit(&self, moment: M) -> bool {
        let output = self.output();
        let has_content = output.text || output.refusal || output.annotations;
        match moment {
            M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnFail | M::TurnEnd => true,
            M::ChoiceOpen | M::ChoiceFinish => true,
            M::MessageOpen | M::MessageClose => {
                has_content || self.policies.empty_message_item == EmptyMessageItem::Always
            }
            M::PartOpen | M::PartClose => has_content,
            M::TextDelta => output.text,
            M::RefusalDelta => output.refusal,
            M::Annotation => output.annotations,
            M::ReasoningOpen | M::ReasoningClose => output.summaries || output.thoughts || output.encrypted_reasoning,
            M::SummaryOpen | M::SummaryDelta | M::SummaryClose => output.summaries,
            M::ThoughtOpen | M::ThoughtDelta | M::ThoughtClose => output.thoughts,
            M::ToolOpen | M::ToolArgs | M::ToolClose => output.tools,
            M::Usage => self.endings().iter().any(|ending| ending.contains(&M::Usage)),
        }
    }

    fn turn(&self) -> MomentNfa {
        let next = |phase: &TurnPhase<ChoiceModel>| match phase {
            TurnPhase::NotStarted => {
                let mut steps = vec![(vec![M::TurnOpen, M::ChoiceOpen], TurnPhase::Running(ChoiceModel::default()))];
                steps.extend(self.empty_response().map(|moments| (moments, TurnPhase::Ended)));
                steps
            }
            TurnPhase::Running(choice) if choice.is_finished() => {
                self.endings().into_iter().map(|moments| (moments, TurnPhase::Ended)).collect()
            }
            TurnPhase::Running(choice) => {
                choice.steps(self).into_iter().map(|(moments, choice)| (moments, TurnPhase::Running(choice))).collect()
            }
            TurnPhase::Ended => Vec::new(),
        };
        MomentNfa::explore(TurnPhase::NotStarted, next, |phase| *phase == TurnPhase::Ended)
    }

    fn choice(&self) -> MomentNfa {
        let next = |phase: &TurnPhase<ChoiceModel>| match phase {
            TurnPhase::NotStarted => {
                let mut steps = vec![(vec![M::ChoiceOpen], TurnPhase::Running(ChoiceModel::default()))];
                let empty = self.policies.on_empty == OnEmpty::Completed;
                steps.extend(empty.then(|| (vec![M::ChoiceOpen, M::ChoiceFinish], TurnPhase::Ended)));
                steps
            }
            TurnPhase::Running(choice) => {
                choice.steps(self).into_iter().map(|(moments, choice)| (moments, TurnPhase::Running(choice))).collect()
            }
            TurnPhase::Ended => Vec::new(),
        };
        MomentNfa::explore(TurnPhase::NotStarted, next, |phase| match phase {
            TurnPhase::NotStarted => false,
            TurnPhase::Running(choice) => choice.is_finished(),
            TurnPhase::Ended => true,
        })
    }

    /// The moments of one choice after its `choice.open`.
    fn open_choice(&self) -> MomentNfa {
        MomentNfa::explore(ChoiceModel::default(), |choice| choice.steps(self), ChoiceModel::is_finished)
    }

    fn item(&self) -> MomentNfa {
        let next = |item: &ItemModel| {
            let mut steps: Vec<(Vec<M>, ItemModel)> = Vec::new();
            match *item {
                ItemModel::New => {
                    let empty = self.policies.empty_message_item == EmptyMessageItem::Always;
                    if empty || self.output().text || self.output().refusal || self.output().annotations {
                        steps.push((vec![M::MessageOpen], ItemModel::Message(MessageModel::Empty)));
                    }
                    if self.output().summaries || self.output().thoughts || self.output().encrypted_reasoning {
                        steps.push((vec![M::ReasoningOpen], ItemModel::Reasoning(ReasoningModel::Encrypted)));
                    }
                    if self.output().tools {
                        steps.push((vec![M::ToolOpen], ItemModel::Call));
                    }
                }
                ItemModel::Message(message) => {
                    steps.extend(
                        message.receive(self.output()).into_iter().map(|(moments, m)| (moments, ItemModel::Message(m))),
                    );
                    let empty = self.policies.empty_message_item == EmptyMessageItem::Always;
                    if message != MessageModel::Empty || empty {
                        steps.push((message.close().to_vec(), ItemModel::Closed));
                    }
                }
                ItemModel::Reasoning(reasoning) => {
                    steps.extend(
                        reasoning
                            .receive(self.output())
                            .into_iter()
                            .map(|(moments, r)| (moments, ItemModel::Reasoning(r))),
                    );
                    if reasoning != ReasoningModel::Encrypted || self.output().encrypted_reasoning {
                        steps.push((reasoning.close().to_vec(), ItemModel::Closed));
                    }
                }
                ItemModel::Call => {
                    steps.push((vec![M::ToolArgs], ItemModel::Call));
                    steps.push((vec![M::ToolClose], ItemModel::Closed));
                }
                ItemModel::Closed => {}
            }
            steps
        };
        MomentNfa::explore(ItemModel::New, next, |item| *item == ItemModel::Closed)
    }

    fn closes_when_complete(&self) -> bool {
        self.policies.closes_when_complete()
    }

    /// Dropped reasoning has no moments.
    fn output(&self) -> OutputKinds {
        match self.policies.reasoning {
            ReasoningPolicy::Keep => self.output,
            ReasoningPolicy::Drop => {
                OutputKinds { summaries: false, thoughts: false, encrypted_reasoning: false, ..self.output }
            }
        }
    }

    /// The sequences of a completed body without output, if the policy `on_empty` allows one.
    fn empty_response(&self) -> impl Iterator<Item = Vec<M>> {
        let allowed = self.policies.on_empty == OnEmpty::Completed;
        let endings = if allowed { self.endings() } else { Vec::new() };
        endings.into_iter().map(|ending| [&[M::TurnOpen, M::ChoiceOpen, M::ChoiceFinish], ending.as_slice()].concat())
    }

    /// The possible sequences after the last finish, with usage or without.
    fn endings(&self) -> Vec<Vec<M>> {
        let counted = vec![M::TurnFinish, M::Usage, M::TurnClose, M::TurnEnd];
        let uncounted = vec![M::TurnFinish, M::TurnClose, M::TurnEnd];
        match self.policies.usage {
            UsagePolicy::Zeros | UsagePolicy::Estimate => vec![counted],
            UsagePolicy::AsReported
                if self.output().usage || self.policies.aggregate_usage == AggregateUsage::Zeros =>
            {
                vec![uncounted, counted]
            }
            UsagePolicy::AsReported => vec![uncounted],
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/order_turn_model.rs"]
mod tests;
