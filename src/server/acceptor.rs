//! Accepts connections one at a time: waits for a free connection slot, then for a socket; backs off when accepting fails,
//! and refuses clients when no file descriptor is left.

use super::listener::Listener;
use super::refusal::Reserve;
use crate::upstream::descriptors::is_out_of_descriptors;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, warn};

const MIN_BACKOFF: Duration = Duration::from_millis(5);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// Errors of the same kind within this time are one burst, which is logged once.
const BURST_WINDOW: Duration = Duration::from_secs(10);

pub(super) struct Acceptor {
    listener: Listener,
    slots: Arc<Semaphore>,
    backoff: Backoff,
    failing: ErrorBurst,
    full: ErrorBurst,
    reserve: Reserve,
    refusing: ErrorBurst,
}

/// How long to wait after an accept that failed. The end of the wait is a point in time and not a sleep, because the
/// accept loop drops and restarts the wait whenever a connection ends.
struct Backoff {
    next: Duration,
    until: Option<Instant>,
}

#[derive(Default)]
struct ErrorBurst {
    last: Option<Instant>,
}

/// An accepted connection and its slot.
pub(super) struct Accepted {
    pub socket: TcpStream,
    pub peer: SocketAddr,
    pub slot: OwnedSemaphorePermit,
}

impl Acceptor {
    pub fn new(listener: Listener) -> Acceptor {
        let slots = Arc::new(Semaphore::new(listener.limits.max_connections));
        let (failing, full) = (ErrorBurst::default(), ErrorBurst::default());
        Acceptor {
            listener,
            slots,
            backoff: Backoff::none(),
            failing,
            full,
            reserve: Reserve::new(),
            refusing: ErrorBurst::default(),
        }
    }

    /// The next connection. Cancel-safe: may be dropped at any await without losing a socket.
    pub async fn next(&mut self) -> Accepted {
        loop {
            if let Some(until) = self.backoff.until {
                tokio::time::sleep_until(until.into()).await;
            }
            let slot = self.acquire_slot().await;
            self.reserve.renew();
            match self.listener.accept().await {
                Ok((socket, peer)) => {
                    self.backoff = Backoff::none();
                    return Accepted { socket, peer, slot };
                }
                // Only that client has disconnected. Each such error consumes a client, so the loop cannot spin.
                Err(error) if concerns_one_client(&error) => {
                    debug!(%error, "a client disconnected before it was accepted");
                }
                Err(error) => {
                    let now = Instant::now();
                    if is_out_of_descriptors(&error) && self.reserve.refuse_one(&self.listener).await {
                        if self.refusing.begins(now) {
                            warn!(%error, "no file descriptors left, new clients are refused with 503");
                        }
                        continue;
                    }
                    let pause = self.backoff.increase(now);
                    if self.failing.begins(now) {
                        warn!(%error, ?pause, "cannot accept connections, retrying");
                    }
                }
            }
        }
    }

    async fn acquire_slot(&mut self) -> OwnedSemaphorePermit {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return slot;
        }
        if self.full.begins(Instant::now()) {
            let connections = self.listener.limits.max_connections;
            warn!(connections, "connection limit reached, new clients wait");
        }
        match Arc::clone(&self.slots).acquire_owned().await {
            Ok(slot) => slot,
            // Only a closed semaphore fails, and this one is never closed.
            Err(_) => pending().await,
        }
    }
}

impl Backoff {
    fn none() -> Backoff {
        Backoff { next: MIN_BACKOFF, until: None }
    }

    fn increase(&mut self, now: Instant) -> Duration {
        let pause = self.next;
        self.until = Some(now + pause);
        self.next = (pause * 2).min(MAX_BACKOFF);
        pause
    }
}

impl ErrorBurst {
    /// Whether an error at `now` is the first of a burst.
    fn begins(&mut self, now: Instant) -> bool {
        self.last.replace(now).is_none_or(|last| now.duration_since(last) > BURST_WINDOW)
    }
}

fn concerns_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/server_acceptor.rs"]
mod tests;
