//! The scripted backend does what its script says: looked at from a plain socket, byte by byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::{Answer, Backend, FAR_TOO_LONG, Refusing, eventually, within};

const GET: &str = "GET /v1/models HTTP/1.1\r\nhost: test\r\n\r\n";

/// Long enough that what has not come by then does not come.
const A_WHILE: Duration = Duration::from_millis(60);

/// How soon it must be noticed that a client went.
const AT_ONCE: Duration = Duration::from_millis(20);

const STREAM: &str = "HTTP/1.1 200 scripted\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

// ---- what it sees

#[test]
fn a_request_is_seen_as_it_came() {
    let backend = Backend::start(|_| Answer::new(204));
    let mut client = connect(backend.addr());
    client.say("POST /v1/chat?a=b HTTP/1.1\r\nHost: test\r\nX-Key:  one \r\ncontent-length: 9\r\n\r\n{\"n\": 17}");
    client.hears("HTTP/1.1 204 scripted\r\ncontent-length: 0\r\n\r\n");
    let [seen] = &backend.seen()[..] else { panic!("{:?}", backend.seen()) };
    let headers = [("host", "test"), ("x-key", "one"), ("content-length", "9")];
    assert_eq!((seen.method.as_str(), seen.path.as_str(), seen.connection), ("POST", "/v1/chat?a=b", 0));
    assert_eq!(seen.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(seen.body, b"{\"n\": 17}");
    assert_eq!(seen.json(), json!({ "n": 17 }));
    assert_eq!((seen.header("X-KEY"), seen.header("x-other")), (Some("one"), None));
}

#[test]
fn a_body_in_chunks_is_put_together() {
    let backend = Backend::start(|_| Answer::new(200));
    let mut client = connect(backend.addr());
    client.say("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
    for piece in ["3\r\nabc\r\n", "A;why=not\r\n0123456789\r\n", "0\r\nx-trailer: 1\r\n\r\n"] {
        client.say(piece);
    }
    // The next request begins where the body ended.
    client.say(GET);
    client.hears("HTTP/1.1 200 scripted\r\ncontent-length: 0\r\n\r\n".repeat(2));
    let bodies: Vec<Vec<u8>> = backend.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, [b"abc0123456789".to_vec(), Vec::new()]);
}

#[test]
fn a_client_that_waits_for_a_continue_gets_one() {
    let backend = Backend::start(|_| Answer::new(200));
    let mut client = connect(backend.addr());
    client.say("POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n");
    client.hears("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(backend.seen(), [], "the body is not there yet");
    client.say("hello");
    client.hears("HTTP/1.1 200 scripted\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(backend.seen()[0].body, b"hello");
}

#[test]
fn a_connection_is_good_for_several_requests_and_each_has_its_number() {
    let backend = Backend::start(|seen| Answer::json(200, &seen.path));
    let (mut first, mut second) = (connect(backend.addr()), None);
    for (number, path) in ["/a", "/bc", "/def"].into_iter().enumerate() {
        first.say(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        first.hears(whole("200", path));
        if number == 1 {
            let client = second.insert(connect(backend.addr()));
            client.say("GET /other HTTP/1.1\r\n\r\n");
            client.hears(whole("200", "/other"));
        }
    }
    let seen: Vec<(String, usize)> = backend.seen().into_iter().map(|seen| (seen.path, seen.connection)).collect();
    let expected = [("/a", 0), ("/bc", 0), ("/other", 1), ("/def", 0)];
    assert_eq!(seen, expected.map(|(path, connection)| (path.to_owned(), connection)));
    assert_eq!(backend.connections(), 2);
    assert_eq!(backend.url(), format!("http://127.0.0.1:{}/v1", backend.addr().port()));
}

#[test]
fn a_client_that_asks_for_it_is_hung_up_on() {
    let backend = Backend::start(|_| Answer::json(200, "{}"));
    let mut client = connect(backend.addr());
    client.say("GET / HTTP/1.1\r\nconnection: close\r\n\r\n");
    client.hears(whole("200", "{}"));
    client.hears_the_end();
}

#[test]
fn a_head_is_asked_for_and_answered_without_a_body() {
    let backend = Backend::start(|seen| Answer::json(200, &seen.method));
    let mut client = connect(backend.addr());
    client.say("HEAD / HTTP/1.1\r\n\r\n");
    client.say(GET);
    client.hears("HTTP/1.1 200 scripted\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n");
    client.hears(whole("200", "GET"));
}

// ---- how a body ends

#[test]
fn a_stream_of_events_is_chunked_event_by_event() {
    let (_backend, mut client) = asked(Answer::sse(&["one", "[DONE]"]));
    client.hears(format!("{STREAM}b\r\ndata: one\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"));
}

#[test]
fn a_raw_stream_is_sent_as_it_is() {
    let (_backend, mut client) = asked(Answer::sse_raw(b"event: a\rdata: \xff").status(201));
    client.hears(STREAM.replace("200", "201"));
    client.hears(b"10\r\nevent: a\rdata: \xff\r\n0\r\n\r\n");
}

#[test]
fn a_stream_of_lines_is_chunked_line_by_line() {
    let (_backend, mut client) = asked(Answer::ndjson(&["{}", "[1]"]));
    client.hears(STREAM.replace("text/event-stream", "application/x-ndjson"));
    client.hears("3\r\n{}\n\r\n4\r\n[1]\n\r\n0\r\n\r\n");
}

#[test]
fn a_body_has_its_length_and_the_headers_it_was_given() {
    let answer = Answer::json(429, "{\"error\":1}").header("retry-after", "7");
    let (_backend, mut client) = asked(answer.header("Content-Type", "application/problem+json"));
    client.hears("HTTP/1.1 429 scripted\r\ncontent-type: application/problem+json\r\nretry-after: 7\r\n");
    client.hears("content-length: 11\r\n\r\n{\"error\":1}");
}

#[test]
fn a_stream_may_have_a_length() {
    let (_backend, mut client) = asked(Answer::sse(&["a", "b"]).length());
    client.hears(STREAM.replace("transfer-encoding: chunked", "content-length: 18"));
    client.hears("data: a\n\ndata: b\n\n");
}

#[test]
fn a_body_may_last_until_the_connection_is_closed() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).until_close());
    client.hears(STREAM.replace("transfer-encoding: chunked", "connection: close"));
    client.hears("data: a\n\n");
    client.hears_the_end();
    assert_eq!(backend.gone(), []);
}

#[test]
fn a_length_that_promises_too_much_is_followed_by_the_end() {
    let (_backend, mut client) = asked(Answer::json(200, "{}").wrong_length(5));
    client.hears(whole("200", "{}").replace("length: 2", "length: 7"));
    client.hears_the_end();
}

#[test]
fn a_length_that_promises_too_little_leaves_bytes_before_the_next_answer() {
    let (_backend, mut client) = asked(Answer::json(200, "{} {}").wrong_length(-3));
    client.say(GET);
    client.hears(whole("200", "{} {}").replace("length: 5", "length: 2").repeat(2));
}

// ---- when a body does not end

#[test]
fn a_pause_separates_what_is_before_it_from_what_is_after() {
    let (begun, pause) = (Instant::now(), A_WHILE * 8);
    let (_backend, mut client) = asked(Answer::sse(&["a"]).pause(pause).event("b"));
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    client.hears_nothing_for(A_WHILE);
    client.hears("9\r\ndata: b\n\n\r\n0\r\n\r\n");
    assert!(begun.elapsed() >= pause);
}

#[test]
fn a_stalled_answer_says_nothing_more_until_the_client_goes() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).stall().event("never"));
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    client.hears_nothing_for(A_WHILE);
    assert_eq!(backend.gone(), []);
    noticed_at_once(&backend, client);
}

#[test]
fn a_client_that_goes_in_a_pause_is_noticed_before_the_pause_is_over() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).pause(FAR_TOO_LONG * 6).event("b"));
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    noticed_at_once(&backend, client);
}

#[test]
fn a_client_that_goes_while_it_is_written_to_is_noticed() {
    let (backend, mut client) = asked(Answer::sse(&[]).endless("data: a\n\n"));
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    noticed_at_once(&backend, client);
}

#[test]
fn a_client_that_goes_after_its_answer_is_not_one_that_went_away() {
    let (backend, mut client) = asked(Answer::json(200, "{}"));
    client.hears(whole("200", "{}"));
    drop(client);
    thread::sleep(A_WHILE);
    assert_eq!(backend.gone(), []);
}

#[test]
fn a_cut_answer_lacks_its_final_chunk() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).cut());
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    client.hears_the_end();
    assert_eq!(backend.gone(), [], "it was not the client who went");
}

#[test]
fn a_reset_is_not_a_friendly_end() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).pause(A_WHILE).reset());
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    assert_eq!(client.0.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    assert_eq!(backend.gone(), []);
}

#[test]
fn an_endless_answer_is_blocked_when_nobody_reads_it() {
    let (backend, mut client) = asked(Answer::sse(&["first"]).endless([b'x'; 1000]));
    let blocked = written_when_blocked(&backend);
    // Whoever reads lets it go on, with the rest of the piece that was blocked; whoever stops, stops it.
    let came = client.exactly(usize::try_from(blocked).unwrap() + 100_000);
    let piece = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let sent = format!("{STREAM}d\r\ndata: first\n\n\r\n{}", piece.repeat(came.len() / 1000));
    assert!(came == sent.as_bytes()[..came.len()], "something is missing in between");
    assert!(written_when_blocked(&backend) > blocked);
    assert_eq!(backend.gone(), []);
    noticed_at_once(&backend, client);
}

#[test]
fn a_client_that_only_stops_sending_is_noticed_by_a_blocked_writer() {
    let (backend, client) = asked(Answer::new(200).until_close().endless([0; 1000]));
    written_when_blocked(&backend);
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    eventually("the end is noticed", || backend.gone().pop());
}

#[test]
fn every_byte_that_is_sent_is_counted() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).split(4));
    let sent = format!("{STREAM}4\r\ndata\r\n4\r\n: a\n\r\n1\r\n\n\r\n0\r\n\r\n");
    client.hears(&sent);
    let wanted = sent.len() as u64;
    eventually("the last write is counted", || (backend.written() == wanted).then_some(()));
}

// ---- what is no answer

#[test]
fn garbage_is_sent_instead_of_a_head() {
    let (_backend, mut client) = asked(Answer::garbage(b"\x16\x03\x01 no HTTP\r\n\r\n"));
    client.hears(b"\x16\x03\x01 no HTTP\r\n\r\n");
    client.hears_the_end();
}

#[test]
fn half_a_head_can_be_all_there_is() {
    let (backend, mut client) = asked(Answer::raw().bytes("HTTP/1.1 200 OK\r\ncont").stall());
    client.hears("HTTP/1.1 200 OK\r\ncont");
    client.hears_nothing_for(A_WHILE);
    noticed_at_once(&backend, client);
}

#[test]
fn a_backend_may_never_answer() {
    let (backend, client) = asked(Answer::hang());
    client.hears_nothing_for(A_WHILE);
    assert_eq!((backend.seen().len(), backend.written()), (1, 0));
    noticed_at_once(&backend, client);
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let nobody = Refusing::start();
    assert_eq!(nobody.url(), format!("http://127.0.0.1:{}/v1", nobody.addr().port()));
    assert_eq!(TcpStream::connect(nobody.addr()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_script_that_panics_ends_its_connection_and_no_other() {
    let backend = Backend::start(|seen| match seen.path.as_str() {
        "/bad" => panic!("this is part of a test"),
        _ => Answer::new(200),
    });
    let mut client = connect(backend.addr());
    client.say("GET /bad HTTP/1.1\r\n\r\n");
    client.hears_the_end();
    let mut client = connect(backend.addr());
    client.say(GET);
    client.hears("HTTP/1.1 200 scripted\r\ncontent-length: 0\r\n\r\n");
}

#[test]
fn dropping_it_closes_its_port_and_its_connections() {
    let (backend, mut client) = asked(Answer::sse(&["a"]).stall());
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n"));
    let addr = backend.addr();
    let mut idle = connect(addr);
    idle.say("GET /half");
    eventually("both are connected", || (backend.connections() == 2).then_some(()));
    drop(backend);
    client.hears_the_end();
    idle.hears_the_end();
    assert_eq!(TcpStream::connect(addr).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

// ---- pieces

#[test]
fn a_split_answer_is_cut_anew_wherever_its_events_end() {
    let (_backend, mut client) = asked(Answer::sse(&["a", "b"]).split(7));
    client.hears(format!("{STREAM}7\r\ndata: a\r\n7\r\n\n\ndata:\r\n4\r\n b\n\n\r\n0\r\n\r\n"));
}

#[test]
fn a_split_answer_keeps_its_pauses_and_its_end() {
    let (_backend, mut client) = asked(Answer::sse(&["a"]).pause(A_WHILE).event("bc").cut().split(6));
    client.hears(format!("{STREAM}6\r\ndata: \r\n3\r\na\n\n\r\n"));
    client.hears("6\r\ndata: \r\n4\r\nbc\n\n\r\n");
    client.hears_the_end();
}

#[test]
fn bytes_may_come_one_by_one_at_a_pace() {
    let (begun, pace) = (Instant::now(), A_WHILE * 4);
    let (_backend, mut client) = asked(Answer::json(200, "[1]").split(1).pace(pace));
    client.hears("HTTP/1.1 200 scripted\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n");
    for (pauses, byte) in (0..).zip(["[", "1", "]"]) {
        client.hears(byte);
        assert!(begun.elapsed() >= pace * pauses, "{byte} came after {:?}", begun.elapsed());
    }
}

#[test]
fn a_piece_without_bytes_does_not_end_the_body() {
    let (_backend, mut client) = asked(Answer::sse_raw("").event("a"));
    client.hears(format!("{STREAM}9\r\ndata: a\n\n\r\n0\r\n\r\n"));
}

// ---- encodings

#[test]
fn a_whole_body_is_encoded_and_its_length_is_that_of_what_is_sent() {
    let text = format!("[{}1]", "0,".repeat(500));
    for encoding in ENCODINGS {
        let (_backend, mut client) = asked((encoding.apply)(Answer::json(200, &text)));
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
fn each_piece_of_an_encoded_stream_can_be_read_before_the_next_is_sent() {
    for encoding in ENCODINGS {
        let answer = Answer::sse(&["one", "two"]).stall();
        let (_backend, mut client) = asked((encoding.apply)(answer));
        client.head();
        let mut came = client.chunk();
        assert_eq!((encoding.begin)(&came, 11), "data: one\n\n", "{}", encoding.name);
        came.extend(client.chunk());
        assert_eq!((encoding.begin)(&came, 22), "data: one\n\ndata: two\n\n", "{}", encoding.name);
    }
}

#[test]
fn an_encoded_stream_that_is_whole_ends_as_its_encoding_wants() {
    for encoding in ENCODINGS {
        let (_backend, mut client) = asked((encoding.apply)(Answer::sse(&["one", "two"])));
        client.head();
        let came = [client.chunk(), client.chunk(), client.chunk()];
        assert_eq!(came[2], b"", "{}: the final chunk", encoding.name);
        assert_eq!((encoding.decode)(&came.concat()).unwrap(), "data: one\n\ndata: two\n\n");
    }
}

#[test]
fn an_encoded_stream_that_is_cut_lacks_the_end_of_its_encoding() {
    for encoding in ENCODINGS {
        let (_backend, mut client) = asked((encoding.apply)(Answer::sse(&["one"]).cut()));
        client.head();
        let came = client.chunk();
        client.hears_the_end();
        assert_eq!((encoding.begin)(&came, 11), "data: one\n\n", "{}", encoding.name);
        assert!((encoding.decode)(&came).is_err(), "{} ended well", encoding.name);
    }
}

#[test]
fn what_was_encoded_can_be_sent_byte_by_byte() {
    let (_backend, mut client) = asked(Answer::sse(&["one", "two"]).gzip().split(1));
    client.head();
    let pieces: Vec<Vec<u8>> = std::iter::from_fn(|| Some(client.chunk()).filter(|piece| !piece.is_empty())).collect();
    assert!(pieces.iter().all(|piece| piece.len() == 1));
    assert_eq!((ENCODINGS[0].decode)(&pieces.concat()).unwrap(), "data: one\n\ndata: two\n\n");
}

// ---- the other side

struct Plain(TcpStream);

struct Encoding {
    name: &'static str,
    apply: fn(Answer) -> Answer,
    /// All of it; an error where it stops halfway.
    decode: fn(&[u8]) -> std::io::Result<String>,
    /// The first so many bytes of what may be only a part.
    begin: fn(&[u8], usize) -> String,
}

const ENCODINGS: [Encoding; 3] = [
    Encoding {
        name: "gzip",
        apply: Answer::gzip,
        decode: |bytes| std::io::read_to_string(flate2::read::GzDecoder::new(bytes)),
        begin: |bytes, length| begin(flate2::read::GzDecoder::new(bytes), length),
    },
    Encoding {
        name: "br",
        apply: Answer::brotli,
        decode: |bytes| std::io::read_to_string(brotli::Decompressor::new(bytes, 4096)),
        begin: |bytes, length| begin(brotli::Decompressor::new(bytes, 4096), length),
    },
    Encoding {
        name: "zstd",
        apply: Answer::zstd,
        decode: |bytes| std::io::read_to_string(zstd::Decoder::new(bytes)?),
        begin: |bytes, length| begin(zstd::Decoder::new(bytes).unwrap(), length),
    },
];

fn begin(mut decoder: impl Read, length: usize) -> String {
    let mut bytes = vec![0; length];
    decoder.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A backend that always gives this answer, and a client that has asked for it once.
fn asked(answer: Answer) -> (Backend, Plain) {
    let backend = Backend::start(move |_| answer.clone());
    let mut client = connect(backend.addr());
    client.say(GET);
    (backend, client)
}

fn connect(addr: SocketAddr) -> Plain {
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(FAR_TOO_LONG)).unwrap();
    Plain(socket)
}

/// A whole JSON answer on the wire.
fn whole(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// How much was written when nothing more is taken.
fn written_when_blocked(backend: &Backend) -> u64 {
    let mut before = 0;
    eventually("the writer is blocked", || {
        thread::sleep(A_WHILE);
        let now = backend.written();
        (now > 0 && std::mem::replace(&mut before, now) == now).then_some(now)
    })
}

fn noticed_at_once(backend: &Backend, client: Plain) {
    let left = Instant::now();
    drop(client);
    let noticed = eventually("the end is noticed", || backend.gone().pop());
    assert_eq!(backend.gone().len(), 1);
    within("a client that went was noticed", noticed.duration_since(left), AT_ONCE);
}

impl Plain {
    fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// Exactly these bytes are next.
    fn hears(&mut self, wanted: impl AsRef<[u8]>) {
        let wanted = wanted.as_ref();
        let mut came = Vec::new();
        let read = (&self.0).take(wanted.len() as u64).read_to_end(&mut came);
        assert_eq!(came.escape_ascii().to_string(), wanted.escape_ascii().to_string(), "{read:?}");
    }

    fn hears_nothing_for(&self, time: Duration) {
        self.0.set_read_timeout(Some(time)).unwrap();
        let peeked = self.0.peek(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(peeked, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "something came: {peeked:?}");
        self.0.set_read_timeout(Some(FAR_TOO_LONG)).unwrap();
    }

    /// The connection was closed in order, and nothing was left on it.
    fn hears_the_end(&mut self) {
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
