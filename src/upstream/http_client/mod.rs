//! The HTTP client of one origin: pooled connections without redirects, proxies or cookies.
//!
//! A connection of HTTP/1 has no task of its own: the task of the turn polls it, so that a chunk of a response needs no
//! switch between tasks and no channel that wakes another one. Connections of HTTP/2 are shared, and have a task each.

mod body;
mod connector;
mod decoded;
mod exchange;
mod http1;
mod idle;
mod origin;
mod send_error;
mod wakeups;

pub use body::ResponseBody;
pub use connector::TlsSettings;
pub use exchange::Exchange;
pub use origin::{BaseUrl, Origin};
pub use send_error::{SendError, causes, root_cause};

use bytes::Bytes;
use connector::{Connection, Connector};
use http_body_util::Full;
use idle::IdleConnections;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub type Request = http::Request<Full<Bytes>>;

pub struct HttpClient {
    origin: Origin,
    connector: Connector,
    idle: Arc<IdleConnections>,
}

/// What distinguishes clients, besides their origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectSettings {
    pub timeout: Option<Duration>,
    /// Internal addresses that a hostname may resolve to.
    pub allowed: Vec<IpAddr>,
}

impl HttpClient {
    /// `tls` is needed for https.
    pub fn new(origin: Origin, settings: &ConnectSettings, tls: Option<TlsSettings>) -> HttpClient {
        HttpClient { origin, connector: Connector::new(settings, tls), idle: Arc::default() }
    }

    /// Sends a request with a URI that is only a path and a query. Nothing is sent before the exchange is polled.
    pub fn send(self: &Arc<Self>, request: Request) -> Exchange {
        Exchange::new(self.clone(), request)
    }

    /// A connection that is open already.
    fn pooled(&self) -> Option<Connection> {
        self.idle.take_http1().map(Connection::Http1).or_else(|| self.idle.http2().map(Connection::Http2))
    }

    /// A connection that was opened for one request is kept for others.
    fn share(&self, connection: Connection) -> Connection {
        match connection {
            Connection::Http1(http1) => Connection::Http1(http1),
            Connection::Http2(http2) => Connection::Http2(self.idle.share_http2(http2)),
        }
    }
}
