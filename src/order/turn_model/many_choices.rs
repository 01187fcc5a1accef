//! A turn of several choices. Nobody knows how many, so they are counted as "none, one, more" at each point of a life,
//! and each goes on by itself.

use super::{Life, Stage};
use crate::domain::MomentKind as M;
use crate::domain::policy::ChoiceFrames;
use crate::order::proof::{Machine, MachineState, Model};

/// How many choices are at each point of the life of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Crowd {
    stage: Stage<()>,
    counts: Vec<Count>,
    /// May further choices begin?
    growing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Count {
    None,
    One,
    More,
}

/// More points than these are not told apart: the number of crowds would grow with their power.
const POINTS: usize = 6;

/// Is all that a model holds what can happen, or more?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Exact,
    More,
}

/// `sees`: the moments that the reader of this turn can see at all; fewer of them make smaller crowds.
pub(super) fn model(life: &Life, sees: &dyn Fn(M) -> bool) -> (Model, Holds) {
    let (one, holds) = machine(life, sees);
    let start = Crowd { stage: Stage::New, counts: vec![Count::None; one.states.len()], growing: true };
    let next = |crowd: &Crowd| crowd.steps(life, &one);
    (Model::explore(start, next, |crowd| crowd.stage == Stage::Over).seen_by(sees), holds)
}

/// The life of one of them.
fn machine(life: &Life, sees: &dyn Fn(M) -> bool) -> (Machine, Holds) {
    let lane = life.lane().seen_by(sees);
    if let Some(machine) = Machine::of(&lane, POINTS) {
        // Here each goes on moment by moment. What `turn/` tells of one event nobody comes between, so that is exact where
        // an event tells one of them at most.
        let holds = if lane.moments().into_iter().all(alone) { Holds::Exact } else { Holds::More };
        return (machine, holds);
    }
    // Any moment at any time, until the finish: more than can happen, never less.
    let speaking = lane.moments().into_iter().map(|m| (m, usize::from(m == M::ChoiceFinish))).collect();
    let ends = !sees(M::ChoiceFinish);
    let states = vec![MachineState { next: speaking, ends }, MachineState { ends: true, ..Default::default() }];
    (Machine { states }, Holds::More)
}

/// Is it told without another one of its kind, so that those who see nothing else see one at a time?
fn alone(moment: M) -> bool {
    match moment {
        M::TextDelta | M::RefusalDelta | M::Annotation | M::SummaryDelta | M::ThoughtDelta | M::ChoiceFinish => true,
        M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnFail | M::TurnEnd | M::Usage | M::ChoiceOpen => false,
        M::MessageOpen | M::MessageClose | M::PartOpen | M::PartClose => false,
        M::ReasoningOpen | M::ReasoningClose | M::SummaryOpen | M::SummaryClose => false,
        M::ThoughtOpen | M::ThoughtClose | M::ToolOpen | M::ToolArgs | M::ToolClose => false,
    }
}

impl Crowd {
    fn steps(&self, life: &Life, one: &Machine) -> Vec<(Vec<M>, Crowd)> {
        match self.stage {
            Stage::New => {
                let mut steps = vec![(vec![M::TurnOpen, M::ChoiceOpen], self.at(Stage::Speaking(())).with(0, one))];
                steps.extend(life.empty_answer().map(|told| (told, self.at(Stage::Over))));
                steps
            }
            Stage::Speaking(()) => self.speak(life, one),
            Stage::Over => Vec::new(),
        }
    }

    fn speak(&self, life: &Life, one: &Machine) -> Vec<(Vec<M>, Crowd)> {
        let mut steps = Vec::new();
        let together = life.policies.choice_frames == ChoiceFrames::Together;
        // Together: all of them open before one of them speaks.
        let grown = Crowd { growing: self.growing && !together, ..self.clone() };
        if self.growing {
            steps.push((vec![M::ChoiceOpen], self.with(0, one)));
        }
        for (point, state) in one.states.iter().enumerate() {
            for (moment, to) in &state.next {
                for left in self.counts[point].less() {
                    let mut moved = grown.clone();
                    moved.counts[point] = *left;
                    steps.push((vec![*moment], moved.with(*to, one)));
                }
            }
        }
        let all_finished = one.states.iter().zip(&self.counts).all(|(s, count)| s.ends || *count == Count::None);
        if all_finished {
            steps.extend(life.endings().into_iter().map(|told| (told, self.at(Stage::Over))));
        }
        steps
    }

    fn at(&self, stage: Stage<()>) -> Crowd {
        // After the end nobody is counted.
        let counts = if stage == Stage::Over { vec![Count::None; self.counts.len()] } else { self.counts.clone() };
        Crowd { stage, counts, growing: self.growing }
    }

    /// One more at this point. Those that have nothing more to say need not be counted.
    fn with(&self, point: usize, one: &Machine) -> Crowd {
        let mut crowd = self.clone();
        let over = one.states[point].ends && one.states[point].next.is_empty();
        if !over {
            crowd.counts[point] = match crowd.counts[point] {
                Count::None => Count::One,
                Count::One | Count::More => Count::More,
            };
        }
        crowd
    }
}

impl Count {
    /// What may be left when one of them moves on.
    fn less(self) -> &'static [Count] {
        match self {
            Count::None => &[],
            Count::One => &[Count::None],
            Count::More => &[Count::One, Count::More],
        }
    }
}
