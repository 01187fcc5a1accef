//! Tests of the mock backend itself, with a raw socket: it sends exactly the scripted bytes.

use crate::support::{MockBackend, MockResponse, RefusingPort, TIMEOUT, eventually, ms};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const GET: &str = "GET /v1/models HTTP/1.1\r\nhost: test\r\n\r\n";

/// Long enough to assume that nothing more arrives.
fn short_wait() -> Duration {
    ms(60)
}

const STREAM: &str = "HTTP/1.1 200 scripted\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

// ---- recorded requests

#[test]
fn a_request_is_recorded() {
    let backend = MockBackend::start(|_| MockResponse::new(204));
    let mut client = connect(backend.addr());
    client.send("POST /v1/chat?a=b HTTP/1.1\r\nHost: test\r\nX-Key:  one \r\ncontent-length: 9\r\n\r\n{\"n\": 17}");
    client.expect("HTTP/1.1 204 scripted\r\ncontent-length: 0\r\n\r\n");
    let [request] = &backend.requests()[..] else { panic!("{:?}", backend.requests()) };
    let headers = [("host", "test"), ("x-key", "one"), ("content-length", "9")];
    assert_eq!((request.method.as_str(), request.path.as_str(), request.connection), ("POST", "/v1/chat?a=b", 0));
    assert_eq!(request.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(request.body, b"{\"n\": 17}");
    assert_eq!(request.json(), json!({ "n": 17 }));
    assert_eq!((request.header("X-KEY"), request.header("x-other")), (Some("one"), None));
}

#[test]
fn a_chunked_body_is_joined() {
    let backend = MockBackend::start(|_| MockResponse::new(200));
    let mut client = connect(backend.addr());
    client.send("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
    for chunk in ["3\r\nabc\r\n", "A;why=not\r\n0123456789\r\n", "0\r\nx-trailer: 1\r\n\r\n"] {
        client.send(chunk);
    }
    // The next request starts right after the body.
    client.send(GET);
    client.expect("HTTP/1.1 200 scripted\r\ncontent-length: 0\r\n\r\n".repeat(2));
    let bodies: Vec<Vec<u8>> = backend.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"abc0123456789".to_vec(), Vec::new()]);
}

#[test]
fn expect_continue_is_answered() {
    let backend = MockBackend::start(|_| MockResponse::new(200));
    let mut client = connect(backend.addr());
    client.send("POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n");
    client.expect("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(backend.requests(), [], "the body is not there yet");
    client.send("hello");
    client.expect("HTTP/1.1 200 scripted\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(backend.requests()[0].body, b"hello");
}

#[test]
fn a_connection_serves_several_requests() {
    let backend = MockBackend::start(|request| MockResponse::json(200, &request.path));
    let (mut first, mut second) = (connect(backend.addr()), None);
    for (number, path) in ["/a", "/bc", "/def"].into_iter().enumerate() {
        first.send(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        first.expect(json_response("200", path));
        if number == 1 {
            let client = second.insert(connect(backend.addr()));
            client.send("GET /other HTTP/1.1\r\n\r\n");
            client.expect(json_response("200", "/other"));
        }
    }
    let request: Vec<(String, usize)> =
        backend.requests().into_iter().map(|request| (request.path, request.connection)).collect();
    let expected = [("/a", 0), ("/bc", 0), ("/other", 1), ("/def", 0)];
    assert_eq!(request, expected.map(|(path, connection)| (path.to_owned(), connection)));
    assert_eq!(backend.connections(), 2);
    assert_eq!(backend.url(), format!("http://127.0.0.1:{}/v1", backend.addr().port()));
}

#[test]
fn connection_close_is_respected() {
    let backend = MockBackend::start(|_| MockResponse::json(200, "{}"));
    let mut client = connect(backend.addr());
    client.send("GET / HTTP/1.1\r\nconnection: close\r\n\r\n");
    client.expect(json_response("200", "{}"));
    client.expect_end();
}

#[test]
fn a_head_request_is_answered_without_a_body() {
    let backend = MockBackend::start(|request| MockResponse::json(200, &request.method));
    let mut client = connect(backend.addr());
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    client.send(GET);
    client.expect("HTTP/1.1 200 scripted\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n");
    client.expect(json_response("200", "GET"));
}

// ---- the end of a body

#[test]
fn a_stream_of_events_is_chunked_event_by_event() {
    let (_backend, mut client) = request_once(MockResponse::sse(&["one", "[DONE]"]));
    client.expect(format!("{STREAM}b\r\ndata: one\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"));
}

#[test]
fn a_raw_stream_is_sent_unchanged() {
    let (_backend, mut client) = request_once(MockResponse::sse_raw(b"event: a\rdata: \xff").status(201));
    client.expect(STREAM.replace("200", "201"));
    client.expect(b"10\r\nevent: a\rdata: \xff\r\n0\r\n\r\n");
}

#[test]
fn a_stream_of_lines_is_chunked_line_by_line() {
    let (_backend, mut client) = request_once(MockResponse::ndjson(&["{}", "[1]"]));
    client.expect(STREAM.replace("text/event-stream", "application/x-ndjson"));
    client.expect("3\r\n{}\n\r\n4\r\n[1]\n\r\n0\r\n\r\n");
}

#[test]
fn a_body_has_its_length_and_headers() {
    let answer = MockResponse::json(429, "{\"error\":1}").header("retry-after", "7");
    let (_backend, mut client) = request_once(answer.header("Content-Type", "application/problem+json"));
    client.expect("HTTP/1.1 429 scripted\r\ncontent-type: application/problem+json\r\nretry-after: 7\r\n");
    client.expect("content-length: 11\r\n\r\n{\"error\":1}");
}

#[test]
fn a_stream_may_have_a_length() {
    let (_backend, mut client) = request_once(MockResponse::sse(&["a", "b"]).length());
    client.expect(STREAM.replace("transfer-encoding: chunked", "content-length: 18"));
    client.expect("data: a\n\ndata: b\n\n");
}

#[test]
fn a_body_may_end_with_the_connection() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).until_close());
    client.expect(STREAM.replace("transfer-encoding: chunked", "connection: close"));
    client.expect("data: a\n\n");
    client.expect_end();
    assert_eq!(backend.disconnects(), []);
}

#[test]
fn a_too_large_length_is_followed_by_a_disconnect() {
    let (_backend, mut client) = request_once(MockResponse::json(200, "{}").wrong_length(5));
    client.expect(json_response("200", "{}").replace("length: 2", "length: 7"));
    client.expect_end();
}

#[test]
fn a_too_small_length_puts_bytes_before_the_next_response() {
    let (_backend, mut client) = request_once(MockResponse::json(200, "{} {}").wrong_length(-3));
    client.send(GET);
    client.expect(json_response("200", "{} {}").replace("length: 5", "length: 2").repeat(2));
}

// ---- incomplete bodies

#[test]
fn a_pause_separates_two_chunks() {
    let (started, pause) = (Instant::now(), short_wait() * 8);
    let (_backend, mut client) = request_once(MockResponse::sse(&["a"]).pause(pause).event("b"));
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    client.expect_silence(short_wait());
    client.expect("9\r\ndata: b\n\n\r\n0\r\n\r\n");
    assert!(started.elapsed() >= pause);
}

#[test]
fn a_stalled_response_sends_nothing_until_the_client_disconnects() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).stall().event("never"));
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    client.expect_silence(short_wait());
    assert_eq!(backend.disconnects(), []);
    assert_disconnect_noticed(&backend, client);
}

#[test]
fn a_disconnect_during_a_pause_is_noticed_immediately() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).pause(TIMEOUT * 6).event("b"));
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    assert_disconnect_noticed(&backend, client);
}

#[test]
fn a_disconnect_during_a_write_is_noticed() {
    let (backend, mut client) = request_once(MockResponse::sse(&[]).endless("data: a\n\n"));
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    assert_disconnect_noticed(&backend, client);
}

#[test]
fn a_disconnect_after_the_response_is_not_counted() {
    let (backend, mut client) = request_once(MockResponse::json(200, "{}"));
    client.expect(json_response("200", "{}"));
    drop(client);
    thread::sleep(short_wait());
    assert_eq!(backend.disconnects(), []);
}

#[test]
fn a_disconnected_response_lacks_its_final_chunk() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).disconnect());
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    client.expect_end();
    assert_eq!(backend.disconnects(), [], "it was not the client who went");
}

#[test]
fn a_reset_is_not_a_clean_end() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).pause(short_wait()).reset());
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    assert_eq!(client.0.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    assert_eq!(backend.disconnects(), []);
}

#[test]
fn an_endless_response_blocks_if_it_is_not_read() {
    let (backend, mut client) = request_once(MockResponse::sse(&["first"]).endless([b'x'; 1000]));
    let blocked = written_when_blocked(&backend);
    // Reading resumes the blocked write; not reading blocks it again.
    let received = client.exactly(usize::try_from(blocked).unwrap() + 100_000);
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let sent = format!("{STREAM}d\r\ndata: first\n\n\r\n{}", chunk.repeat(received.len() / 1000));
    assert!(received == sent.as_bytes()[..received.len()], "something is missing in between");
    assert!(written_when_blocked(&backend) > blocked);
    assert_eq!(backend.disconnects(), []);
    assert_disconnect_noticed(&backend, client);
}

#[test]
fn a_client_that_only_stops_sending_is_noticed_by_a_blocked_writer() {
    let (backend, client) = request_once(MockResponse::new(200).until_close().endless([0; 1000]));
    written_when_blocked(&backend);
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    eventually("the end is noticed", || backend.disconnects().pop());
}

#[test]
fn every_byte_that_is_sent_is_counted() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).split(4));
    let sent = format!("{STREAM}4\r\ndata\r\n4\r\n: a\n\r\n1\r\n\n\r\n0\r\n\r\n");
    client.expect(&sent);
    let wanted = sent.len() as u64;
    eventually("the last write is counted", || (backend.written() == wanted).then_some(()));
}

// ---- invalid responses

#[test]
fn garbage_is_sent_instead_of_headers() {
    let (_backend, mut client) = request_once(MockResponse::garbage(b"\x16\x03\x01 no HTTP\r\n\r\n"));
    client.expect(b"\x16\x03\x01 no HTTP\r\n\r\n");
    client.expect_end();
}

#[test]
fn a_response_can_end_within_its_headers() {
    let (backend, mut client) = request_once(MockResponse::raw().bytes("HTTP/1.1 200 OK\r\ncont").stall());
    client.expect("HTTP/1.1 200 OK\r\ncont");
    client.expect_silence(short_wait());
    assert_disconnect_noticed(&backend, client);
}

#[test]
fn a_backend_may_never_respond() {
    let (backend, client) = request_once(MockResponse::hang());
    client.expect_silence(short_wait());
    assert_eq!((backend.requests().len(), backend.written()), (1, 0));
    assert_disconnect_noticed(&backend, client);
}

#[test]
fn a_port_without_a_listener_refuses_connections() {
    let port = RefusingPort::start();
    assert_eq!(port.url(), format!("http://127.0.0.1:{}/v1", port.addr().port()));
    assert_eq!(TcpStream::connect(port.addr()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_script_that_panics_ends_its_connection_and_no_other() {
    let backend = MockBackend::start(|request| match request.path.as_str() {
        "/bad" => panic!("this is part of a test"),
        _ => MockResponse::new(200),
    });
    let mut client = connect(backend.addr());
    client.send("GET /bad HTTP/1.1\r\n\r\n");
    client.expect_end();
    let mut client = connect(backend.addr());
    client.send(GET);
    client.expect("HTTP/1.1 200 scripted\r\ncontent-length: 0\r\n\r\n");
}

#[test]
fn dropping_the_backend_closes_its_port_and_connections() {
    let (backend, mut client) = request_once(MockResponse::sse(&["a"]).stall());
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    let addr = backend.addr();
    let mut idle = connect(addr);
    idle.send("GET /half");
    eventually("both are connected", || (backend.connections() == 2).then_some(()));
    drop(backend);
    client.expect_end();
    idle.expect_end();
    assert_eq!(TcpStream::connect(addr).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

// ---- chunks

#[test]
fn a_split_response_ignores_event_borders() {
    let (_backend, mut client) = request_once(MockResponse::sse(&["a", "b"]).split(7));
    client.expect(format!("{STREAM}7\r\ndata: a\r\n7\r\n\n\ndata:\r\n4\r\n b\n\n\r\n0\r\n\r\n"));
}

#[test]
fn a_split_response_keeps_its_pauses_and_its_end() {
    let (_backend, mut client) =
        request_once(MockResponse::sse(&["a"]).pause(short_wait()).event("bc").disconnect().split(6));
    client.expect(format!("{STREAM}6\r\ndata: \r\n3\r\na\n\n\r\n"));
    client.expect("6\r\ndata: \r\n4\r\nbc\n\n\r\n");
    client.expect_end();
}

#[test]
fn bytes_can_be_sent_one_by_one_with_pauses() {
    let (started, pace) = (Instant::now(), short_wait() * 4);
    let (_backend, mut client) = request_once(MockResponse::json(200, "[1]").split(1).pause_between(pace));
    client.expect("HTTP/1.1 200 scripted\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n");
    for (pauses, byte) in (0..).zip(["[", "1", "]"]) {
        client.expect(byte);
        assert!(started.elapsed() >= pace * pauses, "{byte} came after {:?}", started.elapsed());
    }
}

#[test]
fn an_empty_chunk_does_not_end_the_body() {
    let (_backend, mut client) = request_once(MockResponse::sse_raw("").event("a"));
    client.expect(format!("{STREAM}9\r\ndata: a\n\n\r\n0\r\n\r\n"));
}

// ---- encodings

#[test]
fn the_length_of_an_encoded_body_is_that_of_the_encoded_bytes() {
    let text = format!("[{}1]", "0,".repeat(500));
    for encoding in ENCODINGS {
        let (_backend, mut client) = request_once((encoding.apply)(MockResponse::json(200, &text)));
        let head = client.head();
        let length = head.rsplit_once("content-length: ").unwrap().1.trim().parse().unwrap();
        let name = encoding.name;
        let expected =
            format!("HTTP/1.1 200 scripted\r\ncontent-type: application/json\r\ncontent-encoding: {name}\r\n");
        assert_eq!(head, format!("{expected}content-length: {length}\r\n\r\n"));
        assert!(length < 100, "{name}: {length} bytes");
        assert_eq!((encoding.decode)(&client.exactly(length)).unwrap(), text, "{name}");
    }
}

#[test]
fn each_chunk_of_an_encoded_stream_can_be_decoded_before_the_next() {
    for encoding in ENCODINGS {
        let answer = MockResponse::sse(&["one", "two"]).stall();
        let (_backend, mut client) = request_once((encoding.apply)(answer));
        client.head();
        let mut received = client.chunk();
        assert_eq!((encoding.begin)(&received, 11), "data: one\n\n", "{}", encoding.name);
        received.extend(client.chunk());
        assert_eq!((encoding.begin)(&received, 22), "data: one\n\ndata: two\n\n", "{}", encoding.name);
    }
}

#[test]
fn a_complete_encoded_stream_ends_correctly() {
    for encoding in ENCODINGS {
        let (_backend, mut client) = request_once((encoding.apply)(MockResponse::sse(&["one", "two"])));
        client.head();
        let received = [client.chunk(), client.chunk(), client.chunk()];
        assert_eq!(received[2], b"", "{}: the final chunk", encoding.name);
        assert_eq!((encoding.decode)(&received.concat()).unwrap(), "data: one\n\ndata: two\n\n");
    }
}

#[test]
fn a_truncated_encoded_stream_lacks_the_end_of_its_encoding() {
    for encoding in ENCODINGS {
        let (_backend, mut client) = request_once((encoding.apply)(MockResponse::sse(&["one"]).disconnect()));
        client.head();
        let received = client.chunk();
        client.expect_end();
        assert_eq!((encoding.begin)(&received, 11), "data: one\n\n", "{}", encoding.name);
        assert!((encoding.decode)(&received).is_err(), "{} ended well", encoding.name);
    }
}

#[test]
fn an_encoded_body_can_be_sent_byte_by_byte() {
    let (_backend, mut client) = request_once(MockResponse::sse(&["one", "two"]).gzip().split(1));
    client.head();
    let chunks: Vec<Vec<u8>> = std::iter::from_fn(|| Some(client.chunk()).filter(|chunk| !chunk.is_empty())).collect();
    assert!(chunks.iter().all(|chunk| chunk.len() == 1));
    assert_eq!((ENCODINGS[0].decode)(&chunks.concat()).unwrap(), "data: one\n\ndata: two\n\n");
}

// ---- helpers

struct RawClient(TcpStream);

struct Encoding {
    name: &'static str,
    apply: fn(MockResponse) -> MockResponse,
    /// Decodes a complete body; an error if it is truncated.
    decode: fn(&[u8]) -> std::io::Result<String>,
    /// Decodes the first bytes of a body that may be incomplete.
    begin: fn(&[u8], usize) -> String,
}

const ENCODINGS: [Encoding; 3] = [
    Encoding {
        name: "gzip",
        apply: MockResponse::gzip,
        decode: |bytes| std::io::read_to_string(flate2::read::GzDecoder::new(bytes)),
        begin: |bytes, length| begin(flate2::read::GzDecoder::new(bytes), length),
    },
    Encoding {
        name: "br",
        apply: MockResponse::brotli,
        decode: |bytes| std::io::read_to_string(brotli::Decompressor::new(bytes, 4096)),
        begin: |bytes, length| begin(brotli::Decompressor::new(bytes, 4096), length),
    },
    Encoding {
        name: "zstd",
        apply: MockResponse::zstd,
        decode: |bytes| std::io::read_to_string(zstd::Decoder::new(bytes)?),
        begin: |bytes, length| begin(zstd::Decoder::new(bytes).unwrap(), length),
    },
];

fn begin(mut decoder: impl Read, length: usize) -> String {
    let mut bytes = vec![0; length];
    decoder.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A backend that always sends this response, and a client that has sent one request.
fn request_once(answer: MockResponse) -> (MockBackend, RawClient) {
    let backend = MockBackend::start(move |_| answer.clone());
    let mut client = connect(backend.addr());
    client.send(GET);
    (backend, client)
}

fn connect(addr: SocketAddr) -> RawClient {
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    RawClient(socket)
}

/// The bytes of a JSON response.
fn json_response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The number of bytes written when the writer blocks.
fn written_when_blocked(backend: &MockBackend) -> u64 {
    let mut before = 0;
    eventually("the writer is blocked", || {
        thread::sleep(short_wait());
        let now = backend.written();
        (now > 0 && std::mem::replace(&mut before, now) == now).then_some(now)
    })
}

fn assert_disconnect_noticed(backend: &MockBackend, client: RawClient) {
    drop(client);
    eventually("the end is noticed", || backend.disconnects().pop());
    assert_eq!(backend.disconnects().len(), 1);
}

impl RawClient {
    fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// Asserts that exactly these bytes are next.
    fn expect(&mut self, wanted: impl AsRef<[u8]>) {
        let wanted = wanted.as_ref();
        let mut received = Vec::new();
        let read = (&self.0).take(wanted.len() as u64).read_to_end(&mut received);
        assert_eq!(received.escape_ascii().to_string(), wanted.escape_ascii().to_string(), "{read:?}");
    }

    fn expect_silence(&self, time: Duration) {
        self.0.set_read_timeout(Some(time)).unwrap();
        let peeked = self.0.peek(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(peeked, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "something came: {peeked:?}");
        self.0.set_read_timeout(Some(TIMEOUT)).unwrap();
    }

    /// Asserts that the connection was closed cleanly and nothing is left to read.
    fn expect_end(&mut self) {
        assert_eq!(self.0.read(&mut [0]).unwrap(), 0);
    }

    fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(self.exactly(1));
        }
        String::from_utf8(line).unwrap()
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head += &self.line();
        }
        head
    }

    /// The next chunk; the final one has no bytes.
    fn chunk(&mut self) -> Vec<u8> {
        let length = usize::from_str_radix(self.line().trim_end(), 16).unwrap();
        let bytes = self.exactly(length);
        assert_eq!(self.line(), "\r\n", "a chunk has its length");
        bytes
    }
}
