//! The upstream response of a turn on a child process: makes the calls of the turn and receives its messages. Dropping it
//! cancels the turn.

use super::super::{UpstreamEvent, UpstreamStats};
use super::pool::{ChildPool, Lease};
use super::turn_queue::{TurnMessage, TurnReceiver};
use crate::domain::{Fault, FaultKind, StreamEnd, Tree};
use crate::engine::conversation::TurnCalls;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pub struct ChildSource {
    state: ChildState,
    calls: TurnCalls,
    stats: UpstreamStats,
}

type Acquired = Result<(Lease, TurnReceiver), Fault>;

enum ChildState {
    /// Waits for a worker.
    Acquiring(Pin<Box<dyn Future<Output = Acquired> + Send>>),
    Running {
        lease: Lease,
        messages: TurnReceiver,
    },
    Done,
}

impl ChildSource {
    /// `queue_bytes`: how much may wait for the client.
    pub fn new(pool: Arc<ChildPool>, calls: TurnCalls, queue_bytes: usize) -> ChildSource {
        let plan = calls.plan().clone();
        let acquired = Box::pin(async move { pool.acquire(plan, queue_bytes).await });
        let stats = UpstreamStats { streamed: true, ..UpstreamStats::default() };
        ChildSource { state: ChildState::Acquiring(acquired), calls, stats }
    }

    pub fn stats(&self) -> UpstreamStats {
        self.stats
    }

    /// The client's turn is finished: the process may stop, but what it sends until then belongs to the turn.
    pub fn finish_early(&mut self) {
        if let ChildState::Running { lease, .. } = &mut self.state {
            lease.finish();
        }
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamEvent> {
        loop {
            match &mut self.state {
                ChildState::Acquiring(acquired) => match ready!(acquired.as_mut().poll(cx)) {
                    Ok((lease, messages)) => {
                        self.state = ChildState::Running { lease, messages };
                        if let Err(fault) = self.call(0, &Tree::Map(Vec::new())) {
                            return Poll::Ready(self.fail(fault));
                        }
                    }
                    Err(fault) => return Poll::Ready(self.fail(fault)),
                },
                ChildState::Running { lease, messages } => {
                    let Some((message, bytes)) = ready!(messages.poll_recv(cx)) else {
                        let why = lease.worker.exit_reason();
                        self.state = ChildState::Done;
                        return Poll::Ready(UpstreamEvent::Ended(StreamEnd::Disconnected(why)));
                    };
                    self.stats.bytes += bytes as u64;
                    self.stats.data_bytes += bytes as u64;
                    return Poll::Ready(self.on_message(message));
                }
                ChildState::Done => return Poll::Ready(UpstreamEvent::Ended(StreamEnd::Eof)),
            }
        }
    }

    fn on_message(&mut self, message: TurnMessage) -> UpstreamEvent {
        match message {
            TurnMessage::Event(message) => {
                self.stats.events += 1;
                UpstreamEvent::Raw(message)
            }
            TurnMessage::Answer { message, .. } if message.get("error").is_some() => {
                self.state = ChildState::Done;
                UpstreamEvent::CallFailed { fault: call_fault(&message), raw: message }
            }
            TurnMessage::Answer { step, kept, message } => match self.call(step + 1, &kept) {
                Ok(()) => UpstreamEvent::Raw(message),
                Err(fault) => self.fail(fault),
            },
            TurnMessage::Failed(fault) => self.fail(fault),
        }
    }

    /// Makes the next call, and all notifications before it.
    fn call(&mut self, mut from: usize, kept: &Tree) -> Result<(), Fault> {
        let ChildState::Running { lease, .. } = &self.state else { return Ok(()) };
        while let Some(call) = self.calls.next(from, kept, &lease.worker.values)? {
            from = call.step + 1;
            let is_answered = call.is_answered;
            lease.call(call);
            if is_answered {
                break;
            }
        }
        Ok(())
    }

    fn fail(&mut self, fault: Fault) -> UpstreamEvent {
        self.state = ChildState::Done;
        UpstreamEvent::Failed(fault)
    }
}

/// The fault of a call that was answered with an error, unless the backend's rules read it.
fn call_fault(message: &Tree) -> Fault {
    let error = message.get("error");
    let text = error.and_then(|error| error.get("message")).and_then(Tree::as_str);
    Fault::new(FaultKind::Backend, text.unwrap_or("the backend rejected a call"))
}
