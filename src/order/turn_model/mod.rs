//! The life of a turn as `order:` sees it: every sequence of moments that `turn/` can tell under given policies, as a
//! model. It may hold more than can happen, never less: `tests/laws.rs` plays random
//! turns against it.

mod choice;
mod items;
mod many_choices;
mod two_choices;

use super::Automaton;
use super::proof::{Escape, Model};
use crate::domain::policy::{BodyUsage, EmptyMessageItem, OnEmpty, TerminalOrder, UsagePolicy};
use crate::domain::{MomentKind as M, Policies, Scope};
use choice::Lane;
use items::{Message, Reasoning};
use many_choices::Holds;

/// What backends can say at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    pub text: bool,
    pub refusal: bool,
    pub annotations: bool,
    pub summaries: bool,
    pub thoughts: bool,
    /// Reasoning of which nothing can be read.
    pub sealed: bool,
    pub tools: bool,
    pub usage: bool,
}

/// How many choices a request can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choices {
    One,
    Several,
}

/// What decides how turns can go.
#[derive(Clone, Copy, Debug)]
pub struct Life<'p> {
    pub policies: &'p Policies,
    pub can: Abilities,
    pub choices: Choices,
}

/// Where a turn stands; `T` is what it remembers while it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage<T> {
    New,
    Speaking(T),
    Over,
}

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    New,
    Message(Message),
    Reasoning(Reasoning),
    Call,
    Closed,
}

impl Life<'_> {
    /// Every sequence of moments of one scope. `sees`: those that are of interest; a model of few moments is small.
    pub fn model(&self, scope: Scope, sees: &dyn Fn(M) -> bool) -> Model {
        match (scope, self.choices) {
            (Scope::Turn, Choices::One) => self.turn().seen_by(sees),
            (Scope::Turn, Choices::Several) => many_choices::model(self, sees).0,
            (Scope::Choice, _) => self.choice().seen_by(sees),
            (Scope::Item, _) => self.item().seen_by(sees),
        }
    }

    /// The shortest way out of an order; none where there is none, or where it is not certain that it can be gone.
    pub fn escape(&self, scope: Scope, order: &Automaton) -> Option<Escape> {
        let sees = |moment: M| order.mentions(moment);
        match (scope, self.choices) {
            (Scope::Turn, Choices::Several) => {
                let (crowd, holds) = many_choices::model(self, &sees);
                let escape = crowd.escape(order)?;
                match holds {
                    Holds::Exact => Some(escape),
                    Holds::More => two_choices::model(self, &sees).escape(order),
                }
            }
            (Scope::Turn, Choices::One) | (Scope::Choice | Scope::Item, _) => self.model(scope, &sees).escape(order),
        }
    }

    /// Can this moment come at all?
    pub fn tells(&self, moment: M) -> bool {
        let can = self.can;
        let said = can.text || can.refusal || can.annotations;
        match moment {
            M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnFail | M::TurnEnd => true,
            M::ChoiceOpen | M::ChoiceFinish => true,
            M::MessageOpen | M::MessageClose => said || self.policies.empty_message_item == EmptyMessageItem::Always,
            M::PartOpen | M::PartClose => said,
            M::TextDelta => can.text,
            M::RefusalDelta => can.refusal,
            M::Annotation => can.annotations,
            M::ReasoningOpen | M::ReasoningClose => can.summaries || can.thoughts || can.sealed,
            M::SummaryOpen | M::SummaryDelta | M::SummaryClose => can.summaries,
            M::ThoughtOpen | M::ThoughtDelta | M::ThoughtClose => can.thoughts,
            M::ToolOpen | M::ToolArgs | M::ToolClose => can.tools,
            M::Usage => self.endings().iter().any(|ending| ending.contains(&M::Usage)),
        }
    }

    fn turn(&self) -> Model {
        let next = |stage: &Stage<Lane>| match stage {
            Stage::New => {
                let mut steps = vec![(vec![M::TurnOpen, M::ChoiceOpen], Stage::Speaking(Lane::default()))];
                steps.extend(self.empty_answer().map(|told| (told, Stage::Over)));
                steps
            }
            Stage::Speaking(lane) if lane.is_finished() => {
                self.endings().into_iter().map(|told| (told, Stage::Over)).collect()
            }
            Stage::Speaking(lane) => {
                lane.steps(self).into_iter().map(|(told, lane)| (told, Stage::Speaking(lane))).collect()
            }
            Stage::Over => Vec::new(),
        };
        Model::explore(Stage::New, next, |stage| *stage == Stage::Over)
    }

    fn choice(&self) -> Model {
        let next = |stage: &Stage<Lane>| match stage {
            Stage::New => {
                let mut steps = vec![(vec![M::ChoiceOpen], Stage::Speaking(Lane::default()))];
                let empty = self.policies.on_empty == OnEmpty::Completed;
                steps.extend(empty.then(|| (vec![M::ChoiceOpen, M::ChoiceFinish], Stage::Over)));
                steps
            }
            Stage::Speaking(lane) => {
                lane.steps(self).into_iter().map(|(told, lane)| (told, Stage::Speaking(lane))).collect()
            }
            Stage::Over => Vec::new(),
        };
        Model::explore(Stage::New, next, |stage| match stage {
            Stage::New => false,
            Stage::Speaking(lane) => lane.is_finished(),
            Stage::Over => true,
        })
    }

    /// What follows the `choice.open` of one choice.
    fn lane(&self) -> Model {
        Model::explore(Lane::default(), |lane| lane.steps(self), Lane::is_finished)
    }

    fn item(&self) -> Model {
        let next = |item: &Item| {
            let mut steps: Vec<(Vec<M>, Item)> = Vec::new();
            match *item {
                Item::New => {
                    let empty = self.policies.empty_message_item == EmptyMessageItem::Always;
                    if empty || self.can.text || self.can.refusal || self.can.annotations {
                        steps.push((vec![M::MessageOpen], Item::Message(Message::Empty)));
                    }
                    if self.can.summaries || self.can.thoughts || self.can.sealed {
                        steps.push((vec![M::ReasoningOpen], Item::Reasoning(Reasoning::Sealed)));
                    }
                    if self.can.tools {
                        steps.push((vec![M::ToolOpen], Item::Call));
                    }
                }
                Item::Message(message) => {
                    steps.extend(message.hear(self.can).into_iter().map(|(told, m)| (told, Item::Message(m))));
                    let empty = self.policies.empty_message_item == EmptyMessageItem::Always;
                    if message != Message::Empty || empty {
                        steps.push((message.close().to_vec(), Item::Closed));
                    }
                }
                Item::Reasoning(reasoning) => {
                    steps.extend(reasoning.hear(self.can).into_iter().map(|(told, r)| (told, Item::Reasoning(r))));
                    if reasoning != Reasoning::Sealed || self.can.sealed {
                        steps.push((reasoning.close().to_vec(), Item::Closed));
                    }
                }
                Item::Call => {
                    steps.push((vec![M::ToolArgs], Item::Call));
                    steps.push((vec![M::ToolClose], Item::Closed));
                }
                Item::Closed => {}
            }
            steps
        };
        Model::explore(Item::New, next, |item| *item == Item::Closed)
    }

    fn by_item(&self) -> bool {
        self.policies.terminal_order == TerminalOrder::ByItem
    }

    /// A body to which the backend said nothing: policy `stream2json.on_empty`.
    fn empty_answer(&self) -> impl Iterator<Item = Vec<M>> {
        let allowed = self.policies.on_empty == OnEmpty::Completed;
        let endings = if allowed { self.endings() } else { Vec::new() };
        endings.into_iter().map(|ending| [&[M::TurnOpen, M::ChoiceOpen, M::ChoiceFinish], ending.as_slice()].concat())
    }

    /// What follows the last finish, with usage or without.
    fn endings(&self) -> Vec<Vec<M>> {
        let counted = vec![M::TurnFinish, M::Usage, M::TurnClose, M::TurnEnd];
        let uncounted = vec![M::TurnFinish, M::TurnClose, M::TurnEnd];
        match self.policies.usage {
            UsagePolicy::Zeros | UsagePolicy::Estimate => vec![counted],
            UsagePolicy::AsReported if self.can.usage || self.policies.body_usage == BodyUsage::Zeros => {
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
    use crate::order::proof::Then;

    const ALL: Abilities = Abilities {
        text: true,
        refusal: true,
        annotations: true,
        summaries: true,
        thoughts: true,
        sealed: true,
        tools: true,
        usage: true,
    };
    const TEXT: Abilities = Abilities {
        text: true,
        refusal: false,
        annotations: false,
        summaries: false,
        thoughts: false,
        sealed: false,
        tools: false,
        usage: false,
    };

    fn policies(settings: &[(&str, &str)]) -> Policies {
        let mut policies = Policies::default();
        settings.iter().for_each(|(name, value)| policies.set(name, value));
        policies
    }

    /// The way out of an order in words, the last of them what has no place; empty if there is none.
    fn escape(settings: &[(&str, &str)], can: Abilities, choices: Choices, scope: Scope, order: &str) -> String {
        let policies = policies(settings);
        let order = Automaton::parse(order).unwrap();
        let life = Life { policies: &policies, can, choices };
        let Some(escape) = life.escape(scope, &order) else { return String::new() };
        let last = match escape.then {
            Then::Moment(moment) => moment.word(),
            Then::End => "end",
        };
        escape.way.iter().map(|m| m.word()).chain([last]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_narrowest_orders_are_proven() {
        let turn = "turn.open choice.open choice.finish turn.finish usage? turn.close turn.end";
        assert_eq!(escape(&[], ALL, Choices::One, Scope::Turn, turn), "");
        let item = "message.open (part.open (text.delta | annotation | refusal.delta)+ part.close)+ message.close
            | reasoning.open (summary.open summary.delta+ summary.close | thought.open thought.delta+ thought.close)*
              reasoning.close
            | tool.open tool.args* tool.close";
        assert_eq!(escape(&[], ALL, Choices::Several, Scope::Item, item), "");
        // One at a time, but for text beside a call.
        let choice = "choice.open (message.open message.close | reasoning.open reasoning.close)* choice.finish";
        assert_eq!(escape(&[], ALL, Choices::Several, Scope::Choice, choice), "");
        let calls = "(tool.open tool.args* tool.close)* choice.finish";
        assert_eq!(escape(&[], ALL, Choices::Several, Scope::Choice, calls), "");
    }

    #[test]
    fn a_policy_changes_what_is_proven() {
        let calls = "(tool.open tool.args* tool.close)* choice.finish";
        let interleaved = [("tools_overlap", "interleaved")];
        assert_eq!(escape(&interleaved, ALL, Choices::One, Scope::Choice, calls), "tool.open tool.open");
        let items = "(message.open message.close | reasoning.open reasoning.close)* choice.finish";
        let at_end = [("terminal_order", "at_end")];
        assert_eq!(escape(&at_end, ALL, Choices::One, Scope::Choice, items), "message.open reasoning.open");
        let message = "message.open part.open part.close message.close";
        assert_eq!(
            escape(&[], TEXT, Choices::One, Scope::Item, message),
            "message.open part.open part.close part.open"
        );
        let never_empty = "message.open (part.open part.close)+ message.close";
        assert_eq!(escape(&[], TEXT, Choices::One, Scope::Item, never_empty), "");
        let always = [("empty_message_item", "always")];
        assert_eq!(escape(&always, TEXT, Choices::One, Scope::Item, never_empty), "message.open message.close");
        let counted = "turn.finish usage turn.end";
        assert_eq!(escape(&[("usage", "zeros")], TEXT, Choices::One, Scope::Turn, counted), "");
        assert_eq!(escape(&[], TEXT, Choices::One, Scope::Turn, counted), "turn.finish turn.end");
        let spoken = "message.open message.close choice.finish";
        let completed = [("empty_message_item", "always"), ("stream2json.on_empty", "completed")];
        assert_eq!(escape(&always, Abilities::default(), Choices::One, Scope::Choice, spoken), "");
        assert_eq!(escape(&completed, Abilities::default(), Choices::One, Scope::Choice, spoken), "choice.finish");
    }

    #[test]
    fn what_no_backend_says_needs_no_place() {
        let order = "text.delta* choice.finish tool.open";
        assert_eq!(escape(&[], TEXT, Choices::One, Scope::Choice, order), "choice.finish end");
        assert_eq!(escape(&[], TEXT, Choices::One, Scope::Choice, "tool.open? text.delta* choice.finish"), "");
        let found = escape(&[], ALL, Choices::One, Scope::Choice, "tool.open? text.delta* choice.finish");
        assert_eq!(found, "text.delta tool.open");
    }

    #[test]
    fn several_choices_go_on_beside_each_other() {
        let one = "turn.open (choice.open text.delta* choice.finish)* turn.end";
        assert_eq!(escape(&[], TEXT, Choices::One, Scope::Turn, one), "");
        assert_eq!(escape(&[], TEXT, Choices::Several, Scope::Turn, one), "turn.open choice.open choice.open");
        let any = "turn.open (choice.open | text.delta | choice.finish)+ turn.end";
        assert_eq!(escape(&[], TEXT, Choices::Several, Scope::Turn, any), "");
        let first = "turn.open choice.open+ (text.delta | choice.finish)+ turn.end";
        assert_eq!(escape(&[("choice_frames", "together")], TEXT, Choices::Several, Scope::Turn, first), "");
        let found = escape(&[], TEXT, Choices::Several, Scope::Turn, first);
        assert_eq!(found, "turn.open choice.open choice.finish choice.open");
        // Not two, not three: nobody knows how many.
        let three = "choice.open choice.open? choice.open? choice.finish*";
        let found = escape(&[], TEXT, Choices::Several, Scope::Turn, three);
        assert_eq!(found, "choice.open choice.finish choice.open");
    }

    #[test]
    fn a_turn_of_several_choices_that_cannot_happen_is_no_way_out() {
        // More points than are told apart: any moment may then come at any time, and arguments before their call.
        let rest = "choice.open | choice.finish | message.open | message.close | reasoning.open | reasoning.close";
        let call_first =
            format!("turn.open ({rest})* (tool.open ({rest} | tool.open | tool.args | tool.close)*)? turn.end");
        let (policies, order) = (policies(&[]), Automaton::parse(&call_first).unwrap());
        let life = Life { policies: &policies, can: ALL, choices: Choices::Several };
        assert!(life.model(Scope::Turn, &|m| order.mentions(m)).escape(&order).is_some());
        assert_eq!(escape(&[], ALL, Choices::Several, Scope::Turn, &call_first), "");
        // What is told of one event stays together.
        let opened = "turn.open (choice.open | message.open? part.open | text.delta | choice.finish)+ turn.end";
        assert_eq!(escape(&[], TEXT, Choices::Several, Scope::Turn, opened), "");
        // What two of them can do is found all the same.
        let serial = format!("turn.open ({rest} | tool.open tool.args* tool.close)* turn.end");
        let found = escape(&[], ALL, Choices::Several, Scope::Turn, &serial);
        assert_eq!(found, "turn.open choice.open tool.open choice.open");
    }

    #[test]
    fn a_moment_that_can_come_is_in_the_model() {
        for can in [ALL, TEXT, Abilities::default()] {
            for value in ["omit", "always"] {
                let policies = policies(&[("empty_message_item", value)]);
                let life = Life { policies: &policies, can, choices: Choices::One };
                let told = life.turn().moments();
                let said = M::ALL.iter().copied().filter(|m| *m != M::TurnFail && life.tells(*m)).collect();
                assert_eq!(told, said);
            }
        }
    }
}
