//! Which step of a script holds for a request.

use super::render::{Scope, holds};
use crate::domain::{Fault, FaultKind, TurnRequest};
use crate::mapping::config::script::{Action, Pace, ScriptPlan};
use crate::mapping::config::transcript::Transcript;
use std::sync::Arc;

/// The first step of the script that holds.
pub fn choose(script: &ScriptPlan, request: &TurnRequest) -> Result<(Arc<Transcript>, Pace), Fault> {
    let scope = Scope::request(request);
    for step in &script.steps {
        let wanted = match &step.when {
            Some(when) => holds(when, &scope, &script.pool).map_err(|e| {
                Fault::new(FaultKind::Internal, format!("a step of the script `{}` failed: {e}", script.name))
            })?,
            None => true,
        };
        if !wanted {
            continue;
        }
        return match &step.action {
            Action::Play { transcript, pace } => Ok((transcript.clone(), *pace)),
            Action::Refuse { param, message } => {
                Err(Fault { param: param.clone(), ..Fault::new(FaultKind::Unsupported, message.as_str()) })
            }
        };
    }
    Err(Fault::new(FaultKind::Internal, format!("no step of the script `{}` holds", script.name)))
}
