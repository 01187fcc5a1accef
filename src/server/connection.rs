//! Serves one connection: HTTP/1 and HTTP/2, with a poem endpoint as the service.

use super::acceptor::Accepted;
use super::client_socket::{ClientSocket, ReadCount};
use super::woken::Woken;
use super::write_stall::{ResponseWatch, StallWatch, Stalled, StreamExecutor, WriteTimeout};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use poem::Endpoint;
use poem::http::uri::Scheme;
use poem::web::{LocalAddr, RemoteAddr};
use socket2::SockRef;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{debug, info};

const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
const HTTP2_MAX_STREAMS: u32 = 256;
const DISCONNECT_GRACE: Duration = Duration::from_millis(50);
/// How long bytes may be unread before they are counted.
const UNREAD_TIME: Duration = Duration::from_millis(60);
/// Less than what fits in the buffers of a connection: then its end arrives.
const MAX_UNREAD: usize = 32 * 1024;

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

/// How a connection ended.
enum Ended {
    Served(Result<(), Box<dyn Error + Send + Sync>>),
    NoRequest,
    Disconnected,
}

/// What a connection waits for besides its client.
enum Signal {
    /// The server stops.
    Stop,
    NoRequest,
}

pub(super) async fn serve_connection<E: Endpoint + 'static>(
    accepted: Accepted,
    local: SocketAddr,
    endpoint: Arc<E>,
    http: Arc<auto::Builder<StreamExecutor>>,
    stop: watch::Receiver<()>,
    header_timeout: Duration,
    write_timeout: Arc<WriteTimeout>,
) {
    let Accepted { socket, peer, slot: _slot } = accepted;
    let mut second_handle = socket.as_fd().try_clone_to_owned().ok();
    let reads = Arc::<ReadCount>::default();
    let stall = StallWatch::start();
    let has_request = Arc::new(AtomicBool::new(false));
    let service = service_fn({
        let (has_request, stall) = (Arc::clone(&has_request), Arc::clone(&stall));
        move |mut request: hyper::Request<Incoming>| {
            has_request.store(true, Ordering::Relaxed);
            let (endpoint, stall) = (Arc::clone(&endpoint), Arc::clone(&stall));
            async move {
                let watch = ResponseWatch::of_request(stall);
                request.extensions_mut().insert(watch.clone());
                let local = LocalAddr(local.into());
                let remote = RemoteAddr(peer.into());
                let request = poem::Request::from((request, local, remote, Scheme::HTTP));
                // Apart: hyper keeps the memory of this future as long as the connection is open.
                let response = Box::pin(endpoint.get_response(request)).await;
                Ok::<_, Infallible>(hyper::Response::from(response).map(|body| watch.body(body)))
            }
        }
    });
    let socket = ClientSocket::new(socket, Arc::clone(&stall), Arc::clone(&reads));
    let mut connection = pin!(http.serve_connection(socket, service));
    let mut signal = Some(Woken::new(signal(stop, header_timeout, has_request)));
    let mut disconnected = None;
    let served = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(Ended::Served(ended));
            }
            match signal.as_mut().map_or(Poll::Pending, |signal| signal.poll(cx)) {
                Poll::Ready(Signal::Stop) => {
                    signal = None;
                    connection.as_mut().graceful_shutdown();
                }
                Poll::Ready(Signal::NoRequest) => return Poll::Ready(Ended::NoRequest),
                Poll::Pending => break,
            }
        }
        // Mostly hyper waits for bytes, and then notices the end of the connection itself.
        if !reads.is_waiting()
            && let Some(handle) = second_handle.take()
        {
            disconnected = watched_handle(handle).map(|handle| Woken::new(wait_for_end(handle, Arc::clone(&reads))));
        }
        disconnected.as_mut().map_or(Poll::Pending, |disconnected| disconnected.poll(cx)).map(|()| Ended::Disconnected)
    });
    match stall.guard(served, &write_timeout).await {
        Ok(Ended::Served(Ok(()))) => {}
        Ok(Ended::Served(Err(error))) => debug!(%peer, %error, "connection ended early"),
        Ok(Ended::NoRequest) => debug!(%peer, "no request was received, connection closed"),
        Ok(Ended::Disconnected) => debug!(%peer, "the client has disconnected"),
        Err(Stalled) => info!(%peer, "a client stopped reading, its connection was closed"),
    }
}

/// hyper's header timeout starts once the HTTP version is known: a client that sends nothing, or half of the HTTP/2
/// preface, would keep its slot forever.
async fn signal(mut stop: watch::Receiver<()>, header_timeout: Duration, has_request: Arc<AtomicBool>) -> Signal {
    let no_request = async {
        tokio::time::sleep(header_timeout).await;
        if has_request.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        _ = stop.changed() => Signal::Stop,
        () = no_request => Signal::NoRequest,
    }
}

/// Another handle of the socket, to be notified of events while hyper owns the first one.
fn watched_handle(handle: OwnedFd) -> Option<TcpStream> {
    TcpStream::from_std(handle.into()).ok()
}

/// Resolves after the client has closed the connection. hyper does not read while a request is being served and bytes
/// of the next one are buffered, so it does not notice the end of the connection: some clients send a line break after
/// a body. Behind many unread bytes the end of the connection cannot arrive, so a client that sends them is
/// disconnected.
async fn wait_for_end(socket: TcpStream, reads: Arc<ReadCount>) {
    // After an event: the count of reads, until hyper has stopped reading and few bytes are unread.
    let mut reads_then = None;
    loop {
        let event = socket.ready(Interest::READABLE);
        let ready = match reads_then {
            None => event.await,
            Some(then) => match timeout(UNREAD_TIME, event).await {
                Ok(ready) => ready,
                Err(_) => {
                    // On a busy machine hyper may not have been polled since: it is polled before this task goes on.
                    tokio::task::yield_now().await;
                    let now = reads.get();
                    if now == then && is_flooded(&socket) {
                        break;
                    }
                    reads_then = (now != then).then_some(now);
                    continue;
                }
            },
        };
        match ready {
            Ok(ready) if ready.is_read_closed() => break,
            Ok(_) => {
                // Waits for the next event; the bytes are for hyper.
                drop(socket.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into())));
                reads_then = Some(reads.get());
            }
            Err(_) => return pending().await,
        }
    }
    // What is ready is still sent: a client may have closed only its side of the connection.
    tokio::time::sleep(DISCONNECT_GRACE).await;
}

fn is_flooded(socket: &TcpStream) -> bool {
    let mut buffer = vec![MaybeUninit::uninit(); MAX_UNREAD];
    SockRef::from(socket).peek(&mut buffer).is_ok_and(|unread| unread == MAX_UNREAD)
}
