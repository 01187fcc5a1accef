//! Selects the step of a script for a request.

use super::render::{Scope, is_true};
use crate::domain::{Fault, FaultKind, TurnRequest};
use crate::mapping::config::script::{ReplayPace, ScriptAction, ScriptPlan};
use crate::mapping::config::transcript::Transcript;
use std::sync::Arc;

/// The transcript of the first step that matches the request.
pub fn select_transcript(script: &ScriptPlan, request: &TurnRequest) -> Result<(Arc<Transcript>, ReplayPace), Fault> {
    let scope = Scope::request(request);
    for step in &script.steps {
        let matches = match &step.when {
            Some(when) => is_true(when, &scope, &script.pool).map_err(|e| {
                Fault::new(
                    FaultKind::Internal,
                    format!("a step of the script `{}` could not be evaluated: {e}", script.name),
                )
            })?,
            None => true,
        };
        if !matches {
            continue;
        }
        return match &step.action {
            ScriptAction::Play { transcript, pace } => Ok((transcript.clone(), *pace)),
            ScriptAction::Reject { param, message } => {
                Err(Fault { param: param.clone(), ..Fault::new(FaultKind::Unsupported, message.as_str()) })
            }
        };
    }
    Err(Fault::new(FaultKind::Internal, format!("no step of the script `{}` matches the request", script.name)))
}
