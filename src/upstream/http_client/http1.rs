//! A connection of HTTP/1, which the task of its request polls.

use super::Request;
use super::connector::Stream;
use super::send_error::SendError;
use super::wakeups::Wakeups;
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

pub struct Http1Connection {
    /// `None`: it has ended.
    connection: Option<http1::Connection<Stream, Full<Bytes>>>,
    sender: SendRequest<Full<Bytes>>,
    wakeups: Arc<Wakeups>,
    /// Of `wakeups`.
    waker: Waker,
    /// It had a request before the current one, so the backend may have closed it meanwhile.
    pub is_reused: bool,
}

/// The response of a connection. On an error, the request is returned if nothing of it was sent.
pub type Responding = Pin<Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request>>> + Send>>;

/// Polls without waiting: more of them would let other tasks starve.
const MAX_ROUNDS: usize = 16;

impl Http1Connection {
    pub async fn open(stream: Stream) -> Result<Box<Http1Connection>, SendError> {
        let (sender, connection) = http1::handshake(stream).await.map_err(SendError::Send)?;
        let wakeups = Arc::<Wakeups>::default();
        let (waker, connection) = (Waker::from(wakeups.clone()), Some(connection));
        Ok(Box::new(Http1Connection { connection, sender, wakeups, waker, is_reused: false }))
    }

    /// It is no longer in the pool: what happens to it no longer concerns those that are idle.
    pub fn reuse(&mut self) {
        self.is_reused = true;
        self.wakeups.set_task(Waker::noop());
    }

    /// Gives it a request, which is sent when the connection is polled.
    pub fn send(&mut self, request: Request) -> Responding {
        // The connection wakes this task, and not what waits for the response: without a budget that could run out.
        Box::pin(tokio::task::unconstrained(self.sender.try_send_request(request)))
    }

    /// Polls the connection, and then `step` for what it has received.
    pub fn poll<T>(&mut self, cx: &mut Context<'_>, mut step: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.wakeups.set_task(cx.waker());
        for _ in 0..MAX_ROUNDS {
            self.wakeups.begin_poll();
            self.poll_connection();
            let received = step(&mut Context::from_waker(Waker::noop()));
            // If something was received, the task polls again before it waits.
            if self.wakeups.end_poll() || received.is_ready() {
                return received;
            }
        }
        self.wakeups.wake_task();
        Poll::Pending
    }

    fn poll_connection(&mut self) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(&mut Context::from_waker(&self.waker)).is_ready()
        {
            // Its errors are those of the request and of the body.
            self.connection = None;
        }
    }

    /// Whether it can have another request. If so, `waker` is woken when the backend closes it.
    pub fn poll_idle(&mut self, waker: &Waker) -> bool {
        let _ = self.poll::<()>(&mut Context::from_waker(waker), |_| Poll::Pending);
        self.connection.is_some() && self.sender.is_ready()
    }
}
