//! A small blocking HTTP/1.1 client that records the chunks of a body and when each arrived.

use super::TIMEOUT;
use super::sse::{SseMessage, SseParser};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// One keep-alive connection, closed on drop.
pub struct Client {
    pub socket: BufReader<TcpStream>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Builder of a chat request: `chat("Hello!").streamed().with("n", 2)`.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    pub body: Value,
    headers: Vec<(String, String)>,
}

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    pub head: ResponseHead,
    /// The body: one entry per HTTP chunk, or a single one.
    pub chunks: Vec<BodyChunk>,
}

#[derive(Debug)]
pub struct ResponseHead {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct BodyChunk {
    pub at: Instant,
    pub bytes: Vec<u8>,
}

/// One SSE event with only data.
#[derive(Clone, Debug)]
pub struct Frame {
    pub at: Instant,
    pub data: String,
}

/// An SSE response that is still arriving. Dropping it closes the connection.
pub struct ResponseStream {
    pub head: ResponseHead,
    client: Client,
    parser: SseParser,
}

enum Length {
    Chunked,
    Bytes(usize),
}

pub fn chat(text: &str) -> ChatRequest {
    ChatRequest {
        body: json!({ "model": "demo", "messages": [{ "role": "user", "content": text }] }),
        headers: vec![("content-type".into(), "application/json".into())],
    }
}

impl ChatRequest {
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> ChatRequest {
        self.body[key] = value.into();
        self
    }

    pub fn without(mut self, key: &str) -> ChatRequest {
        self.body.as_object_mut().unwrap().remove(key);
        self
    }

    pub fn streamed(self) -> ChatRequest {
        self.with("stream", true)
    }

    pub fn header(mut self, name: &str, value: &str) -> ChatRequest {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl From<ChatRequest> for Request {
    fn from(chat: ChatRequest) -> Request {
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

    /// A request to the chat endpoint with any body.
    pub fn post(body: impl Into<Vec<u8>>) -> Request {
        Request { body: body.into(), ..Request::new("POST", "/v1/chat/completions") }
    }

    /// The request as it is sent over HTTP/1.1.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head.push_str("host: localhost\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", self.body.len());
        [head.as_bytes(), &self.body].concat()
    }
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        Client::over(TcpStream::connect(addr).unwrap())
    }

    pub fn over(socket: TcpStream) -> Client {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Client { socket: BufReader::new(socket) }
    }

    pub fn into_inner(self) -> impl Read {
        self.socket
    }

    pub fn fetch(&mut self, request: impl Into<Request>) -> Reply {
        let request = request.into();
        self.send(&request);
        let head = self.head();
        let mut chunks = Vec::new();
        if request.method == "HEAD" || matches!(head.status, 204 | 304) {
            return Reply { head, chunks };
        }
        match head.length() {
            Length::Bytes(length) => chunks.push(self.read_bytes(length)),
            Length::Chunked => chunks.extend(std::iter::from_fn(|| self.next_chunk())),
        }
        Reply { head, chunks }
    }

    /// Sends a request and returns as soon as the response headers have arrived.
    pub fn stream(mut self, request: impl Into<Request>) -> ResponseStream {
        self.send(&request.into());
        let head = self.head();
        assert!(matches!(head.length(), Length::Chunked), "not a stream: {head:?}");
        ResponseStream { head, client: self, parser: SseParser::default() }
    }

    pub fn send(&mut self, request: &Request) {
        self.send_bytes(&request.to_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).unwrap();
    }

    pub fn reply(&mut self) -> Reply {
        let head = self.head();
        let chunks = match head.length() {
            Length::Bytes(length) => vec![self.read_bytes(length)],
            Length::Chunked => std::iter::from_fn(|| self.next_chunk()).collect(),
        };
        Reply { head, chunks }
    }

    pub fn head(&mut self) -> ResponseHead {
        let status = self.line();
        let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or_else(|| {
            panic!("not the first line of a reply: {status:?}");
        });
        let mut head = ResponseHead { status: status.parse().unwrap(), headers: Vec::new() };
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
    fn next_chunk(&mut self) -> Option<BodyChunk> {
        let length = usize::from_str_radix(&self.line(), 16).unwrap();
        if length == 0 {
            assert_eq!(self.line(), "", "trailers");
            return None;
        }
        let chunk = self.read_bytes(length);
        assert_eq!(self.line(), "", "a chunk has its length");
        Some(chunk)
    }

    fn read_bytes(&mut self, length: usize) -> BodyChunk {
        let mut bytes = vec![0; length];
        self.socket.read_exact(&mut bytes).unwrap();
        BodyChunk { at: Instant::now(), bytes }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).unwrap();
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("the connection was closed after {line:?}")).to_owned()
    }
}

impl ResponseHead {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} is repeated");
        first
    }

    fn length(&self) -> Length {
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (Some("chunked"), None) => Length::Chunked,
            (None, Some(length)) => Length::Bytes(length.parse().unwrap()),
            other => panic!("the length of the body is undefined: {other:?}"),
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
        let bytes: Vec<u8> = self.chunks.iter().flat_map(|chunk| chunk.bytes.clone()).collect();
        String::from_utf8(bytes).unwrap()
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    pub fn sse_messages(&self) -> Vec<SseMessage> {
        let mut parser = SseParser::default();
        self.chunks.iter().for_each(|chunk| parser.add(chunk));
        parser.end()
    }

    pub fn frames(&self) -> Vec<Frame> {
        self.sse_messages().into_iter().map(SseMessage::into_frame).collect()
    }
}

impl ResponseStream {
    /// The next event or comment, when it comes; `None` at the end.
    pub fn next_message(&mut self) -> Option<SseMessage> {
        loop {
            if let Some(message) = self.parser.next() {
                return Some(message);
            }
            match self.client.next_chunk() {
                Some(chunk) => self.parser.add(&chunk),
                None => {
                    assert!(std::mem::take(&mut self.parser).end().is_empty());
                    return None;
                }
            }
        }
    }

    pub fn next(&mut self) -> Option<Frame> {
        self.next_message().map(SseMessage::into_frame)
    }

    pub fn rest(mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Frame {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {:?}", self.data))
    }
}
