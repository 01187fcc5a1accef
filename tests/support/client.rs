//! A small blocking HTTP/1.1 client that keeps the pieces of a body apart and remembers when each arrived.

use super::FAR_TOO_LONG;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// One connection. It is kept alive from request to request, and closed when this is dropped.
pub struct Client {
    socket: BufReader<TcpStream>,
}

#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A chat request that grows word by word: `chat("Hello!").streamed().with("n", 2)`.
#[derive(Clone, Debug)]
pub struct Chat {
    pub body: Value,
    headers: Vec<(String, String)>,
}

/// A whole reply.
#[derive(Debug)]
pub struct Reply {
    pub head: Head,
    /// The body as it came: one for each HTTP chunk, or a single one.
    pub pieces: Vec<Piece>,
}

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Piece {
    pub at: Instant,
    pub bytes: Vec<u8>,
}

/// One SSE event that has nothing but data.
#[derive(Clone, Debug)]
pub struct Frame {
    pub at: Instant,
    pub data: String,
}

/// A reply that is still arriving. Dropping it closes the connection.
pub struct Streaming {
    pub head: Head,
    client: Client,
    frames: Frames,
    over: bool,
}

/// What came and is not yet a whole frame.
#[derive(Default)]
struct Frames {
    rest: String,
    ready: std::collections::VecDeque<Frame>,
}

enum Length {
    Chunked,
    Bytes(usize),
}

pub fn chat(text: &str) -> Chat {
    Chat {
        body: json!({ "model": "demo", "messages": [{ "role": "user", "content": text }] }),
        headers: vec![("content-type".into(), "application/json".into())],
    }
}

impl Chat {
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Chat {
        self.body[key] = value.into();
        self
    }

    pub fn without(mut self, key: &str) -> Chat {
        self.body.as_object_mut().unwrap().remove(key);
        self
    }

    pub fn streamed(self) -> Chat {
        self.with("stream", true)
    }

    pub fn header(mut self, name: &str, value: &str) -> Chat {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl From<Chat> for Request {
    fn from(chat: Chat) -> Request {
        let mut request = Request::post(chat.body.to_string().into_bytes());
        request.headers = chat.headers;
        request
    }
}

impl Request {
    pub fn new(method: &str, path: &str) -> Request {
        Request { method: method.into(), path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn get(path: &str) -> Request {
        Request::new("GET", path)
    }

    pub fn at(self, path: &str) -> Request {
        Request { path: path.into(), ..self }
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Anything at all, sent to the chat endpoint.
    pub fn post(body: impl Into<Vec<u8>>) -> Request {
        Request { body: body.into(), ..Request::new("POST", "/v1/chat/completions") }
    }
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        let socket = TcpStream::connect(addr).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(FAR_TOO_LONG)).unwrap();
        Client { socket: BufReader::new(socket) }
    }

    /// With little room for what it has not read, so that a sender is blocked soon.
    pub fn narrow(addr: SocketAddr) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(256 * 1024).unwrap();
        socket.connect(&addr.into()).unwrap();
        let socket = TcpStream::from(socket);
        socket.set_read_timeout(Some(FAR_TOO_LONG)).unwrap();
        Client { socket: BufReader::new(socket) }
    }

    pub fn ask(&mut self, request: impl Into<Request>) -> Reply {
        let request = request.into();
        self.send(&request);
        let head = self.head();
        let mut pieces = Vec::new();
        if request.method == "HEAD" || matches!(head.status, 204 | 304) {
            return Reply { head, pieces };
        }
        match head.length() {
            Length::Bytes(length) => pieces.push(self.piece(length)),
            Length::Chunked => pieces.extend(std::iter::from_fn(|| self.chunk())),
        }
        Reply { head, pieces }
    }

    /// Sends, and returns as soon as the head of the reply is there.
    pub fn stream(mut self, request: impl Into<Request>) -> Streaming {
        self.send(&request.into());
        let head = self.head();
        assert!(matches!(head.length(), Length::Chunked), "not a stream: {head:?}");
        Streaming { head, client: self, frames: Frames::default(), over: false }
    }

    pub fn send(&mut self, request: &Request) {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
        if !request.headers.iter().any(|(name, _)| name == "host") {
            bytes.push_str("host: localhost\r\n");
        }
        for (name, value) in &request.headers {
            bytes += &format!("{name}: {value}\r\n");
        }
        let mut bytes = format!("{bytes}content-length: {}\r\n\r\n", request.body.len()).into_bytes();
        bytes.extend_from_slice(&request.body);
        self.send_bytes(&bytes);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).unwrap();
    }

    pub fn reply(&mut self) -> Reply {
        let head = self.head();
        let pieces = match head.length() {
            Length::Bytes(length) => vec![self.piece(length)],
            Length::Chunked => std::iter::from_fn(|| self.chunk()).collect(),
        };
        Reply { head, pieces }
    }

    fn head(&mut self) -> Head {
        let status = self.line();
        let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or_else(|| {
            panic!("not the first line of a reply: {status:?}");
        });
        let mut head = Head { status: status.parse().unwrap(), headers: Vec::new() };
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else {
                assert_eq!(line, "");
                return head;
            };
            head.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// The next chunk; `None` at the end of the body.
    fn chunk(&mut self) -> Option<Piece> {
        let length = usize::from_str_radix(&self.line(), 16).unwrap();
        if length == 0 {
            assert_eq!(self.line(), "", "trailers");
            return None;
        }
        let piece = self.piece(length);
        assert_eq!(self.line(), "", "a chunk has its length");
        Some(piece)
    }

    fn piece(&mut self, length: usize) -> Piece {
        let mut bytes = vec![0; length];
        self.socket.read_exact(&mut bytes).unwrap();
        Piece { at: Instant::now(), bytes }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).unwrap();
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("the connection was closed after {line:?}")).to_owned()
    }
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} stands twice");
        first
    }

    fn length(&self) -> Length {
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (Some("chunked"), None) => Length::Chunked,
            (None, Some(length)) => Length::Bytes(length.parse().unwrap()),
            other => panic!("no way to tell where the body ends: {other:?}"),
        }
    }
}

impl Reply {
    pub fn status(&self) -> u16 {
        self.head.status
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
        String::from_utf8(bytes).unwrap()
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    pub fn frames(&self) -> Vec<Frame> {
        let mut frames = Frames::default();
        for piece in &self.pieces {
            frames.add(piece);
        }
        frames.end();
        frames.ready.into()
    }
}

impl Streaming {
    /// The next frame, when it comes; `None` at the end.
    pub fn next(&mut self) -> Option<Frame> {
        while self.frames.ready.is_empty() && !self.over {
            match self.client.chunk() {
                Some(piece) => self.frames.add(&piece),
                None => {
                    self.frames.end();
                    self.over = true;
                }
            }
        }
        self.frames.ready.pop_front()
    }

    pub fn rest(mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// The next piece as it came, for who reads more than data; not to be mixed with `next`.
    pub fn piece(&mut self) -> Option<Piece> {
        if self.over {
            return None;
        }
        let piece = self.client.chunk();
        self.over = piece.is_none();
        piece
    }
}

impl Frames {
    fn add(&mut self, piece: &Piece) {
        self.rest += std::str::from_utf8(&piece.bytes).unwrap();
        while let Some((frame, rest)) = self.rest.split_once("\n\n") {
            let data = frame.strip_prefix("data: ").unwrap_or_else(|| panic!("not a data frame: {frame:?}"));
            assert!(!data.contains('\n'), "a frame of two lines: {frame:?}");
            self.ready.push_back(Frame { at: piece.at, data: data.to_owned() });
            self.rest = rest.to_owned();
        }
    }

    fn end(&self) {
        assert_eq!(self.rest, "", "half a frame at the end");
    }
}

impl Frame {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {:?}", self.data))
    }
}
