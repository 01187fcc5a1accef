//! What can happen, as a graph of steps, and the proof that an order has a place for all of it.
//!
//! The proof walks the model and the order side by side. Both are finite, so the walk ends; what it meets first where the
//! order cannot follow is the shortest way out of it.

use super::automaton::Automaton;
use crate::domain::MomentKind;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::hash::Hash;

/// States by number; the first is where everything begins.
#[derive(Clone, Debug)]
pub struct Model {
    states: Vec<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    steps: Vec<Step>,
    /// All may be well if nothing follows.
    ends: bool,
}

/// What is told on the way to another state; nothing, one moment, or several of which none is ever left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub told: Vec<MomentKind>,
    pub to: usize,
}

/// A way that the order has no place for. Only moments that the order mentions are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    pub way: Vec<MomentKind>,
    pub then: Then,
}

/// What comes where the order does not know how to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Moment(MomentKind),
    /// A good end, and the order wants more.
    End,
}

/// A place of the walk: where the model is, where the order is, and the place before.
struct Walked {
    state: usize,
    order: Option<u128>,
    from: Option<usize>,
    told: Vec<MomentKind>,
}

impl Model {
    /// Everything that `next` leads to. `ends`: may it stop here?
    pub fn explore<S: Clone + Eq + Hash>(
        start: S,
        next: impl Fn(&S) -> Vec<(Vec<MomentKind>, S)>,
        ends: impl Fn(&S) -> bool,
    ) -> Model {
        let mut numbers = HashMap::from([(start.clone(), 0)]);
        let mut found = vec![start];
        let mut states = Vec::new();
        while let Some(at) = found.get(states.len()).cloned() {
            let mut steps = Vec::new();
            for (told, to) in next(&at) {
                let to = *numbers.entry(to).or_insert_with_key(|to| {
                    found.push(to.clone());
                    found.len() - 1
                });
                steps.push(Step { told, to });
            }
            states.push(State { steps, ends: ends(&at) });
        }
        Model { states }
    }

    /// The same for someone who sees only some of the moments.
    pub fn seen_by(mut self, sees: impl Fn(MomentKind) -> bool) -> Model {
        for (at, state) in self.states.iter_mut().enumerate() {
            let mut known = HashSet::new();
            for step in &mut state.steps {
                step.told.retain(|m| sees(*m));
            }
            state.steps.retain(|s| (s.to != at || !s.told.is_empty()) && known.insert(s.clone()));
        }
        self
    }

    /// Every moment that can be told.
    pub fn moments(&self) -> BTreeSet<MomentKind> {
        self.states.iter().flat_map(|s| &s.steps).flat_map(|s| s.told.iter().copied()).collect()
    }

    /// The shortest way on which the order cannot follow; none if all that can happen has a place in it.
    pub fn escape(&self, order: &Automaton) -> Option<Escape> {
        let mut walk = vec![Walked { state: 0, order: None, from: None, told: Vec::new() }];
        let mut seen = HashSet::from([(0, None)]);
        let mut open = BinaryHeap::from([Reverse((0, 0))]);
        let mut best: Option<(usize, Escape)> = None;
        while let Some(Reverse((length, at))) = open.pop() {
            if best.as_ref().is_some_and(|(found, _)| *found <= length) {
                break;
            }
            let (state, before) = (walk[at].state, walk[at].order);
            // A scope that has seen nothing is not asked about its end.
            if self.states[state].ends && before.is_some() && !order.may_end(before) {
                shorter(&mut best, length + 1, || Escape { way: way(&walk, at), then: Then::End });
            }
            for step in &self.states[state].steps {
                let (mut told, mut after) = (Vec::new(), before);
                let mut lost = None;
                for moment in step.told.iter().filter(|m| order.mentions(**m)) {
                    match order.step(after, *moment) {
                        0 => {
                            lost = Some(*moment);
                            break;
                        }
                        next => after = Some(next),
                    }
                    told.push(*moment);
                }
                let reached = length + told.len();
                if let Some(moment) = lost {
                    shorter(&mut best, reached + 1, || {
                        let way = way(&walk, at).into_iter().chain(told).collect();
                        Escape { way, then: Then::Moment(moment) }
                    });
                } else if seen.insert((step.to, after)) {
                    walk.push(Walked { state: step.to, order: after, from: Some(at), told });
                    open.push(Reverse((reached, walk.len() - 1)));
                }
            }
        }
        best.map(|(_, escape)| escape)
    }

    /// Can this be told, and if it ended well, end there?
    pub fn tells(&self, told: &[MomentKind], ended: bool) -> bool {
        let model = self.singly();
        let mut at = quietly(&model, BTreeSet::from([0]));
        for moment in told {
            let steps = at.iter().flat_map(|s| &model.states[*s].steps);
            let next = steps.filter(|s| s.told.as_slice() == [*moment]).map(|s| s.to).collect();
            at = quietly(&model, next);
        }
        if ended { at.iter().any(|s| model.states[*s].ends) } else { !at.is_empty() }
    }

    /// One moment a step at most.
    fn singly(&self) -> Model {
        let mut states = self.states.clone();
        for at in 0..self.states.len() {
            for (which, step) in self.states[at].steps.iter().enumerate().filter(|(_, s)| s.told.len() > 1) {
                let [first, rest @ ..] = step.told.as_slice() else { continue };
                states[at].steps[which] = Step { told: vec![*first], to: states.len() };
                for (n, moment) in rest.iter().enumerate() {
                    let to = if n + 1 == rest.len() { step.to } else { states.len() + 1 };
                    states.push(State { steps: vec![Step { told: vec![*moment], to }], ends: false });
                }
            }
        }
        Model { states }
    }
}

/// A model in which a moment leads to one state at most.
#[derive(Debug)]
pub struct Machine {
    pub states: Vec<MachineState>,
}

#[derive(Debug, Default)]
pub struct MachineState {
    pub next: BTreeMap<MomentKind, usize>,
    pub ends: bool,
}

impl Machine {
    /// None if it would have more states than these: their number can grow with the power of the model's.
    pub fn of(model: &Model, at_most: usize) -> Option<Machine> {
        let model = model.singly();
        let start = quietly(&model, BTreeSet::from([0]));
        let mut numbers = HashMap::from([(start.clone(), 0)]);
        let mut found = vec![start];
        let mut states = Vec::new();
        while let Some(at) = found.get(states.len()).cloned() {
            if found.len() > at_most {
                return None;
            }
            let mut reached: BTreeMap<MomentKind, BTreeSet<usize>> = BTreeMap::new();
            for step in at.iter().flat_map(|s| &model.states[*s].steps) {
                if let [moment] = step.told.as_slice() {
                    reached.entry(*moment).or_default().insert(step.to);
                }
            }
            let mut state = MachineState { ends: at.iter().any(|s| model.states[*s].ends), ..MachineState::default() };
            for (moment, to) in reached {
                let to = *numbers.entry(quietly(&model, to)).or_insert_with_key(|to| {
                    found.push(to.clone());
                    found.len() - 1
                });
                state.next.insert(moment, to);
            }
            states.push(state);
        }
        Some(Machine { states })
    }
}

/// These states, and all that are reached from them without a word.
fn quietly(model: &Model, mut states: BTreeSet<usize>) -> BTreeSet<usize> {
    let mut open: Vec<usize> = states.iter().copied().collect();
    while let Some(at) = open.pop() {
        for step in model.states[at].steps.iter().filter(|s| s.told.is_empty()) {
            if states.insert(step.to) {
                open.push(step.to);
            }
        }
    }
    states
}

fn shorter(best: &mut Option<(usize, Escape)>, length: usize, escape: impl FnOnce() -> Escape) {
    if best.as_ref().is_none_or(|(found, _)| length < *found) {
        *best = Some((length, escape()));
    }
}

fn way(walk: &[Walked], mut at: usize) -> Vec<MomentKind> {
    let mut pieces = Vec::new();
    loop {
        pieces.push(walk[at].told.as_slice());
        match walk[at].from {
            Some(from) => at = from,
            None => break,
        }
    }
    pieces.into_iter().rev().flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use MomentKind as M;

    /// A model of the words that a list of sequences can make.
    fn of(sequences: &[&[M]]) -> Model {
        let next = |at: &usize| match at {
            0 => sequences.iter().map(|s| (s.to_vec(), 1)).collect(),
            _ => Vec::new(),
        };
        Model::explore(0, next, |at| *at == 1)
    }

    fn escape(model: &Model, order: &str) -> Option<(Vec<M>, Then)> {
        model.escape(&Automaton::parse(order).unwrap()).map(|e| (e.way, e.then))
    }

    #[test]
    fn what_the_order_allows_has_no_way_out() {
        let model = of(&[&[M::TurnOpen, M::TurnEnd], &[M::TurnOpen, M::Usage, M::TurnEnd]]);
        assert_eq!(escape(&model, "turn.open usage? turn.end"), None);
        assert_eq!(escape(&model, "turn.open usage* turn.end"), None);
        assert_eq!(escape(&model, "(turn.open | usage | turn.end)*"), None);
    }

    #[test]
    fn what_has_no_place_is_found_with_the_way_to_it() {
        let model = of(&[&[M::TurnOpen, M::Usage, M::TurnEnd]]);
        let found = escape(&model, "turn.open turn.end usage");
        assert_eq!(found, Some((vec![M::TurnOpen], Then::Moment(M::Usage))));
    }

    #[test]
    fn an_end_that_comes_too_early_is_found() {
        let model = of(&[&[M::TurnOpen, M::TurnClose], &[M::TurnOpen]]);
        assert_eq!(escape(&model, "turn.open turn.close"), Some((vec![M::TurnOpen], Then::End)));
    }

    #[test]
    fn what_the_order_does_not_mention_is_free() {
        let model = of(&[&[M::TurnOpen, M::TextDelta, M::TextDelta, M::TurnEnd]]);
        assert_eq!(escape(&model, "turn.open turn.end"), None);
    }

    #[test]
    fn a_scope_that_saw_nothing_need_not_end_well() {
        assert_eq!(escape(&of(&[&[M::TextDelta]]), "tool.open tool.close"), None);
    }

    #[test]
    fn of_two_ways_out_the_shorter_is_told() {
        let long: &[M] = &[M::TurnOpen, M::ChoiceOpen, M::TextDelta, M::Usage];
        let model = of(&[long, &[M::TurnOpen, M::TurnEnd]]);
        let found = escape(&model, "turn.open choice.open text.delta (turn.end usage)");
        assert_eq!(found, Some((vec![M::TurnOpen], Then::Moment(M::TurnEnd))));
    }

    #[test]
    fn a_loop_is_walked_until_nothing_is_new() {
        let model = Model::explore(0, |_| vec![(vec![M::ToolOpen], 0), (vec![M::ToolClose], 0)], |_| true);
        assert_eq!(escape(&model, "(tool.open | tool.close)*"), None);
        let found = escape(&model, "(tool.open tool.close)*");
        assert_eq!(found, Some((vec![], Then::Moment(M::ToolClose))));
    }

    #[test]
    fn a_model_tells_its_words_and_no_others() {
        let model = of(&[&[M::TurnOpen, M::TurnEnd], &[M::TurnOpen, M::Usage, M::TurnEnd]]);
        assert!(model.tells(&[M::TurnOpen, M::Usage, M::TurnEnd], true));
        assert!(model.tells(&[M::TurnOpen], false));
        assert!(!model.tells(&[M::TurnOpen], true));
        assert!(!model.tells(&[M::Usage], false));
        let seen = model.seen_by(|m| m == M::TurnEnd);
        assert!(seen.tells(&[M::TurnEnd], true) && !seen.tells(&[M::TurnEnd, M::TurnEnd], false));
    }
}
