//! How a turn and its choices open: the start that a backend reports, and the first moments.

use super::choice_state::ChoiceState;
use super::{OnMoment, Turn, ids};
use crate::domain::policy::{ChoiceFrames, IdsPolicy, ModelEcho, StreamStart};
use crate::domain::{Choice, Fault, FaultKind, Moment, MomentKind};

impl Turn {
    /// Opens the turn before the first event of the backend, if the policy `stream_start` requires it.
    pub fn begin(&mut self, on_moment: &mut OnMoment) {
        if self.policies.stream_start == StreamStart::Immediately && !self.ended {
            self.ensure_choice(0, on_moment);
        }
    }

    /// The start that a backend reports before its first output: its id and model, as far as clients see them.
    pub(super) fn start(&mut self, id: Option<String>, model: Option<String>, created: Option<i64>) {
        self.count(model.as_ref().map_or(0, String::len) + id.as_ref().map_or(0, String::len));
        if let (Some(model), ModelEcho::Effective) = (model, self.policies.model_echo) {
            self.state.model = model;
        }
        if self.policies.ids == IdsPolicy::Backend {
            let id = id.as_deref().map(ids::without_prefixes).filter(|id| ids::is_usable_id(id));
            self.state.id = id.map_or_else(|| std::mem::take(&mut self.state.id), str::to_owned);
            self.state.created = created.unwrap_or(self.state.created);
        }
    }

    /// Opens the turn and all choices up to this one, because clients index choices by order of appearance.
    /// Returns false if the index exceeds the limit; the turn has then failed.
    pub(super) fn ensure_choice(&mut self, choice: usize, on_moment: &mut OnMoment) -> bool {
        if choice >= self.limits.choices {
            let message =
                format!("the backend sent choice index {choice}; the limit is {} choices", self.limits.choices);
            self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
            return false;
        }
        if !self.opened {
            self.opened = true;
            self.state.first_output_ms = Some(self.state.elapsed_ms);
            let together = self.policies.choice_frames == ChoiceFrames::Together;
            if together {
                self.choices.resize_with(self.requested_choices.min(self.limits.choices), ChoiceState::default);
                self.state.choices = (0..self.choices.len()).map(|index| Choice { index, finish: None }).collect();
            }
            on_moment(&self.state, &Moment::turn(MomentKind::TurnOpen));
            for index in 0..self.choices.len() {
                on_moment(&self.state, &Moment::choice(MomentKind::ChoiceOpen, index));
            }
        }
        while self.choices.len() <= choice {
            let index = self.choices.len();
            self.choices.push(ChoiceState::default());
            self.state.choices.push(Choice { index, finish: None });
            on_moment(&self.state, &Moment::choice(MomentKind::ChoiceOpen, index));
        }
        true
    }
}
