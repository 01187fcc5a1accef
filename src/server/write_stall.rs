//! Notices clients that stop reading. Without a limit they would keep their turn, its slot and the backend's response
//! for ever.
//!
//! Over HTTP/1 a client that does not read blocks the socket. Over HTTP/2 it can also close the window of one stream
//! while others go on; then hyper does not ask for the next frame of that stream's body. Both are a [`StallWatch`]: a
//! clock that starts when a write must wait, and stops with the next progress.

use super::watched_body::WatchedBody;
use crate::telemetry::{ClientTimeout, Metrics};
use hyper::rt::Executor;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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
}

/// Runs the streams of HTTP/2 connections, each with a watch of its own.
#[derive(Clone)]
pub struct StreamExecutor {
    pub timeout: Arc<WriteTimeout>,
}

/// Until a limit that was changed by a reload is noticed.
const MAX_SLEEP: Duration = Duration::from_secs(60);

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
        ResponseWatch { connection, stream: STREAM_WATCH.try_with(Arc::clone).ok() }
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
        let (waiting_since, expired) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(StallWatch { created: Instant::now(), waiting_since, expired })
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
        }
    }

    /// Whether the client was given up.
    fn has_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    fn waited(&self) -> Option<Duration> {
        let since = Some(self.waiting_since.load(Ordering::Relaxed)).filter(|since| *since > 0)?;
        Some(self.created.elapsed().saturating_sub(Duration::from_millis(since - 1)))
    }

    /// Resolves when a write has waited for longer than the limit.
    async fn expire(&self, timeout: &WriteTimeout) {
        loop {
            let pause = match (timeout.limit(), self.waited()) {
                (None, _) => MAX_SLEEP,
                (Some(limit), Some(waited)) if waited >= limit => break,
                (Some(limit), waited) => limit - waited.unwrap_or_default(),
            };
            sleep(pause.min(MAX_SLEEP)).await;
        }
        self.expired.store(true, Ordering::Relaxed);
        timeout.metrics.count_client_timeout(ClientTimeout::Write);
    }

    /// Runs a connection or a stream. `Err`: it was dropped, because the client stopped reading.
    pub async fn guard<F: Future>(&self, future: F, timeout: &WriteTimeout) -> Result<F::Output, Stalled> {
        tokio::select! {
            output = future => Ok(output),
            () = self.expire(timeout) => Err(Stalled),
        }
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
