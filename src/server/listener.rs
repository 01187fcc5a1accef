//! The listening socket: binds it, accepts connections and shuts down gracefully.
//!
//! `poem::Server` is not used: it does not notice a client's clean close before two writes have failed, so a silent
//! stream would keep its upstream request; it sets neither TCP_NODELAY nor a header timeout, and it spins when
//! accepting fails.

use super::acceptor::Acceptor;
use super::connection::{http_builder, serve_connection};
use super::refusal::{self, RefusalResponse};
use super::write_stall::WriteTimeout;
use poem::IntoEndpoint;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, error, info};

/// More connections would exhaust the file descriptors first; further clients wait in the backlog.
const MAX_CONNECTIONS: usize = 10_000;
/// A year.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);

/// A bound socket, ready to serve.
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
    write_timeout: Arc<WriteTimeout>,
    /// For clients that cannot be served because no file descriptor is left.
    pub(super) refusal: RefusalResponse,
    pub(super) limits: ConnectionLimits,
}

pub(super) struct ConnectionLimits {
    pub header_timeout: Duration,
    pub max_connections: usize,
}

impl Listener {
    /// Binds `host:port`; port 0 selects a free one.
    pub async fn bind(addr: &str) -> io::Result<Listener> {
        let socket = TcpListener::bind(addr).await?;
        let addr = socket.local_addr()?;
        let limits = ConnectionLimits { header_timeout: HEADER_TIMEOUT, max_connections: MAX_CONNECTIONS };
        Ok(Listener { socket, addr, write_timeout: Arc::default(), refusal: refusal::plain(), limits })
    }

    /// Closes the connections of clients that stop reading. Without this they may wait for ever.
    pub fn with_write_timeout(self, write_timeout: Arc<WriteTimeout>) -> Listener {
        Listener { write_timeout, ..self }
    }

    /// What clients get that are refused.
    pub fn with_refusal(self, refusal: RefusalResponse) -> Listener {
        Listener { refusal, ..self }
    }

    /// Closes connections that take longer for the headers of a request.
    pub fn with_header_timeout(mut self, limit: Option<Duration>) -> Listener {
        self.limits.header_timeout = limit.unwrap_or(NO_LIMIT);
        self
    }

    /// The bound address, with the port that was selected.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `stop` resolves. Then it accepts no more connections, lets running requests finish for at most
    /// `drain` (`None`: without a limit), and drops the rest.
    pub async fn serve<E>(self, endpoint: E, stop: impl Future<Output = ()>, drain: impl Fn() -> Option<Duration>)
    where
        E: IntoEndpoint,
        E::Endpoint: 'static,
    {
        let endpoint = Arc::new(endpoint.into_endpoint());
        let write_timeout = self.write_timeout.clone();
        let http = Arc::new(http_builder(self.limits.header_timeout, write_timeout.clone()));
        let (local, header_timeout) = (self.addr, self.limits.header_timeout);
        let (stop_connections, stopped) = watch::channel(());
        let mut running = JoinSet::new();
        let mut acceptor = Acceptor::new(self);
        let mut stop = pin!(stop);

        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(ended) = running.join_next() => log_panic(ended),
                accepted = acceptor.next() => {
                    let connection = serve_connection(
                        accepted,
                        local,
                        Arc::clone(&endpoint),
                        Arc::clone(&http),
                        stopped.clone(),
                        header_timeout,
                        Arc::clone(&write_timeout),
                    );
                    running.spawn(connection);
                }
            }
        }

        // Closing the socket first refuses new clients immediately, instead of leaving them in the backlog of a process
        // that is about to exit.
        drop(acceptor);
        drop(stop_connections);
        let finished = async {
            while let Some(ended) = running.join_next().await {
                log_panic(ended);
            }
        };
        let in_time = match drain() {
            Some(limit) => tokio::time::timeout(limit, finished).await.is_ok(),
            None => {
                finished.await;
                true
            }
        };
        if !in_time {
            info!(connections = running.len(), "drain timeout reached, closing the remaining connections");
        }
        running.shutdown().await;
    }

    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, peer) = self.socket.accept().await?;
        // A frame is smaller than a segment: with Nagle's algorithm it would wait for the acknowledgement of the frame
        // before it. This fails only if the peer has disconnected, which the connection is about to notice.
        if let Err(error) = socket.set_nodelay(true) {
            debug!(%peer, %error, "TCP_NODELAY could not be set");
        }
        Ok((socket, peer))
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        error!(%error, "a request panicked, its connection is closed");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/server_listener.rs"]
mod tests;
