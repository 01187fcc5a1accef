//! A turn of two choices that go on beside each other, as `turn/` lets them: what is told of one event is told at once, and
//! a choice that is closing is closed before another one speaks. Less than can happen, never more: nobody knows how many
//! choices there are. So a way out of an order that is found here is one.

use super::choice::Lane;
use super::{Life, Stage};
use crate::domain::MomentKind as M;
use crate::domain::policy::ChoiceFrames;
use crate::order::proof::Model;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pair {
    stage: Stage<()>,
    /// The choices that have begun.
    lanes: Vec<Lane>,
    /// Has one of them said something?
    spoken: bool,
}

const MOST: usize = 2;

pub(super) fn model(life: &Life, sees: &dyn Fn(M) -> bool) -> Model {
    let start = Pair { stage: Stage::New, lanes: Vec::new(), spoken: false };
    Model::explore(start, |pair| pair.steps(life), |pair| pair.stage == Stage::Over).seen_by(sees)
}

impl Pair {
    fn steps(&self, life: &Life) -> Vec<(Vec<M>, Pair)> {
        match self.stage {
            Stage::New => {
                let mut steps = vec![(vec![M::TurnOpen, M::ChoiceOpen], self.grown())];
                steps.extend(life.empty_answer().map(|told| (told, self.over())));
                steps
            }
            Stage::Speaking(()) => self.speak(life),
            Stage::Over => Vec::new(),
        }
    }

    fn speak(&self, life: &Life) -> Vec<(Vec<M>, Pair)> {
        let mut steps = Vec::new();
        let closing = self.lanes.iter().any(Lane::is_closing);
        // Together: all of them open before one of them speaks.
        let together = life.policies.choice_frames == ChoiceFrames::Together;
        if self.lanes.len() < MOST && !closing && !(together && self.spoken) {
            steps.push((vec![M::ChoiceOpen], self.grown()));
        }
        for (at, lane) in self.lanes.iter().enumerate().filter(|(_, lane)| !closing || lane.is_closing()) {
            for (told, lane) in lane.steps(life) {
                let mut moved = self.clone();
                (moved.lanes[at], moved.spoken) = (lane, true);
                steps.push((told, moved));
            }
        }
        if self.lanes.iter().all(Lane::is_finished) {
            steps.extend(life.endings().into_iter().map(|told| (told, self.over())));
        }
        steps
    }

    fn grown(&self) -> Pair {
        let lanes = self.lanes.iter().copied().chain([Lane::default()]).collect();
        Pair { stage: Stage::Speaking(()), lanes, spoken: self.spoken }
    }

    fn over(&self) -> Pair {
        Pair { stage: Stage::Over, lanes: Vec::new(), spoken: true }
    }
}
