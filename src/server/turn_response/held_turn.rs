//! A turn and its client: what happens to the turn if the client disconnects.

use super::TurnStream;
use crate::domain::policy::Disconnect;
use crate::domain::{Fault, FaultKind};
use std::future::poll_fn;
use tokio::runtime::Handle;

/// A turn while its client waits. Dropping it means that the client has disconnected: by the policy `disconnect`, the turn
/// is cancelled, or read to its end without a client.
pub struct HeldTurn(Option<Box<TurnStream>>);

impl HeldTurn {
    pub fn new(turn: TurnStream) -> HeldTurn {
        HeldTurn(Some(Box::new(turn)))
    }

    /// Only a dropped one has no turn.
    pub fn turn(&mut self) -> Result<&mut TurnStream, Fault> {
        self.0.as_deref_mut().ok_or_else(|| Fault::new(FaultKind::Internal, "the turn is over"))
    }
}

impl Drop for HeldTurn {
    fn drop(&mut self) {
        let Some(mut turn) = self.0.take() else { return };
        let drains = turn.dialect.resolved.policies.disconnect == Disconnect::Drain && !turn.is_over;
        let (true, Ok(runtime)) = (drains, Handle::try_current()) else { return };
        // As many as may have a client: their number must stay bounded too.
        let Ok(permit) = turn.drained.clone().try_acquire_owned() else { return };
        turn.leave_client();
        runtime.spawn(async move {
            let _permit = permit;
            read_to_end(turn).await;
        });
    }
}

/// Reads to the end of the backend's response, or to its idle limit.
async fn read_to_end(mut turn: Box<TurnStream>) {
    let mut unsent = Vec::new();
    while !turn.is_over {
        poll_fn(|cx| turn.poll_output(cx)).await;
        turn.pipeline.drain(&mut unsent);
        unsent.clear();
    }
}
