//! Unit tests of `server::listener`.

use super::*;
use bytes::Bytes;
use futures_util::Stream;
use poem::endpoint::make_sync;
use poem::{Body, Endpoint, Response};
use std::future::pending;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream as Client};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(5);
/// Tests allow ten times this, because a busy machine is slow.
const IMMEDIATELY: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_close_drops_a_silent_stream_immediately() {
    let (on_drop, dropped) = mpsc::channel();
    let server = TestServer::start(LONG, |_| {}, move || ScriptedBody::new("first", Rest::Silence, &on_drop)).await;
    let mut client = server.get();
    wait_for(&mut client, "first");
    let closed = Instant::now();
    drop(client);
    dropped.recv_timeout(IMMEDIATELY * 10).unwrap();
    println!("close to drop: {:?}", closed.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_before_the_response_drops_the_waiting_handler() {
    struct NotifyOnDrop(mpsc::Sender<()>);
    impl Drop for NotifyOnDrop {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (on_drop, dropped) = mpsc::channel();
    let (enter, entered) = mpsc::channel();
    let endpoint = poem::endpoint::make(move |_| {
        let _ = enter.send(());
        let guard = NotifyOnDrop(on_drop.clone());
        async move {
            pending::<()>().await;
            drop(guard);
        }
    });
    let server = TestServer::run(LONG, |_| {}, endpoint).await;
    let client = server.get();
    entered.recv_timeout(LONG).unwrap();
    drop(client);
    dropped.recv_timeout(IMMEDIATELY * 10).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_sent_header_is_disconnected() {
    assert_is_disconnected("POST /v1/chat HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_sends_nothing_is_disconnected() {
    assert_is_disconnected("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_the_http2_preface_is_disconnected() {
    assert_is_disconnected("PRI * HTTP/2.0\r\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_sent_header_of_a_later_request_is_disconnected() {
    let short = |limits: &mut ConnectionLimits| limits.header_timeout = Duration::from_millis(200);
    let server = TestServer::run(LONG, short, make_sync(|_| "served")).await;
    let mut client = server.get();
    wait_for(&mut client, "served");
    client.write_all(b"GET / HTTP/1.1\r\nhost: ").unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_stream_outlives_the_header_timeout() {
    let (on_drop, dropped) = mpsc::channel();
    let short = |limits: &mut ConnectionLimits| limits.header_timeout = Duration::from_millis(100);
    let server = TestServer::start(LONG, short, move || ScriptedBody::new("first", Rest::Silence, &on_drop)).await;
    let mut client = server.get();
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
    let (on_drop, dropped) = mpsc::channel();
    let (more, gate) = oneshot::channel();
    let mut rest = Some(Rest::After(gate, "last"));
    let script = move || ScriptedBody::new("first", rest.take().unwrap(), &on_drop);
    let mut server = TestServer::start(LONG, |_| {}, script).await;
    // Connections are accepted in order: once the second has its response, the first is accepted.
    let mut idle = Client::connect(server.addr).unwrap();
    let mut client = server.get();
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
    let (on_drop, dropped) = mpsc::channel();
    let drain = Duration::from_millis(200);
    let mut server =
        TestServer::start(drain, |_| {}, move || ScriptedBody::new("first", Rest::Silence, &on_drop)).await;
    let mut client = server.get();
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
async fn a_client_over_the_limit_waits_for_a_slot() {
    let (on_drop, _dropped) = mpsc::channel();
    let one = |limits: &mut ConnectionLimits| limits.max_connections = 1;
    let server = TestServer::start(LONG, one, move || ScriptedBody::new("first", Rest::Silence, &on_drop)).await;
    let mut first = server.get();
    wait_for(&mut first, "first");
    let mut second = server.get();
    let short = Some(Duration::from_millis(200));
    second.set_read_timeout(short).unwrap();
    assert!(second.read(&mut [0; 1]).is_err());
    first.shutdown(Shutdown::Both).unwrap();
    second.set_read_timeout(Some(LONG)).unwrap();
    wait_for(&mut second, "first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_closes_only_its_connection() {
    let endpoint = make_sync(|request| {
        assert!(request.uri().path() != "/panic", "requested by the test");
        "fine"
    });
    let server = TestServer::run(LONG, |_| {}, endpoint).await;
    let mut client = server.send("GET /panic HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    wait_for(&mut server.get(), "fine");
}

async fn assert_is_disconnected(sent: &str) {
    let limit = Duration::from_millis(200);
    let short = |limits: &mut ConnectionLimits| limits.header_timeout = limit;
    let server = TestServer::run(LONG, short, make_sync(|_| "unexpected")).await;
    let started = Instant::now();
    let mut client = server.send(sent);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    println!("disconnected after {:?} of {limit:?}", started.elapsed());
    assert!(started.elapsed() >= limit);
}

struct TestServer {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<()>,
}

impl TestServer {
    async fn start(
        drain: Duration,
        tweak: impl FnOnce(&mut ConnectionLimits),
        script: impl FnMut() -> ScriptedBody + Send + 'static,
    ) -> TestServer {
        let script = std::sync::Mutex::new(script);
        let endpoint = make_sync(move |_| {
            let stream = (script.lock().unwrap())();
            Response::builder().body(Body::from_bytes_stream(stream))
        });
        TestServer::run(drain, tweak, endpoint).await
    }

    async fn run(
        drain: Duration,
        tweak: impl FnOnce(&mut ConnectionLimits),
        endpoint: impl Endpoint + 'static,
    ) -> TestServer {
        let mut listener = Listener::bind("127.0.0.1:0").await.unwrap();
        tweak(&mut listener.limits);
        let addr = listener.local_addr();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        let done = tokio::spawn(listener.serve(endpoint, stopped, move || Some(drain)));
        let stop = Some(stop);
        TestServer { addr, stop, done }
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    fn get(&self) -> Client {
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
        assert!(length > 0, "closed before {text:?} was received");
        seen.extend_from_slice(&part[..length]);
    }
}

/// A body: one text, then the rest. Sends a message when it is dropped.
struct ScriptedBody {
    first: Option<&'static str>,
    rest: Rest,
    on_drop: mpsc::Sender<()>,
}

enum Rest {
    Silence,
    After(oneshot::Receiver<()>, &'static str),
    End,
}

impl ScriptedBody {
    fn new(first: &'static str, rest: Rest, on_drop: &mpsc::Sender<()>) -> ScriptedBody {
        ScriptedBody { first: Some(first), rest, on_drop: on_drop.clone() }
    }
}

impl Stream for ScriptedBody {
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

impl Drop for ScriptedBody {
    fn drop(&mut self) {
        let _ = self.on_drop.send(());
    }
}
