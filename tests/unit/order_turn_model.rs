//! Unit tests of `order::turn_model`.

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
    let Some(counterexample) = turn_model.counterexample(scope, &order, &WorkBudget::default()) else {
        return String::new();
    };
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
    assert_eq!(counterexample(&at_finish, ALL, ChoiceCount::One, Scope::Choice, items), "message.open reasoning.open");
    let message = "message.open part.open part.close message.close";
    assert_eq!(
        counterexample(&[], TEXT, ChoiceCount::One, Scope::Item, message),
        "message.open part.open part.close part.open"
    );
    let never_empty = "message.open (part.open part.close)+ message.close";
    assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Item, never_empty), "");
    let always = [("empty_message_item", "always")];
    assert_eq!(counterexample(&always, TEXT, ChoiceCount::One, Scope::Item, never_empty), "message.open message.close");
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
    assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Choice, "tool.open? text.delta* choice.finish"), "");
    let found = counterexample(&[], ALL, ChoiceCount::One, Scope::Choice, "tool.open? text.delta* choice.finish");
    assert_eq!(found, "text.delta tool.open");
}

#[test]
fn several_choices_are_interleaved() {
    let one = "turn.open (choice.open text.delta* choice.finish)* turn.end";
    assert_eq!(counterexample(&[], TEXT, ChoiceCount::One, Scope::Turn, one), "");
    assert_eq!(counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, one), "turn.open choice.open choice.open");
    let any = "turn.open (choice.open | text.delta | choice.finish)+ turn.end";
    assert_eq!(counterexample(&[], TEXT, ChoiceCount::Several, Scope::Turn, any), "");
    let first = "turn.open choice.open+ (text.delta | choice.finish)+ turn.end";
    assert_eq!(counterexample(&[("choice_frames", "together")], TEXT, ChoiceCount::Several, Scope::Turn, first), "");
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
    assert!(
        turn_model.model(Scope::Turn, &|m| order.mentions(m)).counterexample(&order, &WorkBudget::default()).is_some()
    );
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
            // A failure and a keepalive can come at any point.
            let is_anywhere = |moment: &M| matches!(moment, M::TurnFail | M::Idle);
            let emitted = M::ALL.iter().copied().filter(|m| !is_anywhere(m) && turn_model.can_emit(*m)).collect();
            assert_eq!(moments, emitted);
        }
    }
}
