//! A model of `turn/`: an automaton that accepts every sequence of moments a turn can emit under given policies. It may
//! accept more than that, never less; `tests/it/laws.rs` checks random turns against it.

mod choice;
mod items;
mod many_choices;
mod two_choices;

use super::Automaton;
use super::proof::{Counterexample, MomentNfa};
use crate::domain::policy::{EmptyMessageItem, OnEmpty, ReasoningPolicy, UsagePolicy};
use crate::domain::{MomentKind as M, Policies, Scope, WorkBudget};
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

/// How many, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Tally {
    #[default]
    Zero,
    One,
    Many,
}

impl Tally {
    fn after_one_more(self) -> Tally {
        match self {
            Tally::Zero => Tally::One,
            Tally::One | Tally::Many => Tally::Many,
        }
    }

    /// The possible tallies after there is one less.
    fn after_one_less(self) -> &'static [Tally] {
        match self {
            Tally::Zero => &[],
            Tally::One => &[Tally::Zero],
            Tally::Many => &[Tally::One, Tally::Many],
        }
    }
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
    pub fn counterexample(&self, scope: Scope, order: &Automaton, budget: &WorkBudget) -> Option<Counterexample> {
        let visible = |moment: M| order.mentions(moment);
        match (scope, self.choices) {
            (Scope::Turn, ChoiceCount::Several) => {
                let (many, precision) = many_choices::model(self, &visible);
                let counterexample = many.counterexample(order, budget)?;
                match precision {
                    Precision::Exact => Some(counterexample),
                    Precision::OverApproximation => two_choices::model(self, &visible).counterexample(order, budget),
                }
            }
            (Scope::Turn, ChoiceCount::One) | (Scope::Choice | Scope::Item, _) => {
                self.model(scope, &visible).counterexample(order, budget)
            }
        }
    }

    /// True if any turn can emit this moment.
    pub fn can_emit(&self, moment: M) -> bool {
        let output = self.output();
        let has_content = output.text || output.refusal || output.annotations;
        match moment {
            M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnFail | M::TurnEnd => true,
            M::ChoiceOpen | M::ChoiceFinish | M::Idle => true,
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
            M::Usage => match self.policies.usage {
                UsagePolicy::Zeros | UsagePolicy::Estimate => true,
                UsagePolicy::AsReported => output.usage,
            },
        }
    }

    fn turn(&self) -> MomentNfa {
        let next = |phase: &TurnPhase<ChoiceModel>| match phase {
            TurnPhase::NotStarted => self.openings(TurnPhase::Running(ChoiceModel::default()), TurnPhase::Ended),
            TurnPhase::Running(choice) if choice.is_finished() => {
                self.endings().map(|moments| (moments, TurnPhase::Ended)).collect()
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
        let output = self.output();
        let next = |item: &ItemModel| {
            let mut steps: Vec<(Vec<M>, ItemModel)> = Vec::new();
            match *item {
                ItemModel::New => {
                    let kinds = [
                        (M::MessageOpen, ItemModel::Message(MessageModel::Empty)),
                        (M::ReasoningOpen, ItemModel::Reasoning(ReasoningModel::Encrypted)),
                        (M::ToolOpen, ItemModel::Call),
                    ];
                    let possible = kinds.into_iter().filter(|(open, _)| self.can_emit(*open));
                    steps.extend(possible.map(|(open, item)| (vec![open], item)));
                }
                ItemModel::Message(message) => {
                    let received = message.receive(output).into_iter();
                    steps.extend(received.map(|(moments, message)| (moments, ItemModel::Message(message))));
                    let empty = self.policies.empty_message_item == EmptyMessageItem::Always;
                    if message != MessageModel::Empty || empty {
                        steps.push((message.close().to_vec(), ItemModel::Closed));
                    }
                }
                ItemModel::Reasoning(reasoning) => {
                    let received = reasoning.receive(output).into_iter();
                    steps.extend(received.map(|(moments, reasoning)| (moments, ItemModel::Reasoning(reasoning))));
                    if reasoning != ReasoningModel::Encrypted || output.encrypted_reasoning {
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

    /// The steps that open a turn: to `running`, or, if the policy `on_empty` allows a completed body without output, to
    /// `ended`.
    fn openings<S: Clone>(&self, running: S, ended: S) -> Vec<(Vec<M>, S)> {
        let allowed = self.policies.on_empty == OnEmpty::Completed;
        let empty = |ending: Vec<M>| [&[M::TurnOpen, M::ChoiceOpen, M::ChoiceFinish], ending.as_slice()].concat();
        let empty_responses = self.endings().filter(|_| allowed).map(|ending| (empty(ending), ended.clone()));
        [(vec![M::TurnOpen, M::ChoiceOpen], running)].into_iter().chain(empty_responses).collect()
    }

    /// The possible sequences after the last finish, with usage or without.
    fn endings(&self) -> impl Iterator<Item = Vec<M>> {
        let uncounted = vec![M::TurnFinish, M::TurnClose, M::TurnEnd];
        let counted = vec![M::TurnFinish, M::Usage, M::TurnClose, M::TurnEnd];
        let can_lack_usage = self.policies.usage == UsagePolicy::AsReported;
        can_lack_usage.then_some(uncounted).into_iter().chain(self.can_emit(M::Usage).then_some(counted))
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/order_turn_model.rs"]
mod tests;
