//! The connections of a client that have no request, and its connection of HTTP/2, which has any number of them.

use super::connector::Http2Sender;
use super::http1::Http1Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub struct IdleConnections {
    state: Mutex<State>,
    events: Arc<Events>,
    /// Of `events`.
    waker: Waker,
}

#[derive(Default)]
struct State {
    /// The last one was used last.
    http1: Vec<Idle<Box<Http1Connection>>>,
    http2: Option<Idle<Http2Sender>>,
    tick: u64,
    /// A task closes the connections that nobody uses, and those that the backend has closed.
    has_reaper: bool,
}

struct Idle<C> {
    connection: C,
    /// When it was used last.
    tick: u64,
}

/// Something happened on an idle connection.
#[derive(Debug, Default)]
struct Events(Notify);

const TICK: Duration = Duration::from_secs(15);
/// A connection is closed after 90 seconds. Counted in ticks, so that a request does not read the clock.
const MAX_IDLE_TICKS: u64 = 6;

impl Wake for Events {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl Default for IdleConnections {
    fn default() -> IdleConnections {
        let events = Arc::<Events>::default();
        IdleConnections { state: Mutex::default(), waker: Waker::from(events.clone()), events }
    }
}

impl IdleConnections {
    pub fn take_http1(&self) -> Option<Box<Http1Connection>> {
        let mut idle = self.lock().http1.pop()?;
        idle.connection.reuse();
        Some(idle.connection)
    }

    pub fn http2(&self) -> Option<Http2Sender> {
        let mut state = self.lock();
        let tick = state.tick;
        let idle = state.http2.as_mut().filter(|idle| !idle.connection.is_closed())?;
        idle.tick = tick;
        Some(idle.connection.clone())
    }

    /// Keeps a connection after its response was read completely, unless it ends with it.
    pub fn put_http1(self: &Arc<Self>, mut connection: Box<Http1Connection>) {
        if connection.poll_idle(&self.waker) {
            let mut state = self.lock();
            let tick = state.tick;
            state.http1.push(Idle { connection, tick });
            self.start_reaper(state);
        }
    }

    /// Keeps a new connection, unless another one was opened at the same time: then that is returned.
    pub fn share_http2(self: &Arc<Self>, connection: Http2Sender) -> Http2Sender {
        if let Some(open) = self.http2() {
            return open;
        }
        let mut state = self.lock();
        let tick = state.tick;
        state.http2 = Some(Idle { connection: connection.clone(), tick });
        self.start_reaper(state);
        connection
    }

    fn start_reaper(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if !state.has_reaper
            && let Ok(runtime) = Handle::try_current()
        {
            state.has_reaper = true;
            drop(state);
            runtime.spawn(self.clone().reap());
        }
    }

    /// Ends when there is no connection left.
    async fn reap(self: Arc<Self>) {
        let mut next_tick = Instant::now() + TICK;
        loop {
            let is_tick = timeout_at(next_tick, self.events.0.notified()).await.is_err();
            if is_tick {
                next_tick += TICK;
            }
            let mut state = self.lock();
            state.tick += u64::from(is_tick);
            let tick = state.tick;
            state.http1.retain_mut(|idle| tick - idle.tick < MAX_IDLE_TICKS && idle.connection.poll_idle(&self.waker));
            let is_used = |idle: &Idle<Http2Sender>| tick - idle.tick < MAX_IDLE_TICKS && !idle.connection.is_closed();
            state.http2 = state.http2.take().filter(is_used);
            if state.http1.is_empty() && state.http2.is_none() {
                state.has_reaper = false;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "../../../tests/unit/upstream_http_client_idle.rs"]
mod tests;
