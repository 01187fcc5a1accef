//! A turn with two interleaved choices, exactly as `turn/` emits them: the moments of one event stay together, and a
//! choice that is closing closes before another one continues. It under-approximates turns with more choices, so every
//! counterexample found here is possible.

use super::choice::ChoiceModel;
use super::{TurnModel, TurnPhase};
use crate::domain::MomentKind as M;
use crate::domain::policy::ChoiceFrames;
use crate::order::proof::MomentNfa;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TwoChoices {
    phase: TurnPhase<()>,
    /// The choices that have opened.
    choices: Vec<ChoiceModel>,
    /// One of them has emitted content.
    has_emitted: bool,
}

const MAX_CHOICES: usize = 2;

pub(super) fn model(turn_model: &TurnModel, visible: &dyn Fn(M) -> bool) -> MomentNfa {
    let start = TwoChoices { phase: TurnPhase::NotStarted, choices: Vec::new(), has_emitted: false };
    MomentNfa::explore(start, |two| two.steps(turn_model), |two| two.phase == TurnPhase::Ended).project(visible)
}

impl TwoChoices {
    fn steps(&self, turn_model: &TurnModel) -> Vec<(Vec<M>, TwoChoices)> {
        match self.phase {
            TurnPhase::NotStarted => turn_model.openings(self.with_new_choice(), self.ended()),
            TurnPhase::Running(()) => self.content_steps(turn_model),
            TurnPhase::Ended => Vec::new(),
        }
    }

    fn content_steps(&self, turn_model: &TurnModel) -> Vec<(Vec<M>, TwoChoices)> {
        let mut steps = Vec::new();
        let closing = self.choices.iter().any(ChoiceModel::is_closing);
        // Together: all choices open before the first content.
        let together = turn_model.policies.choice_frames == ChoiceFrames::Together;
        if self.choices.len() < MAX_CHOICES && !closing && !(together && self.has_emitted) {
            steps.push((vec![M::ChoiceOpen], self.with_new_choice()));
        }
        for (at, choice) in self.choices.iter().enumerate().filter(|(_, choice)| !closing || choice.is_closing()) {
            for (moments, choice) in choice.steps(turn_model) {
                let mut moved = self.clone();
                (moved.choices[at], moved.has_emitted) = (choice, true);
                steps.push((moments, moved));
            }
        }
        if self.choices.iter().all(ChoiceModel::is_finished) {
            steps.extend(turn_model.endings().map(|moments| (moments, self.ended())));
        }
        steps
    }

    fn with_new_choice(&self) -> TwoChoices {
        let choices = self.choices.iter().copied().chain([ChoiceModel::default()]).collect();
        TwoChoices { phase: TurnPhase::Running(()), choices, has_emitted: self.has_emitted }
    }

    fn ended(&self) -> TwoChoices {
        TwoChoices { phase: TurnPhase::Ended, choices: Vec::new(), has_emitted: true }
    }
}
