//! The messages of one turn, from the task of its worker to the task of its client. The queue is limited in bytes: a client
//! that reads slowly cannot stop the worker, which serves other turns too.

use crate::domain::{Fault, FaultKind, Tree};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[derive(Debug)]
pub enum TurnMessage {
    /// The answer to a call of the turn, with everything that its calls kept so far.
    Answer {
        step: usize,
        kept: Tree,
        message: Tree,
    },
    /// Another message of the turn.
    Event(Tree),
    Failed(Fault),
}

pub struct TurnSender {
    messages: UnboundedSender<(TurnMessage, usize)>,
    queued_bytes: Arc<AtomicUsize>,
    limit: usize,
}

pub struct TurnReceiver {
    messages: UnboundedReceiver<(TurnMessage, usize)>,
    queued_bytes: Arc<AtomicUsize>,
}

/// `limit`: in bytes of JSON.
pub fn turn_queue(limit: usize) -> (TurnSender, TurnReceiver) {
    let (sender, receiver) = unbounded_channel();
    let queued_bytes = Arc::<AtomicUsize>::default();
    let sender = TurnSender { messages: sender, queued_bytes: queued_bytes.clone(), limit };
    (sender, TurnReceiver { messages: receiver, queued_bytes })
}

impl TurnSender {
    /// False if the queue is full: the turn has failed.
    pub fn send(&self, message: TurnMessage, bytes: usize) -> bool {
        let queued = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_full = queued > self.limit;
        let message = match is_full {
            false => message,
            true => {
                let text = format!("the client reads too slowly: more than {} bytes are waiting for it", self.limit);
                TurnMessage::Failed(Fault::new(FaultKind::Malformed, text))
            }
        };
        // Without a receiver the turn is over.
        let _ = self.messages.send((message, bytes));
        !is_full
    }
}

impl TurnReceiver {
    /// `None`: the worker has ended.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<(TurnMessage, usize)>> {
        let received = self.messages.poll_recv(cx);
        if let Poll::Ready(Some((_, bytes))) = &received {
            self.queued_bytes.fetch_sub(*bytes, Ordering::Relaxed);
        }
        received
    }
}
