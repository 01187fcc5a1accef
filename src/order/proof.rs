//! Language inclusion: every sequence of moments that a turn can emit must be accepted by the order.
//!
//! The possible sequences are a nondeterministic automaton. The search explores its product with the order automaton in
//! order of path length. Both are finite, so it terminates, and the first violation found is a shortest counterexample.

use super::automaton::Automaton;
use crate::domain::{MomentKind, WorkBudget};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::hash::Hash;

/// A nondeterministic automaton over moments. State 0 is the start state.
#[derive(Clone, Debug)]
pub struct MomentNfa {
    states: Vec<NfaState>,
}

#[derive(Clone, Debug, Default)]
struct NfaState {
    transitions: Vec<Transition>,
    /// The sequence may end in this state.
    accepting: bool,
}

/// A transition emits zero, one or several moments; several are always emitted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    pub moments: Vec<MomentKind>,
    pub to: usize,
}

/// A possible sequence that violates the order. It contains only moments that the order mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    pub path: Vec<MomentKind>,
    pub unexpected: Unexpected,
}

/// What follows the path although the order does not allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexpected {
    Moment(MomentKind),
    /// The end of the sequence, where the order requires more moments.
    End,
}

/// Steps of the budget for each transition that the search follows: it keeps what it has seen.
const STEPS_PER_TRANSITION: u64 = 100;

/// A node of the search: the states of both automata and the previous node.
struct SearchNode {
    state: usize,
    order: Option<u128>,
    from: Option<usize>,
    moments: Vec<MomentKind>,
}

impl MomentNfa {
    /// Builds the automaton from the states reachable from `start` through `next`.
    pub fn explore<S: Clone + Eq + Hash>(
        start: S,
        next: impl Fn(&S) -> Vec<(Vec<MomentKind>, S)>,
        accepting: impl Fn(&S) -> bool,
    ) -> MomentNfa {
        let mut numbers = HashMap::from([(start.clone(), 0)]);
        let mut found = vec![start];
        let mut states = Vec::new();
        while let Some(at) = found.get(states.len()).cloned() {
            let mut transitions = Vec::new();
            for (moments, to) in next(&at) {
                let to = *numbers.entry(to).or_insert_with_key(|to| {
                    found.push(to.clone());
                    found.len() - 1
                });
                transitions.push(Transition { moments, to });
            }
            states.push(NfaState { transitions, accepting: accepting(&at) });
        }
        MomentNfa { states }
    }

    /// Removes all other moments from the transitions.
    pub fn project(mut self, visible: impl Fn(MomentKind) -> bool) -> MomentNfa {
        for (at, state) in self.states.iter_mut().enumerate() {
            let mut known = HashSet::new();
            for transition in &mut state.transitions {
                transition.moments.retain(|m| visible(*m));
            }
            state.transitions.retain(|s| (s.to != at || !s.moments.is_empty()) && known.insert(s.clone()));
        }
        self
    }

    /// Every moment on some transition.
    pub fn alphabet(&self) -> BTreeSet<MomentKind> {
        self.states.iter().flat_map(|s| &s.transitions).flat_map(|s| s.moments.iter().copied()).collect()
    }

    /// A shortest sequence that the order does not accept; `None` if it accepts all of them, or if the budget does not
    /// suffice to find out: the states of an order can be as many as the sets of its moments.
    pub fn counterexample(&self, order: &Automaton, budget: &WorkBudget) -> Option<Counterexample> {
        let mut nodes = vec![SearchNode { state: 0, order: None, from: None, moments: Vec::new() }];
        let mut seen = HashSet::from([(0, None)]);
        let mut open = BinaryHeap::from([Reverse((0, 0))]);
        let mut best: Option<(usize, Counterexample)> = None;
        while let Some(Reverse((length, at))) = open.pop() {
            if best.as_ref().is_some_and(|(found, _)| *found <= length) {
                break;
            }
            let (state, before) = (nodes[at].state, nodes[at].order);
            let transitions = &self.states[state].transitions;
            if !budget.spend(STEPS_PER_TRANSITION * (1 + transitions.len() as u64)) {
                return None;
            }
            // A scope without any moment need not be accepted.
            if self.states[state].accepting && before.is_some() && !order.accepts(before) {
                keep_shortest(&mut best, length + 1, || Counterexample {
                    path: path_to(&nodes, at),
                    unexpected: Unexpected::End,
                });
            }
            for transition in &self.states[state].transitions {
                let (mut moments, mut after) = (Vec::new(), before);
                let mut lost = None;
                for moment in transition.moments.iter().filter(|m| order.mentions(**m)) {
                    match order.step(after, *moment) {
                        0 => {
                            lost = Some(*moment);
                            break;
                        }
                        next => after = Some(next),
                    }
                    moments.push(*moment);
                }
                let reached = length + moments.len();
                if let Some(moment) = lost {
                    keep_shortest(&mut best, reached + 1, || {
                        let path = path_to(&nodes, at).into_iter().chain(moments).collect();
                        Counterexample { path, unexpected: Unexpected::Moment(moment) }
                    });
                } else if seen.insert((transition.to, after)) {
                    nodes.push(SearchNode { state: transition.to, order: after, from: Some(at), moments });
                    open.push(Reverse((reached, nodes.len() - 1)));
                }
            }
        }
        best.map(|(_, counterexample)| counterexample)
    }

    /// True if the sequence is possible; with `ended`, also that the turn can end successfully after it.
    pub fn accepts_moments(&self, moments: &[MomentKind], ended: bool) -> bool {
        let nfa = self.with_single_moments();
        let mut at = epsilon_closure(&nfa, BTreeSet::from([0]));
        for moment in moments {
            let transitions = at.iter().flat_map(|s| &nfa.states[*s].transitions);
            let next = transitions.filter(|s| s.moments.as_slice() == [*moment]).map(|s| s.to).collect();
            at = epsilon_closure(&nfa, next);
        }
        if ended { at.iter().any(|s| nfa.states[*s].accepting) } else { !at.is_empty() }
    }

    /// The same automaton with at most one moment per transition.
    fn with_single_moments(&self) -> MomentNfa {
        let mut states = self.states.clone();
        for at in 0..self.states.len() {
            for (which, transition) in
                self.states[at].transitions.iter().enumerate().filter(|(_, s)| s.moments.len() > 1)
            {
                let [first, rest @ ..] = transition.moments.as_slice() else { continue };
                states[at].transitions[which] = Transition { moments: vec![*first], to: states.len() };
                for (n, moment) in rest.iter().enumerate() {
                    let to = if n + 1 == rest.len() { transition.to } else { states.len() + 1 };
                    states.push(NfaState {
                        transitions: vec![Transition { moments: vec![*moment], to }],
                        accepting: false,
                    });
                }
            }
        }
        MomentNfa { states }
    }
}

/// A deterministic automaton over moments.
#[derive(Debug)]
pub struct MomentDfa {
    pub states: Vec<DfaState>,
}

#[derive(Debug, Default)]
pub struct DfaState {
    pub next: BTreeMap<MomentKind, usize>,
    pub accepting: bool,
}

impl MomentDfa {
    /// Subset construction. `None` if the result would have more than `max_states`: the number can grow exponentially.
    pub fn determinize(nfa: &MomentNfa, max_states: usize) -> Option<MomentDfa> {
        let nfa = nfa.with_single_moments();
        let start = epsilon_closure(&nfa, BTreeSet::from([0]));
        let mut numbers = HashMap::from([(start.clone(), 0)]);
        let mut found = vec![start];
        let mut states = Vec::new();
        while let Some(at) = found.get(states.len()).cloned() {
            if found.len() > max_states {
                return None;
            }
            let mut reached: BTreeMap<MomentKind, BTreeSet<usize>> = BTreeMap::new();
            for transition in at.iter().flat_map(|s| &nfa.states[*s].transitions) {
                if let [moment] = transition.moments.as_slice() {
                    reached.entry(*moment).or_default().insert(transition.to);
                }
            }
            let mut state = DfaState { accepting: at.iter().any(|s| nfa.states[*s].accepting), ..DfaState::default() };
            for (moment, to) in reached {
                let to = *numbers.entry(epsilon_closure(&nfa, to)).or_insert_with_key(|to| {
                    found.push(to.clone());
                    found.len() - 1
                });
                state.next.insert(moment, to);
            }
            states.push(state);
        }
        Some(MomentDfa { states })
    }
}

/// These states, and all states reachable from them without emitting a moment.
fn epsilon_closure(nfa: &MomentNfa, mut states: BTreeSet<usize>) -> BTreeSet<usize> {
    let mut open: Vec<usize> = states.iter().copied().collect();
    while let Some(at) = open.pop() {
        for transition in nfa.states[at].transitions.iter().filter(|s| s.moments.is_empty()) {
            if states.insert(transition.to) {
                open.push(transition.to);
            }
        }
    }
    states
}

fn keep_shortest(
    best: &mut Option<(usize, Counterexample)>,
    length: usize,
    counterexample: impl FnOnce() -> Counterexample,
) {
    if best.as_ref().is_none_or(|(found, _)| length < *found) {
        *best = Some((length, counterexample()));
    }
}

fn path_to(nodes: &[SearchNode], mut at: usize) -> Vec<MomentKind> {
    let mut segments = Vec::new();
    loop {
        segments.push(nodes[at].moments.as_slice());
        match nodes[at].from {
            Some(from) => at = from,
            None => break,
        }
    }
    segments.into_iter().rev().flatten().copied().collect()
}

#[cfg(test)]
#[path = "../../tests/unit/order_proof.rs"]
mod tests;
