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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::order::Automaton;
    use crate::order::proof::Unexpected;

    const ALL: OutputKinds = OutputKinds {
        text: true,
        refusal: true,
        annotations: true,
        summaries: true,
        thoughts: true,
        encrypted_reasoning: true,
        tools: true,
        usage: true,
    };
    const TEXT: OutputKinds = OutputKinds {
        text: true,
        refusal: false,
        annotations: false,
        summaries: false,
        thoughts: false,
        encrypted_reasoning: false,
        tools: false,
        usage: false,
    };

    fn policies(settings: &[(&str, &str)]) -> Policies {
        let mut policies = Policies::default();
        settings.iter().for_each(|(name, value)| policies.set(name, value));
        policies
    }

    /// The counterexample as text, the unexpected moment last; empty if there is none.
    fn counterexample(
        settings: &[(&str, &str)],
        output: OutputKinds,
        choices: ChoiceCount,
        scope: Scope,
        order: &str,
    ) -> String {
        let policies = policies(settings);
        let order = Automaton::parse(order).unwrap();
        let turn_model = TurnModel { policies: &policies, output, choices };
        let Some(counterexample) = turn_model.counterexample(scope, &order) else { return String::new() };
        let last = match counterexample.unexpected {
            Unexpected::Moment(moment) => moment.name(),
            Unexpected::End => "end",
        };
        counterexample.path.iter().map(|m| m.name()).chain([last]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_narrowest_orders_are_proven() {
        let turn = "turn.open choice.open choice.finish turn.finish usage? turn.close turn.end";
        assert_eq!(counterexample(&[], ALL, ChoiceCount::One, Scope::Turn, turn), "");
        let item = "message.open (part.open (text.delta | annotation | refusal.delta)+ part.close)+ message.close
            | reasoning.open (summary.open summary.delta+ summary.close | thought.open thought.delta+ thought.close)*
              reasoning.close
            | tool.open tool.args* tool.close";
        assert_eq!(counterexample(&[], ALL, ChoiceCount::Several, Scope::Item, item), "");
        // One item at a time, except that text may be open next to a call.
        let choice = "choice.open (message.open message.close | reasoning.open reasoning.close)* choice.finish";
        assert_eq!(counterexample(&[], ALL, ChoiceCount::Several, Scope::Choice, choice), "");
        let calls = "(tool.open tool.args* tool.close)* choice.finish";
        assert_eq!(counterexample(&[], ALL, ChoiceCount::Several, Scope::Choice, calls), "");
    }

    #[test]
    fn a_policy_changes_which_orders_are_proven() {
        let calls = "(tool.open tool.args* tool.close)* choice.finish";
        let interleaved = [("items_overlap", "interleaved")];
        assert_eq!(counterexample(&interleaved, ALL, ChoiceCount::One, Scope::Choice, calls), "tool.open tool.open");
        let one_at_a_time = "(message.open message.close | reasoning.open reasoning.close
            | tool.open tool.args* tool.close)* choice.finish";
        assert_eq!(counterexample(&[], ALL, ChoiceCount::One, Scope::Choice, one_at_a_time), "tool.open message.open");
        let serial = [("items_overlap", "serial"), ("close_items", "at_finish")];
        assert_eq!(counterexample(&serial, ALL, ChoiceCount::One, Scope::Choice, one_at_a_time), "");
        let no_reasoning =
            "(message.open | message.close | tool.open | tool.args | tool.close | choice.open)* choice.finish";
        let dropped = [("reasoning", "drop")];
        assert_eq!(counterexample(&dropped, ALL, ChoiceCount::One, Scope::Choice, no_reasoning), "");
        let items = "(message.open message.close | reasoning.open reasoning.close)* choice.finish";
        let at_finish = [("close_items", "at_finish")];
        assert_eq!(
            counterexample(&at_finish, ALL, ChoiceCount::One, Scope::Choice, items),
            "message.open reasoning.open"
        );
        let message = "message.open part.open part.close message.close";
        assert_eq!(
            counterexample(&[], TEXT, ChoiceCount::One, Scope::Item, message),
            "message.open part.open part.close part.open"
        );
        let never_empty = "message.open (part.open part.close)+ message.close";
        assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Item, never_empty), "");
        let always = [("empty_message_item", "always")];
        assert_eq!(
            counterexample(&always, TEXT, ChoiceCount::One, Scope::Item, never_empty),
            "message.open message.close"
        );
        let counted = "turn.finish usage turn.end";
        assert_eq!(counterexample(&[("usage", "zeros")], TEXT, ChoiceCount::One, Scope::Turn, counted), "");
        assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Turn, counted), "turn.finish turn.end");
        let one_message = "message.open message.close choice.finish";
        let completed = [("empty_message_item", "always"), ("aggregate.on_empty", "completed")];
        assert_eq!(counterexample(&always, OutputKinds::default(), ChoiceCount::One, Scope::Choice, one_message), "");
        assert_eq!(
            counterexample(&completed, OutputKinds::default(), ChoiceCount::One, Scope::Choice, one_message),
            "choice.finish"
        );
    }

    #[test]
    fn an_order_need_not_mention_what_no_backend_emits() {
        let order = "text.delta* choice.finish tool.open";
        assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Choice, order), "choice.finish end");
        assert_eq!(
            counterexample(&[], TEXT, ChoiceCount::One, Scope::Choice, "tool.open? text.delta* choice.finish"),
            ""
        );
        let found = counterexample(&[], ALL, ChoiceCount::One, Scope::Choice, "tool.open? text.delta* choice.finish");
        assert_eq!(found, "text.delta tool.open");
    }

    #[test]
    fn several_choices_are_interleaved() {
        let one = "turn.open (choice.open text.delta* choice.finish)* turn.end";
        assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Turn, one), "");
        assert_eq!(
            counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, one),
            "turn.open choice.open choice.open"
        );
        let any = "turn.open (choice.open | text.delta | choice.finish)+ turn.end";
        assert_eq!(counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, any), "");
        let first = "turn.open choice.open+ (text.delta | choice.finish)+ turn.end";
        assert_eq!(
            counterexample(&[("choice_frames", "together")], TEXT, ChoiceCount::Several, Scope::Turn, first),
            ""
        );
        let found = counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, first);
        assert_eq!(found, "turn.open choice.open choice.finish choice.open");
        // The number of choices is unbounded, so allowing three is not enough.
        let three = "choice.open choice.open? choice.open? choice.finish*";
        let found = counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, three);
        assert_eq!(found, "choice.open choice.finish choice.open");
    }

    #[test]
    fn an_impossible_turn_with_several_choices_is_no_counterexample() {
        // Too many states: the fallback model allows any moment at any time, even arguments before their call.
        let rest = "choice.open | choice.finish | message.open | message.close | reasoning.open | reasoning.close";
        let call_first =
            format!("turn.open ({rest})* (tool.open ({rest} | tool.open | tool.args | tool.close)*)? turn.end");
        let (policies, order) = (policies(&[]), Automaton::parse(&call_first).unwrap());
        let turn_model = TurnModel { policies: &policies, output: ALL, choices: ChoiceCount::Several };
        assert!(turn_model.model(Scope::Turn, &|m| order.mentions(m)).counterexample(&order).is_some());
        assert_eq!(counterexample(&[], ALL, ChoiceCount::Several, Scope::Turn, &call_first), "");
        // The moments of one event are not interleaved with others.
        let opened = "turn.open (choice.open | message.open? part.open | text.delta | choice.finish)+ turn.end";
        assert_eq!(counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, opened), "");
        // A counterexample with two choices is still found.
        let serial = format!("turn.open ({rest} | tool.open tool.args* tool.close)* turn.end");
        let found = counterexample(&[], ALL, ChoiceCount::Several, Scope::Turn, &serial);
        assert_eq!(found, "turn.open choice.open tool.open choice.open");
    }

    #[test]
    fn the_model_contains_every_moment_that_can_be_emitted() {
        for output in [ALL, TEXT, OutputKinds::default()] {
            for value in ["omit", "always"] {
                let policies = policies(&[("empty_message_item", value)]);
                let turn_model = TurnModel { policies: &policies, output, choices: ChoiceCount::One };
                let moments = turn_model.turn().alphabet();
                let emitted = M::ALL.iter().copied().filter(|m| *m != M::TurnFail && turn_model.can_emit(*m)).collect();
                assert_eq!(moments, emitted);
            }
        }
    }
}
