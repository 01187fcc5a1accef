//! The accept loop: sockets in, a poem endpoint as the service, an orderly stop.
//!
//! `poem::Server` is not used: it loses a client's clean close, so that a silent stream is paid for until two writes
//! have failed; it sets no TCP_NODELAY and no header timeout, and it spins when accepting fails.

use std::{
    convert::Infallible,
    future::{Future, pending},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use poem::{
    Endpoint, IntoEndpoint,
    http::uri::Scheme,
    web::{LocalAddr, RemoteAddr},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinError, JoinSet},
};
use tracing::{debug, error, info, warn};

/// More would run out of file descriptors before it ran out of anything else; who comes later waits in the backlog.
const MAX_CONNECTIONS: usize = 10_000;
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
const HTTP2_PING: Duration = Duration::from_secs(20);
const HTTP2_STREAMS: u32 = 256;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Trouble of the same kind within this time is one burst, and is logged once.
const BURST: Duration = Duration::from_secs(10);

/// A bound socket, ready to serve.
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
    limits: Limits,
}

struct Limits {
    header: Duration,
    connections: usize,
}

/// What lets clients in, one at a time: a free place, then a socket, and patience when accepting fails.
struct Door {
    listener: Listener,
    places: Arc<Semaphore>,
    pause: Pause,
    failing: Burst,
    full: Burst,
}

/// How long to wait after an accept that failed. The end of the wait is a point in time and not a sleep, because the
/// loop drops and renews the wait whenever a connection ends.
struct Pause {
    next: Duration,
    until: Option<Instant>,
}

#[derive(Default)]
struct Burst {
    last: Option<Instant>,
}

struct Guest {
    socket: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
}

impl Listener {
    /// Binds `host:port`; port 0 picks a free one.
    pub async fn bind(addr: &str) -> io::Result<Listener> {
        let socket = TcpListener::bind(addr).await?;
        let addr = socket.local_addr()?;
        let limits = Limits { header: HEADER_TIMEOUT, connections: MAX_CONNECTIONS };
        Ok(Listener { socket, addr, limits })
    }

    /// The address that was bound, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `stop` resolves; then accepts nobody, lets running requests finish for at most `drain`, and drops
    /// the rest.
    pub async fn serve<E>(self, endpoint: E, stop: impl Future<Output = ()>, drain: Duration)
    where
        E: IntoEndpoint,
        E::Endpoint: 'static,
    {
        let endpoint = Arc::new(endpoint.into_endpoint());
        let http = Arc::new(http(self.limits.header));
        let (local, patience) = (self.addr, self.limits.header);
        let graceful = GracefulShutdown::new();
        let mut running = JoinSet::new();
        let mut door = Door::of(self);
        let mut stop = pin!(stop);

        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(ended) = running.join_next() => tell_panic(ended),
                guest = door.next() => {
                    let talk = converse(
                        guest,
                        local,
                        Arc::clone(&endpoint),
                        Arc::clone(&http),
                        graceful.watcher(),
                        patience,
                    );
                    running.spawn(talk);
                }
            }
        }

        // Closing the socket first refuses new clients at once, instead of leaving them in the backlog of a process
        // that is about to go.
        drop(door);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            while let Some(ended) = running.try_join_next() {
                tell_panic(ended);
            }
            info!(connections = running.len(), "drain time is over, dropping what still runs");
        }
        running.shutdown().await;
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, peer) = self.socket.accept().await?;
        // A frame is smaller than a segment: with Nagle's algorithm it would wait for the acknowledgement of the frame
        // before it. This fails only if the peer is gone already, which the connection is about to find out.
        if let Err(error) = socket.set_nodelay(true) {
            debug!(%peer, %error, "no TCP_NODELAY");
        }
        Ok((socket, peer))
    }
}

impl Door {
    fn of(listener: Listener) -> Door {
        let places = Arc::new(Semaphore::new(listener.limits.connections));
        Door { listener, places, pause: Pause::none(), failing: Burst::default(), full: Burst::default() }
    }

    /// The next client. May be dropped at any await: no socket is lost.
    async fn next(&mut self) -> Guest {
        loop {
            if let Some(until) = self.pause.until {
                tokio::time::sleep_until(until.into()).await;
            }
            let place = self.place().await;
            match self.listener.accept().await {
                Ok((socket, peer)) => {
                    self.pause = Pause::none();
                    return Guest { socket, peer, place };
                }
                // That client is gone; the one behind it is not. Each such error uses up a client, so it cannot spin.
                Err(error) if concerns_one_client(&error) => {
                    debug!(%error, "a client left before it was accepted");
                }
                Err(error) => {
                    let now = Instant::now();
                    let pause = self.pause.lengthen(now);
                    if self.failing.begins(now) {
                        warn!(%error, ?pause, "cannot accept connections, trying again");
                    }
                }
            }
        }
    }

    async fn place(&mut self) -> OwnedSemaphorePermit {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return place;
        }
        if self.full.begins(Instant::now()) {
            let connections = self.listener.limits.connections;
            warn!(connections, "all connections are taken, new clients wait");
        }
        match Arc::clone(&self.places).acquire_owned().await {
            Ok(place) => place,
            // Only a closed semaphore gets here, and this one is never closed.
            Err(_) => pending().await,
        }
    }
}

impl Pause {
    fn none() -> Pause {
        Pause { next: FIRST_PAUSE, until: None }
    }

    fn lengthen(&mut self, now: Instant) -> Duration {
        let pause = self.next;
        self.until = Some(now + pause);
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

impl Burst {
    /// Whether trouble at `now` is the first after a quiet time.
    fn begins(&mut self, now: Instant) -> bool {
        self.last.replace(now).is_none_or(|last| now.duration_since(last) > BURST)
    }
}

fn http(header_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        // False, so that a client's clean close ends its request at once, also while its stream is silent. The price:
        // a client that shuts its write side after the request gets no answer.
        .half_close(false);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(HTTP2_PING).max_concurrent_streams(HTTP2_STREAMS);
    http
}

/// One connection, from its first byte to its last.
async fn converse<E: Endpoint + 'static>(
    guest: Guest,
    local: SocketAddr,
    endpoint: Arc<E>,
    http: Arc<auto::Builder<TokioExecutor>>,
    watcher: Watcher,
    patience: Duration,
) {
    let Guest { socket, peer, place: _place } = guest;
    let asked = Arc::new(AtomicBool::new(false));
    let service = service_fn({
        let asked = Arc::clone(&asked);
        move |request: hyper::Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            let endpoint = Arc::clone(&endpoint);
            async move {
                let local = LocalAddr(local.into());
                let remote = RemoteAddr(peer.into());
                let request = poem::Request::from((request, local, remote, Scheme::HTTP));
                let response = endpoint.get_response(request).await;
                Ok::<_, Infallible>(hyper::Response::from(response))
            }
        }
    });
    let connection = watcher.watch(http.serve_connection_with_upgrades(TokioIo::new(socket), service));
    // hyper's header timeout begins when it knows the version of HTTP: a client that sends nothing, or half of the
    // HTTP/2 preface, would keep its place for ever.
    let silent = async {
        tokio::time::sleep(patience).await;
        if asked.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            debug!(%peer, %error, "connection ended early");
        },
        () = silent => debug!(%peer, "no request came, connection closed"),
    }
}

fn concerns_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

fn tell_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        error!(%error, "a request panicked, its connection is closed");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Shutdown, TcpStream as Client},
        pin::Pin,
        sync::mpsc,
        task::{Context, Poll, ready},
    };

    use bytes::Bytes;
    use futures_util::Stream;
    use poem::{Body, Response, endpoint::make_sync};
    use tokio::{sync::oneshot, task::JoinHandle};

    use super::*;

    const LONG: Duration = Duration::from_secs(5);
    /// A busy machine is slow: only ten times this is a failure.
    const AT_ONCE: Duration = Duration::from_millis(250);

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_clean_close_drops_a_silent_stream_at_once() {
        let (gone, dropped) = mpsc::channel();
        let server = Server::start(LONG, |_| {}, move || Script::new("first", Rest::Silence, &gone)).await;
        let mut client = server.ask();
        wait_for(&mut client, "first");
        let closed = Instant::now();
        drop(client);
        dropped.recv_timeout(AT_ONCE * 10).unwrap();
        println!("close to drop: {:?}", closed.elapsed());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_close_before_the_answer_drops_the_waiting_handler() {
        struct Tell(mpsc::Sender<()>);
        impl Drop for Tell {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (gone, dropped) = mpsc::channel();
        let (came, entered) = mpsc::channel();
        let endpoint = poem::endpoint::make(move |_| {
            let _ = came.send(());
            let tell = Tell(gone.clone());
            async move {
                pending::<()>().await;
                drop(tell);
            }
        });
        let server = Server::run(LONG, |_| {}, endpoint).await;
        let client = server.ask();
        entered.recv_timeout(LONG).unwrap();
        drop(client);
        dropped.recv_timeout(AT_ONCE * 10).unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_half_sent_header_is_cut() {
        assert_is_cut("POST /v1/chat HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_that_sends_nothing_is_cut() {
        assert_is_cut("").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn half_of_the_http2_preface_is_cut() {
        assert_is_cut("PRI * HTTP/2.0\r\n").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_half_sent_header_of_a_later_request_is_cut() {
        let short = |limits: &mut Limits| limits.header = Duration::from_millis(200);
        let server = Server::run(LONG, short, make_sync(|_| "heard")).await;
        let mut client = server.ask();
        wait_for(&mut client, "heard");
        client.write_all(b"GET / HTTP/1.1\r\nhost: ").unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_silent_stream_outlives_the_header_timeout() {
        let (gone, dropped) = mpsc::channel();
        let short = |limits: &mut Limits| limits.header = Duration::from_millis(100);
        let server = Server::start(LONG, short, move || Script::new("first", Rest::Silence, &gone)).await;
        let mut client = server.ask();
        wait_for(&mut client, "first");
        assert!(dropped.recv_timeout(Duration::from_millis(500)).is_err());
    }

    #[tokio::test]
    async fn accepted_sockets_do_not_delay_small_writes() {
        let listener = Listener::bind("localhost:0").await.unwrap();
        let _client = Client::connect(listener.local_addr()).unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        assert!(socket.nodelay().unwrap());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stop_lets_a_running_stream_finish_and_refuses_new_clients() {
        let (gone, dropped) = mpsc::channel();
        let (more, gate) = oneshot::channel();
        let mut rest = Some(Rest::After(gate, "last"));
        let script = move || Script::new("first", rest.take().unwrap(), &gone);
        let mut server = Server::start(LONG, |_| {}, script).await;
        // Clients are let in by their order: once the second has its answer, the first is in.
        let mut idle = Client::connect(server.addr).unwrap();
        let mut client = server.ask();
        wait_for(&mut client, "first");

        server.stop();
        let mut nothing = [0; 1];
        assert_eq!(idle.read(&mut nothing).unwrap(), 0);
        assert!(Client::connect(server.addr).is_err());
        assert!(!server.done.is_finished());

        std::thread::sleep(Duration::from_millis(100));
        more.send(()).unwrap();
        wait_for(&mut client, "last");
        dropped.recv_timeout(LONG).unwrap();
        let finished = Instant::now();
        server.done.await.unwrap();
        assert!(finished.elapsed() < LONG, "waited for the drain time");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stream_that_does_not_end_is_dropped_after_the_drain_time() {
        let (gone, dropped) = mpsc::channel();
        let drain = Duration::from_millis(200);
        let mut server = Server::start(drain, |_| {}, move || Script::new("first", Rest::Silence, &gone)).await;
        let mut client = server.ask();
        wait_for(&mut client, "first");
        let stopped = Instant::now();
        server.stop();
        server.done.await.unwrap();
        dropped.recv_timeout(LONG).unwrap();
        println!("stop to drop: {:?} of {drain:?}", stopped.elapsed());
        assert!(stopped.elapsed() >= drain);
        assert!(stopped.elapsed() < drain + LONG);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_over_the_limit_waits_for_a_place() {
        let (gone, _dropped) = mpsc::channel();
        let one = |limits: &mut Limits| limits.connections = 1;
        let server = Server::start(LONG, one, move || Script::new("first", Rest::Silence, &gone)).await;
        let mut first = server.ask();
        wait_for(&mut first, "first");
        let mut second = server.ask();
        let short = Some(Duration::from_millis(200));
        second.set_read_timeout(short).unwrap();
        assert!(second.read(&mut [0; 1]).is_err());
        first.shutdown(Shutdown::Both).unwrap();
        second.set_read_timeout(Some(LONG)).unwrap();
        wait_for(&mut second, "first");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_costs_its_connection_and_nothing_else() {
        let endpoint = make_sync(|request| {
            assert!(request.uri().path() != "/panic", "as asked");
            "fine"
        });
        let server = Server::run(LONG, |_| {}, endpoint).await;
        let mut client = server.send("GET /panic HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        wait_for(&mut server.ask(), "fine");
    }

    #[test]
    fn pauses_double_up_to_a_second_and_a_burst_is_told_once() {
        let mut now = Instant::now();
        let (mut pause, mut burst) = (Pause::none(), Burst::default());
        let mut pauses = Vec::new();
        let mut told = 0;
        for _ in 0..10 {
            told += u32::from(burst.begins(now));
            let length = pause.lengthen(now);
            now = pause.until.unwrap();
            pauses.push(length.as_millis());
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(told, 1);
        assert!(burst.begins(now + BURST * 2));
    }

    async fn assert_is_cut(sent: &str) {
        let limit = Duration::from_millis(200);
        let short = |limits: &mut Limits| limits.header = limit;
        let server = Server::run(LONG, short, make_sync(|_| "unheard of")).await;
        let begun = Instant::now();
        let mut client = server.send(sent);
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        println!("cut after {:?} of {limit:?}", begun.elapsed());
        assert!(begun.elapsed() >= limit);
    }

    struct Server {
        addr: SocketAddr,
        stop: Option<oneshot::Sender<()>>,
        done: JoinHandle<()>,
    }

    impl Server {
        async fn start(
            drain: Duration,
            tweak: impl FnOnce(&mut Limits),
            script: impl FnMut() -> Script + Send + 'static,
        ) -> Server {
            let script = std::sync::Mutex::new(script);
            let endpoint = make_sync(move |_| {
                let stream = (script.lock().unwrap())();
                Response::builder().body(Body::from_bytes_stream(stream))
            });
            Server::run(drain, tweak, endpoint).await
        }

        async fn run(drain: Duration, tweak: impl FnOnce(&mut Limits), endpoint: impl Endpoint + 'static) -> Server {
            let mut listener = Listener::bind("127.0.0.1:0").await.unwrap();
            tweak(&mut listener.limits);
            let addr = listener.local_addr();
            let (stop, stopped) = oneshot::channel();
            let stopped = async {
                let _ = stopped.await;
            };
            let done = tokio::spawn(listener.serve(endpoint, stopped, drain));
            let stop = Some(stop);
            Server { addr, stop, done }
        }

        fn stop(&mut self) {
            self.stop.take().unwrap().send(()).unwrap();
        }

        fn ask(&self) -> Client {
            self.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        }

        fn send(&self, text: &str) -> Client {
            let mut client = Client::connect(self.addr).unwrap();
            client.set_read_timeout(Some(LONG)).unwrap();
            client.write_all(text.as_bytes()).unwrap();
            client
        }
    }

    fn wait_for(client: &mut Client, text: &str) {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            let mut part = [0; 1024];
            let length = client.read(&mut part).unwrap();
            assert!(length > 0, "closed before {text:?} came");
            seen.extend_from_slice(&part[..length]);
        }
    }

    /// A body: one text, then the rest. Its drop is told.
    struct Script {
        first: Option<&'static str>,
        rest: Rest,
        gone: mpsc::Sender<()>,
    }

    enum Rest {
        Silence,
        After(oneshot::Receiver<()>, &'static str),
        End,
    }

    impl Script {
        fn new(first: &'static str, rest: Rest, gone: &mpsc::Sender<()>) -> Script {
            Script { first: Some(first), rest, gone: gone.clone() }
        }
    }

    impl Stream for Script {
        type Item = io::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            if let Some(text) = self.first.take() {
                return Poll::Ready(Some(Ok(Bytes::from(text))));
            }
            let text = match &mut self.rest {
                Rest::Silence => return Poll::Pending,
                Rest::After(gate, text) => {
                    let _ = ready!(Pin::new(gate).poll(context));
                    *text
                }
                Rest::End => return Poll::Ready(None),
            };
            self.rest = Rest::End;
            Poll::Ready(Some(Ok(Bytes::from(text))))
        }
    }

    impl Drop for Script {
        fn drop(&mut self) {
            let _ = self.gone.send(());
        }
    }
}
