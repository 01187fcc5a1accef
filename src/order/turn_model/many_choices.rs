//! A turn with an unbounded number of choices, by counter abstraction: for each state of a choice, whether zero, one or
//! many choices are in it. The choices advance independently.

use super::{Tally, TurnModel, TurnPhase};
use crate::domain::MomentKind as M;
use crate::domain::policy::ChoiceFrames;
use crate::order::proof::{DfaState, MomentDfa, MomentNfa};

/// How many choices are in each state of the automaton of one choice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ManyChoices {
    phase: TurnPhase<()>,
    tallies: Vec<Tally>,
    /// Further choices may open.
    can_grow: bool,
}

/// The maximum number of states of one choice that are distinguished: the number of combinations is exponential in it.
const MAX_DFA_STATES: usize = 6;

/// Whether a model accepts exactly the possible sequences, or also others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Exact,
    OverApproximation,
}

/// `visible`: the moments that matter to the caller. Fewer moments make a smaller automaton.
pub(super) fn model(turn_model: &TurnModel, visible: &dyn Fn(M) -> bool) -> (MomentNfa, Precision) {
    let (one, precision) = dfa(turn_model, visible);
    let start =
        ManyChoices { phase: TurnPhase::NotStarted, tallies: vec![Tally::Zero; one.states.len()], can_grow: true };
    let next = |many: &ManyChoices| many.steps(turn_model, &one);
    (MomentNfa::explore(start, next, |many| many.phase == TurnPhase::Ended).project(visible), precision)
}

/// The automaton of one choice.
fn dfa(turn_model: &TurnModel, visible: &dyn Fn(M) -> bool) -> (MomentDfa, Precision) {
    let choice = turn_model.open_choice().project(visible);
    if let Some(dfa) = MomentDfa::determinize(&choice, MAX_DFA_STATES) {
        // This model interleaves choices at every moment, while `turn/` emits the moments of one event together. It is
        // therefore exact only if each event emits at most one visible moment.
        let precision = if choice.alphabet().into_iter().all(is_emitted_alone) {
            Precision::Exact
        } else {
            Precision::OverApproximation
        };
        return (dfa, precision);
    }
    // Fallback: any moment at any time until the finish, which over-approximates.
    let next = choice.alphabet().into_iter().map(|m| (m, usize::from(m == M::ChoiceFinish))).collect();
    let accepting = !visible(M::ChoiceFinish);
    let states = vec![DfaState { next, accepting }, DfaState { accepting: true, ..Default::default() }];
    (MomentDfa { states }, Precision::OverApproximation)
}

/// True if no event emits this moment together with another moment for which this is also true.
fn is_emitted_alone(moment: M) -> bool {
    match moment {
        M::TextDelta | M::RefusalDelta | M::Annotation | M::SummaryDelta | M::ThoughtDelta | M::ChoiceFinish => true,
        M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnFail | M::TurnEnd | M::ChoiceOpen => false,
        M::Usage | M::Idle => false,
        M::MessageOpen | M::MessageClose | M::PartOpen | M::PartClose => false,
        M::ReasoningOpen | M::ReasoningClose | M::SummaryOpen | M::SummaryClose => false,
        M::ThoughtOpen | M::ThoughtClose | M::ToolOpen | M::ToolArgs | M::ToolClose => false,
    }
}

impl ManyChoices {
    fn steps(&self, turn_model: &TurnModel, one: &MomentDfa) -> Vec<(Vec<M>, ManyChoices)> {
        match self.phase {
            TurnPhase::NotStarted => {
                turn_model.openings(self.at(TurnPhase::Running(())).with(0, one), self.at(TurnPhase::Ended))
            }
            TurnPhase::Running(()) => self.content_steps(turn_model, one),
            TurnPhase::Ended => Vec::new(),
        }
    }

    fn content_steps(&self, turn_model: &TurnModel, one: &MomentDfa) -> Vec<(Vec<M>, ManyChoices)> {
        let mut steps = Vec::new();
        let together = turn_model.policies.choice_frames == ChoiceFrames::Together;
        // Together: all choices open before the first content.
        let grown = ManyChoices { can_grow: self.can_grow && !together, ..self.clone() };
        if self.can_grow {
            steps.push((vec![M::ChoiceOpen], self.with(0, one)));
        }
        for (state_index, state) in one.states.iter().enumerate() {
            for (moment, to) in &state.next {
                for remaining in self.tallies[state_index].after_one_less() {
                    let mut moved = grown.clone();
                    moved.tallies[state_index] = *remaining;
                    steps.push((vec![*moment], moved.with(*to, one)));
                }
            }
        }
        let all_finished = one.states.iter().zip(&self.tallies).all(|(s, count)| s.accepting || *count == Tally::Zero);
        if all_finished {
            steps.extend(turn_model.endings().map(|moments| (moments, self.at(TurnPhase::Ended))));
        }
        steps
    }

    fn at(&self, phase: TurnPhase<()>) -> ManyChoices {
        // After the end the tallies no longer matter; equal states keep the automaton small.
        let tallies =
            if phase == TurnPhase::Ended { vec![Tally::Zero; self.tallies.len()] } else { self.tallies.clone() };
        ManyChoices { phase, tallies, can_grow: self.can_grow }
    }

    /// One more choice in this state. Choices in a final state without transitions need not be counted.
    fn with(&self, state_index: usize, one: &MomentDfa) -> ManyChoices {
        let mut many = self.clone();
        let over = one.states[state_index].accepting && one.states[state_index].next.is_empty();
        if !over {
            many.tallies[state_index] = many.tallies[state_index].after_one_more();
        }
        many
    }
}
