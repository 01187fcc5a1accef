//! Opens connections: TCP with a DNS resolver that rejects link-local and metadata addresses (DNS rebinding, SSRF), and
//! TLS.

use super::ConnectSettings;
use super::http1::Http1Connection;
use super::send_error::{BoxError, SendError};
use crate::mapping::config::backend_address::is_internal;
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::Verifier;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;
use tokio::net::TcpStream;
use tower_service::Service;

pub type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
pub type Http2Sender = http2::SendRequest<Full<Bytes>>;

pub enum Connection {
    Http1(Box<Http1Connection>),
    Http2(Http2Sender),
}

pub struct Connector {
    tcp: HttpConnector<GuardedResolver>,
    tls: Option<TlsSettings>,
    timeout: Option<Duration>,
}

/// Shared by all clients: the root certificates of the system, and HTTP/2 if the backend has it.
#[derive(Clone, Debug)]
pub struct TlsSettings(Arc<ClientConfig>);

impl TlsSettings {
    /// Reads the root certificates.
    pub fn read() -> Result<TlsSettings, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(Verifier::new(provider.clone())?);
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.dangerous().with_custom_certificate_verifier(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsSettings(Arc::new(config)))
    }
}

const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_RETRIES: u32 = 3;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);

impl Connector {
    pub fn new(settings: &ConnectSettings, tls: Option<TlsSettings>) -> Connector {
        let mut tcp = HttpConnector::new_with_resolver(GuardedResolver { allowed: settings.allowed.as_slice().into() });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(settings.timeout);
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
        Connector { tcp, tls, timeout: settings.timeout }
    }

    /// Opens a connection to the host of `uri`.
    pub async fn connect(&self, uri: Uri) -> Result<Connection, SendError> {
        let open = self.open(uri);
        let stream = match self.timeout {
            Some(limit) => tokio::time::timeout(limit, open).await.map_err(|_| SendError::ConnectTimeout)?,
            None => open.await,
        };
        let stream = stream.map_err(SendError::Connect)?;
        match is_http2(&stream) {
            true => open_http2(stream).await.map(Connection::Http2),
            false => Http1Connection::open(stream).await.map(Connection::Http1),
        }
    }

    async fn open(&self, uri: Uri) -> Result<Stream, BoxError> {
        let mut tcp = self.tcp.clone();
        match &self.tls {
            Some(tls) => HttpsConnector::from((tcp, tls.0.clone())).call(uri).await,
            None => Ok(MaybeHttpsStream::Http(tcp.call(uri).await?)),
        }
    }
}

fn is_http2(stream: &Stream) -> bool {
    match stream {
        MaybeHttpsStream::Http(_) => false,
        MaybeHttpsStream::Https(tls) => tls.inner().get_ref().1.alpn_protocol() == Some(b"h2"),
    }
}

pub(super) async fn open_http2(stream: Stream) -> Result<Http2Sender, SendError> {
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2.timer(TokioTimer::new()).keep_alive_interval(HTTP2_PING_INTERVAL);
    let (mut sender, connection) = http2.handshake(stream).await.map_err(SendError::Send)?;
    // Its errors are those of its requests.
    tokio::spawn(async move { drop(connection.await) });
    sender.ready().await.map_err(SendError::Send)?;
    Ok(sender)
}

/// Rejects internal addresses that are not in `allow_addresses`: a hostname may resolve to one.
#[derive(Clone)]
struct GuardedResolver {
    allowed: Arc<[IpAddr]>,
}

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<vec::IntoIter<SocketAddr>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let resolved: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let permitted: Vec<SocketAddr> =
                resolved.iter().copied().filter(|a| !is_internal(a.ip()) || allowed.contains(&a.ip())).collect();
            if permitted.is_empty() && !resolved.is_empty() {
                let message =
                    "the hostname resolves to a link-local or metadata address that is not in `allow_addresses`";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            Ok(permitted.into_iter())
        })
    }
}
