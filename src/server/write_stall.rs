//! Notices clients that stop reading. Without a limit they would keep their turn, its slot and the backend's response
//! for ever.
//!
//! Over HTTP/1 a client that does not read blocks the socket. Over HTTP/2 it can also close the window of one stream
//! while others go on; then hyper does not ask for the next frame of that stream's body. Both are a [`StallWatch`]: a
//! clock that starts when a write must wait, and stops with the next progress.

use super::watched_body::WatchedBody;
use crate::telemetry::{ClientTimeout, Metrics};
use hyper::rt::Executor;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// `timeouts.write` of the current generation. Shared by all connections, which outlive generations.
#[derive(Default)]
pub struct WriteTimeout {
    /// 0: no limit.
    limit_ms: AtomicU64,
    metrics: Arc<Metrics>,
}

/// Whether the client accepts what is sent to it.
pub struct StallWatch {
    created: Instant,
    /// Milliseconds from `created`, plus one; 0 if no write waits.
    waiting_since: AtomicU64,
    expired: AtomicBool,
    /// Of a connection: this wait was counted, by itself or by a stream.
    is_counted: AtomicBool,
    /// Of an HTTP/2 stream, once its request is known. While the socket of the connection is blocked, its streams cannot
    /// go on either: then the connection is what expires, and is counted.
    connection: OnceLock<Arc<StallWatch>>,
}

/// Runs the streams of HTTP/2 connections, each with a watch of its own.
#[derive(Clone)]
pub struct StreamExecutor {
    pub timeout: Arc<WriteTimeout>,
}

/// Until a limit that was changed by a reload is noticed.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// Until a stream looks again whether its blocked connection has gone on.
const MIN_SLEEP: Duration = Duration::from_millis(10);

tokio::task_local! {
    /// The watch of the HTTP/2 stream.
    static STREAM_WATCH: Arc<StallWatch>;
}

/// Whether the client of a request still reads its response.
#[derive(Clone)]
pub struct ResponseWatch {
    connection: Arc<StallWatch>,
    /// Only over HTTP/2.
    stream: Option<Arc<StallWatch>>,
}

impl ResponseWatch {
    /// For a request that the current task serves.
    pub fn of_request(connection: Arc<StallWatch>) -> ResponseWatch {
        let stream = STREAM_WATCH.try_with(Arc::clone).ok();
        if let Some(stream) = &stream {
            stream.connection.get_or_init(|| Arc::clone(&connection));
        }
        ResponseWatch { connection, stream }
    }

    pub fn has_expired(&self) -> bool {
        self.connection.has_expired() || self.stream.as_ref().is_some_and(|stream| stream.has_expired())
    }

    /// Watches the body of the response. Over HTTP/1 its socket is watched.
    pub fn body<B>(self, body: B) -> WatchedBody<B> {
        WatchedBody::new(body, self.stream)
    }
}

impl WriteTimeout {
    pub fn new(metrics: Arc<Metrics>) -> WriteTimeout {
        WriteTimeout { limit_ms: AtomicU64::new(0), metrics }
    }

    pub fn set(&self, limit: Option<Duration>) {
        self.limit_ms.store(limit.map_or(0, |limit| limit.as_millis() as u64), Ordering::Relaxed);
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.limit_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0).map(Duration::from_millis)
    }
}

impl StallWatch {
    pub fn start() -> Arc<StallWatch> {
        Arc::new(StallWatch {
            created: Instant::now(),
            waiting_since: AtomicU64::new(0),
            expired: AtomicBool::new(false),
            is_counted: AtomicBool::new(false),
            connection: OnceLock::new(),
        })
    }

    /// A write waits for the client. The first call since the last progress starts the clock.
    pub fn wait(&self) {
        let now = self.created.elapsed().as_millis() as u64 + 1;
        let _ = self.waiting_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn progress(&self) {
        // A load is cheaper than a store, and mostly nothing waits.
        if self.waiting_since.load(Ordering::Relaxed) != 0 {
            self.waiting_since.store(0, Ordering::Relaxed);
            self.is_counted.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the client was given up.
    pub fn has_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    fn waited(&self) -> Option<Duration> {
        let since = Some(self.waiting_since.load(Ordering::Relaxed)).filter(|since| *since > 0)?;
        Some(self.created.elapsed().saturating_sub(Duration::from_millis(since - 1)))
    }

    fn is_blocked(&self) -> bool {
        self.has_expired() || self.waiting_since.load(Ordering::Relaxed) != 0
    }

    fn connection_waited(&self) -> Option<Duration> {
        self.connection.get()?.waited()
    }

    /// Ready when a write has waited for longer than the limit. The timer exists only if a write had to wait.
    fn poll_expired(
        &self,
        timer: &mut Option<Pin<Box<Sleep>>>,
        timeout: &WriteTimeout,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if self.waiting_since.load(Ordering::Relaxed) == 0 {
            return Poll::Pending;
        }
        loop {
            if let Some(timer) = timer {
                ready!(timer.as_mut().poll(cx));
            }
            let pause = match (timeout.limit(), self.waited()) {
                (None, _) => MAX_SLEEP,
                // A connection that goes on now and then does not keep its streams for ever.
                (Some(limit), Some(waited)) if waited >= limit.saturating_mul(2) => break,
                (Some(limit), Some(waited)) if waited >= limit => match self.connection_waited() {
                    None => break,
                    Some(waited) => limit.saturating_sub(waited).max(MIN_SLEEP),
                },
                (Some(limit), waited) => limit - waited.unwrap_or_default(),
            };
            *timer = Some(Box::pin(sleep(pause.min(MAX_SLEEP))));
        }
        self.expired.store(true, Ordering::Relaxed);
        // A connection and its streams can expire together, because of the same client.
        let blocked = self.connection.get().filter(|connection| connection.is_blocked());
        if !blocked.map_or(self, Arc::as_ref).is_counted.swap(true, Ordering::Relaxed) {
            timeout.metrics.count_client_timeout(ClientTimeout::Write);
        }
        Poll::Ready(())
    }

    /// Runs a connection or a stream, which reports its own waits. `Err`: it was dropped, because the client stopped
    /// reading.
    pub async fn guard<F: Future>(&self, future: F, timeout: &WriteTimeout) -> Result<F::Output, Stalled> {
        let (mut future, mut timer) = (pin!(future), None);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_expired(&mut timer, timeout, cx).map(|()| Err(Stalled)),
        })
        .await
    }
}

/// The client stopped reading.
pub struct Stalled;

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let timeout = Arc::clone(&self.timeout);
        tokio::spawn(async move {
            let watch = StallWatch::start();
            let stream = STREAM_WATCH.scope(Arc::clone(&watch), stream);
            // Dropping the stream resets it; the others of its connection go on.
            if let Err(Stalled) = watch.guard(stream, &timeout).await {
                tracing::info!("a client stopped reading, its stream was reset");
            }
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/server_write_stall.rs"]
mod tests;
