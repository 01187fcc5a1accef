//! A scripted mock backend on real sockets.
//!
//! ```ignore
//! let backend = MockBackend::start(|request| match request.path.as_str() {
//!     "/v1/models" => MockResponse::json(200, "{}"),
//!     _ => MockResponse::sse(&["one", "two"]).split(1).stall(),
//! });
//! ```
//!
//! It uses only threads and `std::net`, so it sends exactly the scripted bytes.

mod connection;
mod encoding;
mod response;

use response::ResponseStep;
pub use response::{Gate, MockResponse};

use super::TIMEOUT;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Listens until it is dropped, which closes its port and all connections.
pub struct MockBackend {
    addr: SocketAddr,
    state: Arc<BackendState>,
    accepting: Option<JoinHandle<()>>,
}

/// A received request with its complete body.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    pub method: String,
    /// Includes the query.
    pub path: String,
    /// In order of arrival; names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The number of its connection; the first is 0.
    pub connection: usize,
}

/// A port that refuses connections. It is bound without a listener, so that no other test can use it.
pub struct RefusingPort {
    socket: Socket,
}

/// Shared by all connections.
struct BackendState {
    script: Box<dyn Fn(&RecordedRequest) -> MockResponse + Send + Sync>,
    record: Mutex<Record>,
    written: AtomicU64,
    stopping: AtomicBool,
}

#[derive(Default)]
struct Record {
    requests: Vec<RecordedRequest>,
    disconnects: Vec<Instant>,
    /// Weak, so that a socket is closed when its connection ends.
    sockets: Vec<Weak<TcpStream>>,
}

impl MockBackend {
    /// The script answers every request; each connection has its own thread.
    pub fn start(script: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static) -> MockBackend {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(BackendState {
            script: Box::new(script),
            record: Mutex::default(),
            written: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        let accepting = thread::spawn({
            let state = Arc::clone(&state);
            move || accept(&listener, &state)
        });
        MockBackend { addr, state, accepting: Some(accepting) }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// Every complete request so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.record().requests.clone()
    }

    pub fn request_count(&self) -> usize {
        self.state.record().requests.len()
    }

    /// The number of connections opened so far.
    pub fn connections(&self) -> usize {
        self.state.record().sockets.len()
    }

    /// The number of bytes that the sockets accepted so far, including headers and chunk sizes. A blocked write counts
    /// only what was accepted.
    pub fn written(&self) -> u64 {
        self.state.written.load(Ordering::SeqCst)
    }

    /// When a client disconnected before its response was complete. Closing only its sending side counts too.
    pub fn disconnects(&self) -> Vec<Instant> {
        self.state.record().disconnects.clone()
    }
}

impl Drop for MockBackend {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        // `accept` cannot be interrupted: one more connection wakes it.
        let _ = TcpStream::connect(self.addr);
        let _ = self.accepting.take().map(JoinHandle::join);
        for socket in self.state.record().sockets.iter().filter_map(Weak::upgrade) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl RecordedRequest {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} is repeated");
        first
    }
}

impl RefusingPort {
    pub fn start() -> RefusingPort {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        RefusingPort { socket }
    }

    pub fn addr(&self) -> SocketAddr {
        self.socket.local_addr().unwrap().as_socket().unwrap()
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.addr())
    }
}

impl BackendState {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, state: &Arc<BackendState>) {
    loop {
        let (socket, _) = listener.accept().unwrap();
        if state.stopping.load(Ordering::SeqCst) {
            return;
        }
        let socket = Arc::new(socket);
        let number = {
            let mut record = state.record();
            record.sockets.push(Arc::downgrade(&socket));
            record.sockets.len() - 1
        };
        let state = Arc::clone(state);
        thread::spawn(move || connection::serve(socket, number, &state));
    }
}
