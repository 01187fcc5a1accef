//! Serves one connection: HTTP/1 and HTTP/2, with a poem endpoint as the service.

use super::acceptor::Accepted;
use super::write_stall::{ResponseWatch, StallWatch, Stalled, StreamExecutor, WriteTimeout};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use poem::Endpoint;
use poem::http::uri::Scheme;
use poem::web::{LocalAddr, RemoteAddr};
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tracing::{debug, info};

const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
const HTTP2_MAX_STREAMS: u32 = 256;
const DISCONNECT_GRACE: Duration = Duration::from_millis(50);

pub(super) fn http_builder(header_timeout: Duration, timeout: Arc<WriteTimeout>) -> auto::Builder<StreamExecutor> {
    let mut http = auto::Builder::new(StreamExecutor { timeout });
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        // False, so that a client's clean close cancels its request immediately, even while its stream is silent. The
        // price: a client that shuts down its write side after the request gets no response.
        .half_close(false);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .max_concurrent_streams(HTTP2_MAX_STREAMS);
    http
}

pub(super) async fn serve_connection<E: Endpoint + 'static>(
    accepted: Accepted,
    local: SocketAddr,
    endpoint: Arc<E>,
    http: Arc<auto::Builder<StreamExecutor>>,
    watcher: Watcher,
    header_timeout: Duration,
    write_timeout: Arc<WriteTimeout>,
) {
    let Accepted { socket, peer, slot: _slot } = accepted;
    let second_handle = second_handle(&socket);
    let disconnected = disconnected(second_handle.as_ref());
    let watch = StallWatch::start();
    let has_request = Arc::new(AtomicBool::new(false));
    let service = service_fn({
        let (has_request, watch) = (Arc::clone(&has_request), Arc::clone(&watch));
        move |mut request: hyper::Request<Incoming>| {
            has_request.store(true, Ordering::Relaxed);
            let (endpoint, watch) = (Arc::clone(&endpoint), Arc::clone(&watch));
            async move {
                let watch = ResponseWatch::of_request(watch);
                request.extensions_mut().insert(watch.clone());
                let local = LocalAddr(local.into());
                let remote = RemoteAddr(peer.into());
                let request = poem::Request::from((request, local, remote, Scheme::HTTP));
                let response = endpoint.get_response(request).await;
                Ok::<_, Infallible>(hyper::Response::from(response).map(|body| watch.body(body)))
            }
        }
    });
    let connection = watcher.watch(http.serve_connection_with_upgrades(watch.socket(socket), service));
    // hyper's header timeout starts once the HTTP version is known: a client that sends nothing, or half of the HTTP/2
    // preface, would keep its slot forever.
    let no_request = async {
        tokio::time::sleep(header_timeout).await;
        if has_request.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        ended = watch.guard(connection, &write_timeout) => match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%peer, %error, "connection ended early"),
            Err(Stalled) => {
                info!(%peer, "a client stopped reading, its connection was closed");
                // What it does not read would stay in the kernel's buffers.
                let _ = second_handle.as_ref().map(TcpStream::set_zero_linger);
            }
        },
        () = no_request => debug!(%peer, "no request was received, connection closed"),
        () = disconnected => debug!(%peer, "the client has disconnected"),
    }
}

/// Another handle of the socket, to be notified of events while hyper owns the first one.
fn second_handle(socket: &TcpStream) -> Option<TcpStream> {
    let handle = std::net::TcpStream::from(socket.as_fd().try_clone_to_owned().ok()?);
    handle.set_nonblocking(true).ok()?;
    TcpStream::from_std(handle).ok()
}

/// Resolves after the client has closed the connection. hyper does not read while a request is being served and bytes
/// of the next one are buffered, so it does not notice the end of the connection: some clients send a line break after
/// a body.
async fn disconnected(socket: Option<&TcpStream>) {
    let Some(socket) = socket else { return pending().await };
    loop {
        match socket.ready(Interest::READABLE).await {
            Ok(ready) if ready.is_read_closed() => break,
            // Waits for the next event; the bytes are for hyper.
            Ok(_) => drop(socket.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()))),
            Err(_) => return pending().await,
        }
    }
    // What is ready is still sent: a client may have closed only its side of the connection.
    tokio::time::sleep(DISCONNECT_GRACE).await;
}
