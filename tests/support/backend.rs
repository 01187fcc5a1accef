//! A scripted backend on real sockets: what stands behind the gateway in a test, and does what the test says.
//!
//! ```ignore
//! let backend = Backend::start(|seen| match seen.path.as_str() {
//!     "/v1/models" => Answer::json(200, "{}"),
//!     _ => Answer::sse(&["one", "two"]).split(1).stall(),
//! });
//! ```
//!
//! Threads and `std::net` only: what it sends is what the script says, byte by byte.

mod answer;
mod connection;
mod encoding;

pub use answer::{Answer, Delimited, Step};

use super::FAR_TOO_LONG;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// It listens until it is dropped; then its port and all of its connections are closed.
pub struct Backend {
    addr: SocketAddr,
    stage: Arc<Stage>,
    accepting: Option<JoinHandle<()>>,
}

/// A request as it came, with its whole body.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub method: String,
    /// With its query.
    pub path: String,
    /// In their order; names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Which connection it came on; the first is 0.
    pub connection: usize,
}

/// A port that refuses connections. It is taken, but nobody listens: no other test can get it meanwhile.
pub struct Refusing {
    socket: Socket,
}

/// What all connections share.
struct Stage {
    script: Box<dyn Fn(&Seen) -> Answer + Send + Sync>,
    record: Mutex<Record>,
    written: AtomicU64,
    stopping: AtomicBool,
}

#[derive(Default)]
struct Record {
    seen: Vec<Seen>,
    gone: Vec<Instant>,
    /// Weak: a socket that is held here would not be closed when its connection ends.
    sockets: Vec<Weak<TcpStream>>,
}

impl Backend {
    /// Every request is answered by the script, each connection in a thread of its own.
    pub fn start(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Backend {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let stage = Arc::new(Stage {
            script: Box::new(script),
            record: Mutex::default(),
            written: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        let accepting = thread::spawn({
            let stage = Arc::clone(&stage);
            move || accept(&listener, &stage)
        });
        Backend { addr, stage, accepting: Some(accepting) }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// Every whole request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.stage.record().seen.clone()
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.stage.record().sockets.len()
    }

    /// How many bytes the sockets took so far, heads and chunk sizes included. A writer that is blocked adds nothing.
    pub fn written(&self) -> u64 {
        self.stage.written.load(Ordering::SeqCst)
    }

    /// When a client went away before its answer had ended. One that only closes its sending side counts as well.
    pub fn gone(&self) -> Vec<Instant> {
        self.stage.record().gone.clone()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stage.stopping.store(true, Ordering::SeqCst);
        // `accept` cannot be interrupted: one more connection wakes it.
        let _ = TcpStream::connect(self.addr);
        let _ = self.accepting.take().map(JoinHandle::join);
        for socket in self.stage.record().sockets.iter().filter_map(Weak::upgrade) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Seen {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} stands twice");
        first
    }
}

impl Refusing {
    pub fn start() -> Refusing {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        Refusing { socket }
    }

    pub fn addr(&self) -> SocketAddr {
        self.socket.local_addr().unwrap().as_socket().unwrap()
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.addr())
    }
}

impl Stage {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, stage: &Arc<Stage>) {
    loop {
        let (socket, _) = listener.accept().unwrap();
        if stage.stopping.load(Ordering::SeqCst) {
            return;
        }
        let socket = Arc::new(socket);
        let number = {
            let mut record = stage.record();
            record.sockets.push(Arc::downgrade(&socket));
            record.sockets.len() - 1
        };
        let stage = Arc::clone(stage);
        thread::spawn(move || connection::serve(socket, number, &stage));
    }
}
