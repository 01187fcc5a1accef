//! Unit tests of `order::proof`.

#![allow(clippy::unwrap_used)]

use super::*;
use MomentKind as M;

/// An automaton that accepts exactly these sequences.
fn of(sequences: &[&[M]]) -> MomentNfa {
    let next = |at: &usize| match at {
        0 => sequences.iter().map(|s| (s.to_vec(), 1)).collect(),
        _ => Vec::new(),
    };
    MomentNfa::explore(0, next, |at| *at == 1)
}

fn counterexample(nfa: &MomentNfa, order: &str) -> Option<(Vec<M>, Unexpected)> {
    nfa.counterexample(&Automaton::parse(order).unwrap(), &WorkBudget::default()).map(|e| (e.path, e.unexpected))
}

#[test]
fn an_allowed_sequence_has_no_counterexample() {
    let nfa = of(&[&[M::TurnOpen, M::TurnEnd], &[M::TurnOpen, M::Usage, M::TurnEnd]]);
    assert_eq!(counterexample(&nfa, "turn.open usage? turn.end"), None);
    assert_eq!(counterexample(&nfa, "turn.open usage* turn.end"), None);
    assert_eq!(counterexample(&nfa, "(turn.open | usage | turn.end)*"), None);
}

#[test]
fn an_unexpected_moment_is_found_with_the_path_to_it() {
    let nfa = of(&[&[M::TurnOpen, M::Usage, M::TurnEnd]]);
    let found = counterexample(&nfa, "turn.open turn.end usage");
    assert_eq!(found, Some((vec![M::TurnOpen], Unexpected::Moment(M::Usage))));
}

#[test]
fn an_early_end_is_found() {
    let nfa = of(&[&[M::TurnOpen, M::TurnClose], &[M::TurnOpen]]);
    assert_eq!(counterexample(&nfa, "turn.open turn.close"), Some((vec![M::TurnOpen], Unexpected::End)));
}

#[test]
fn moments_that_the_order_does_not_mention_are_unconstrained() {
    let nfa = of(&[&[M::TurnOpen, M::TextDelta, M::TextDelta, M::TurnEnd]]);
    assert_eq!(counterexample(&nfa, "turn.open turn.end"), None);
}

#[test]
fn a_scope_without_moments_need_not_be_accepted() {
    assert_eq!(counterexample(&of(&[&[M::TextDelta]]), "tool.open tool.close"), None);
}

#[test]
fn the_shortest_counterexample_is_reported() {
    let long: &[M] = &[M::TurnOpen, M::ChoiceOpen, M::TextDelta, M::Usage];
    let nfa = of(&[long, &[M::TurnOpen, M::TurnEnd]]);
    let found = counterexample(&nfa, "turn.open choice.open text.delta (turn.end usage)");
    assert_eq!(found, Some((vec![M::TurnOpen], Unexpected::Moment(M::TurnEnd))));
}

#[test]
fn a_loop_is_explored_until_no_new_state_is_found() {
    let nfa = MomentNfa::explore(0, |_| vec![(vec![M::ToolOpen], 0), (vec![M::ToolClose], 0)], |_| true);
    assert_eq!(counterexample(&nfa, "(tool.open | tool.close)*"), None);
    let found = counterexample(&nfa, "(tool.open tool.close)*");
    assert_eq!(found, Some((vec![], Unexpected::Moment(M::ToolClose))));
}

#[test]
fn an_automaton_accepts_its_sequences_and_no_others() {
    let nfa = of(&[&[M::TurnOpen, M::TurnEnd], &[M::TurnOpen, M::Usage, M::TurnEnd]]);
    assert!(nfa.accepts_moments(&[M::TurnOpen, M::Usage, M::TurnEnd], true));
    assert!(nfa.accepts_moments(&[M::TurnOpen], false));
    assert!(!nfa.accepts_moments(&[M::TurnOpen], true));
    assert!(!nfa.accepts_moments(&[M::Usage], false));
    let seen = nfa.project(|m| m == M::TurnEnd);
    assert!(seen.accepts_moments(&[M::TurnEnd], true) && !seen.accepts_moments(&[M::TurnEnd, M::TurnEnd], false));
}
