//! TurnRequest → backend → RawEvents. The only folder that talks to backends.

pub mod decode;
mod replay;

use crate::canon::{Ended, Fault, FaultKind, Tree, TurnRequest};
use crate::mapping::Plan;
use crate::mapping::backend::{BackendPlan, Transport};
use crate::mapping::gateway::Backend;
use replay::Replay;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What arrives from a backend.
#[derive(Debug)]
pub enum Arrived {
    Raw(Tree),
    Ended(Ended),
}

/// A backend at work on one turn. Dropping it leaves the backend.
pub enum Source {
    Replay(Replay),
}

impl Source {
    /// After `Arrived::Ended` it is not asked again.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        match self {
            Source::Replay(replay) => replay.poll_next(cx),
        }
    }
}

/// Asks the backend. The rules that read its answer come with the source: a transcript names its own.
pub fn ask(plan: &Plan, backend: &Backend, request: &TurnRequest) -> Result<(Source, Arc<BackendPlan>), Fault> {
    match backend.plan.transport {
        Transport::Replay => {
            let script = backend
                .script
                .as_ref()
                .ok_or_else(|| Fault::new(FaultKind::Internal, "the replay backend has no script"))?;
            let (transcript, pace) = replay::choose(script, request)?;
            let rules = plan
                .backend(&transcript.backend)
                .ok_or_else(|| Fault::new(FaultKind::Internal, "the transcript's backend is gone"))?;
            Ok((Source::Replay(Replay::new(transcript, pace)), rules.clone()))
        }
        Transport::Http | Transport::ChildJsonrpc => Err(Fault::new(
            FaultKind::Unreachable,
            format!("the backend `{}` is not reached by this version", backend.name),
        )),
    }
}
