//! Transport of backend responses: chunking, encodings, content types, size limits, and connection reuse.

use super::backend_streams::HelloStream;
use super::gateway_fixture::GatewayFixture;
use super::received::{Dialect, Form, Received};
use crate::support::{Gate, MockBackend, MockResponse, Reply, TestDir, eventually, ms, repo, serve};
use serde_json::json;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

const BACKENDS: &[&str] = &["openai-chat", "openai-responses"];

/// The text of a response with ids and times replaced.
fn normalize(reply: &Reply) -> String {
    let text = reply.text();
    let mut out = String::new();
    let mut rest = text.as_str();
    // A generated id is a prefix and many alphanumerics; a time has ten digits.
    while let Some(c) = rest.chars().next() {
        let id = ["chatcmpl-", "resp_", "msg_", "cmpl-", "fc_", "call_"].into_iter().find(|p| rest.starts_with(p));
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(prefix) = id {
            out += prefix;
            rest = rest[prefix.len()..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        } else if digits == 10 {
            out += "TIME";
            rest = &rest[digits..];
        } else {
            let step = digits.max(c.len_utf8());
            out += &rest[..step];
            rest = &rest[step..];
        }
    }
    out
}

fn fetch_received(fixture: &GatewayFixture, dialect: Dialect, form: Form) -> Received {
    dialect.read(form, &fixture.fetch(dialect.request(form)))
}

fn complete_hello() -> Received {
    Received::Complete("Hello".to_owned())
}

/// Asserts that every dialect receives this, streamed and as JSON.
fn assert_all_receive(fixture: &GatewayFixture, what: &str, answer: MockResponse, expected: &Received) {
    fixture.set_response(answer);
    for dialect in Dialect::ALL {
        for form in [Form::Stream, Form::Json] {
            assert_eq!(fetch_received(fixture, dialect, form), *expected, "{what}: {dialect:?} {form:?}");
        }
    }
}

// ---- chunking

#[test]
fn a_stream_split_at_every_byte_gives_the_same_bytes() {
    for name in BACKENDS {
        let (mut hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
        // Characters of every UTF-8 width, a joined emoji and an escaped surrogate pair, to detect bad splits.
        for event in &mut hello.events {
            *event = event.replace("Hel", "é漢🙂👩‍👩‍👧\\ud83d\\ude00");
        }
        for dialect in Dialect::ALL {
            for form in [Form::Stream, Form::Json] {
                let whole = normalize(
                    fixture.set_response(MockResponse::sse_raw(hello.text())).fetch(dialect.request(form)).ok(),
                );
                assert!(whole.contains("é漢🙂👩‍👩‍👧😀"), "{whole}");
                for size in [1, 3] {
                    let split = MockResponse::sse_raw(hello.text()).split(size);
                    assert_eq!(
                        normalize(fixture.set_response(split).fetch(dialect.request(form)).ok()),
                        whole,
                        "chunks of {size}: {name} {dialect:?} {form:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_json_response_split_at_every_byte_gives_the_same_bytes() {
    for name in BACKENDS {
        let (hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
        for form in [Form::Stream, Form::Json] {
            let whole = normalize(fixture.set_response(hello.json()).fetch(Dialect::Responses.request(form)).ok());
            let split = hello.json().chunked().split(1);
            assert_eq!(
                normalize(fixture.set_response(split).fetch(Dialect::Responses.request(form)).ok()),
                whole,
                "{name} {form:?}"
            );
        }
    }
}

/// Each variant is sent whole and byte by byte: a CR and its LF may be split.
#[test]
fn every_line_ending_and_sse_field_is_read() {
    for name in BACKENDS {
        let (hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
        let text = hello.text();
        let in_lines = hello.events.iter().map(|e| format!("data: {}\n\n", e.replacen(',', ",\ndata: ", 1)));
        let in_lines: String = in_lines.chain(hello.end.map(|end| format!("data: {end}\n\n"))).collect();
        let variants = [
            ("LF", text.clone()),
            ("CR", text.replace('\n', "\r")),
            ("CRLF", text.replace('\n', "\r\n")),
            ("CR and LF mixed", text.replacen("\n\n", "\r\n\n", 1).replacen("\n\nd", "\r\rd", 1)),
            ("a BOM", format!("\u{feff}{text}")),
            ("a BOM and a comment", format!("\u{feff}: hello\n\n{text}")),
            ("no space after the colon", text.replace("data: ", "data:")),
            ("data in two lines", in_lines.clone()),
            ("data in two lines, CRLF", in_lines.replace('\n', "\r\n")),
            ("comments", text.replace("\n\n", "\n: keep-alive\n\n:\n\n")),
            ("empty lines at the beginning", format!("\n\r\n\n{text}")),
            (
                "names, ids, times, unknown fields",
                text.replace("data: ", "event: message\nid: 7\nretry: 10\nwhat: else\nlonely\ndata: "),
            ),
            ("events without data", text.replace("\n\n", "\n\nevent: ping\n\ndata\n\n")),
            ("no last empty line", text.trim_end().to_owned() + "\n"),
            ("no last line end", text.trim_end().to_owned()),
            ("no last line end, CR", text.trim_end().replace('\n', "\r")),
        ];
        for (what, text) in variants {
            let whole = MockResponse::sse_raw(&text);
            assert_all_receive(&fixture, &format!("{name}, {what}"), whole.clone(), &complete_hello());
            assert_eq!(
                fetch_received(fixture.set_response(whole.split(1)), Dialect::Chat, Form::Stream),
                complete_hello(),
                "{name}, {what}, byte by byte"
            );
        }
    }
}

#[test]
fn the_end_marker_may_be_incomplete_or_missing() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::of("openai-chat"));
    let text = hello.text();
    let without = text.strip_suffix("data: [DONE]\n\n").unwrap();
    for (what, text) in [("half", format!("{without}data: [DONE]")), ("none", without.to_owned())] {
        assert_all_receive(&fixture, what, MockResponse::sse_raw(text), &complete_hello());
    }
}

// ---- size limits

#[test]
fn a_line_of_eight_megabytes_is_accepted() {
    let fixture = GatewayFixture::of("openai-chat");
    let text = "x".repeat(8 << 20);
    let event = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": "stop" }] });
    for (form, answer) in [
        (Form::Stream, MockResponse::sse(&[&event.to_string(), "[DONE]"])),
        (Form::Json, MockResponse::json(200, &event.to_string().replace("delta", "message"))),
    ] {
        let started = Instant::now();
        let received = fetch_received(fixture.set_response(answer), Dialect::Chat, form);
        println!("8 MiB in one line, {form:?}: {:.1?}", started.elapsed());
        assert!(received == Received::Complete(text.clone()), "another text");
    }
}

/// A gateway with small limits.
fn with_limits(limits: &str) -> GatewayFixture {
    let gateway = repo("mappings/gateway.yaml");
    let (_, shipped) = gateway.split_once("\nlimits:\n").unwrap();
    let (shipped, _) = shipped.split_once("timeouts:").unwrap();
    let dir =
        TestDir::empty().with_edit("gateway.yaml", &format!("limits:\n{shipped}"), &format!("limits: {limits}\n"));
    GatewayFixture::launched("openai-chat", |launch| launch.add(dir))
}

fn bad_gateway(message: &str) -> Received {
    Received::HttpError { status: 502, message: message.to_owned(), code: None, retry_after: None }
}

#[test]
fn an_event_above_the_size_limit_is_a_typed_error() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), with_limits("{ event_bytes: 1000 }"));
    let empty = r#"{"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}"#;
    let xs = |length: usize| "x".repeat(length - empty.len());
    let large = |length: usize| empty.replace(r#""content":""#, &format!(r#""content":"{}"#, xs(length)));
    let limit = bad_gateway("an event of the backend is larger than 1000 bytes");
    let fits = large(990);
    assert_eq!(fits.len(), 990);
    // An event within the limit is accepted.
    let well =
        hello.ended(hello.events[1..].iter().fold(MockResponse::sse(&[&fits]), |answer, event| answer.event(event)));
    let received = Received::Complete(xs(990) + "Hello");
    assert_all_receive(&fixture, "990 bytes", well, &received);
    let two_lines = large(1400).replace("\"index\"", "\ndata: \"index\"");
    let many_lines = format!("data: {}\n\n", vec!["0"; 600].join("\ndata: "));
    for (what, answer) in [
        ("in one chunk", MockResponse::sse(&[&large(1400)])),
        ("with what follows", hello.ended(MockResponse::sse(&[&large(1400)]))),
        ("in one write", MockResponse::sse_raw(format!("data: {}\n\n{}", large(1400), hello.text()))),
        ("in two lines", MockResponse::sse_raw(format!("data: {two_lines}\n\n{}", hello.text()))),
        ("in many lines", MockResponse::sse_raw(many_lines + &hello.text())),
        ("byte by byte", MockResponse::sse(&[&large(1400)]).split(1)),
        ("without end", MockResponse::sse_raw("data: ").endless("x".repeat(100))),
        ("a comment without end", MockResponse::sse_raw(": ").endless("x".repeat(100))),
        ("a JSON answer", MockResponse::json(200, &large(1400))),
        ("a bomb", MockResponse::json(200, &large(8 << 20)).gzip()),
        ("a bomb in a stream", MockResponse::sse(&[&large(8 << 20)]).zstd()),
    ] {
        assert_all_receive(&fixture, what, answer, &limit);
    }
    // Events before the large one are sent, whether they arrived with it or separately.
    for text in [format!("data: {}\n\n", large(1400)), "data: ".to_owned() + &"x".repeat(1400)] {
        let half =
            hello.events[..=hello.text_start()].iter().map(|data| format!("data: {data}\n\n")).collect::<String>();
        for answer in
            [MockResponse::sse_raw(half.clone() + &text), hello.half().bytes(&text), hello.half().bytes(&text).split(1)]
        {
            let received = fetch_received(fixture.set_response(answer), Dialect::Chat, Form::Stream);
            let message = "an event of the backend is larger than 1000 bytes".to_owned();
            assert_eq!(received, Received::Interrupted { text: "Hel".to_owned(), message, code: None });
        }
    }
    assert_all_receive(
        &fixture,
        "white space without end",
        MockResponse::sse_raw("").endless(" ".repeat(100)),
        &bad_gateway("the data before the backend's first event is larger than 1000 bytes"),
    );
}

#[test]
fn a_buffered_response_has_its_own_size_limit() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), with_limits("{ answer_bytes: 5000 }"));
    let delta = hello.events[hello.text_start()].clone();
    let endless = || MockResponse::sse(&[&delta]).endless(format!("data: {delta}\n\n"));
    for dialect in [Dialect::Chat, Dialect::Completions] {
        let received = dialect.read(Form::Json, &fixture.set_response(endless()).fetch(dialect.request(Form::Json)));
        assert_eq!(received, bad_gateway("the backend's response is larger than 5000 bytes"), "{dialect:?}");
    }
    // A stream is not buffered, so it may exceed the limit.
    let long = hello.ended(
        hello.events[hello.text_start() + 2..]
            .iter()
            .fold((0..60).fold(MockResponse::sse(&[]), |a, _| a.event(&delta)), |a, e| a.event(e)),
    );
    assert_eq!(
        fetch_received(fixture.set_response(long), Dialect::Chat, Form::Stream),
        Received::Complete("Hel".repeat(60))
    );
}

#[test]
fn an_endless_backend_is_disconnected_after_the_end_marker() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::of("openai-chat"));
    let before = fixture.backend.disconnects().len();
    for form in [Form::Stream, Form::Json] {
        // Without the end marker, this response would never end.
        fixture.set_response(MockResponse::sse_raw(hello.text()).endless("x".repeat(16 * 1024)));
        assert_eq!(fetch_received(&fixture, Dialect::Chat, form), complete_hello());
    }
    eventually("the backend request is cancelled", || {
        (fixture.backend.disconnects().len() == before + 2).then_some(())
    });
}

// ---- encodings

#[test]
fn gzip_brotli_and_zstd_are_decoded_whole_and_byte_by_byte() {
    for name in BACKENDS {
        let (hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
        for (what, encode) in ENCODINGS {
            for (form, answer) in [("SSE", hello.stream()), ("JSON", hello.json())] {
                assert_all_receive(
                    &fixture,
                    &format!("{name} {form} {what}"),
                    encode(answer.clone()),
                    &complete_hello(),
                );
                let split = encode(answer).chunked().split(1);
                assert_eq!(
                    fetch_received(fixture.set_response(split), Dialect::Chat, Form::Stream),
                    complete_hello(),
                    "{name} {form} {what}, byte by byte"
                );
            }
        }
    }
}

type Encoding = fn(MockResponse) -> MockResponse;
const ENCODINGS: [(&str, Encoding); 3] =
    [("gzip", MockResponse::gzip), ("br", MockResponse::brotli), ("zstd", MockResponse::zstd)];

#[test]
fn a_compressed_error_is_decoded() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::of("openai-chat"));
    for (what, encode) in ENCODINGS {
        let expected = Received::HttpError {
            status: 418,
            message: "no, because".to_owned(),
            code: Some("nope".to_owned()),
            retry_after: None,
        };
        assert_all_receive(&fixture, what, encode(MockResponse::json(418, &hello.error)), &expected);
    }
}

#[test]
fn an_invalid_gzip_body_is_an_error() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::of("openai-chat"));
    let lie = hello.stream().header("content-encoding", "gzip");
    assert_all_receive(
        &fixture,
        "a lie",
        lie,
        &bad_gateway("the connection to the backend was lost: Invalid gzip header"),
    );
    let split = hello.half().pause(Duration::from_millis(10)).disconnect().gzip();
    for dialect in [Dialect::Chat, Dialect::Completions] {
        let message = "the connection to the backend was lost: unexpected EOF during chunk size line".to_owned();
        let received = fetch_received(fixture.set_response(split.clone()), dialect, Form::Stream);
        assert_eq!(received, Received::Interrupted { text: "Hel".to_owned(), message, code: None });
    }
}

/// Nothing buffers a delta: the backend sends the next only when the client has the one before.
#[test]
fn events_are_not_delayed_by_compression() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::of("openai-chat"));
    let plain: (&str, Encoding) = ("plain", |answer| answer);
    for (what, encode) in [plain].into_iter().chain(ENCODINGS) {
        println!("{what}");
        let gate = Gate::default();
        let [hel, lo] = [0, 1].map(|n| hello.events[hello.text_start() + n].clone());
        let rest = hello.events[hello.text_start() + 2..].iter().map(String::as_str).chain(hello.end);
        let rest: String = rest.map(|data| format!("data: {data}\n\n")).collect();
        fixture.set_response(encode(MockResponse::sse(&[&hel]).wait(&gate).event(&lo).wait(&gate).bytes(rest)));
        let mut stream = fixture.server.client().stream(Dialect::Chat.request(Form::Stream));
        assert_eq!(stream.head.header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(stream.head.header("x-accel-buffering"), Some("no"));
        for part in ["\"Hel\"", "\"lo\""] {
            while !stream.next().unwrap().data.contains(part) {}
            gate.open();
        }
        assert_eq!(stream.rest().last().unwrap().data, "[DONE]");
    }
}

// ---- content types

#[test]
fn the_format_is_detected_by_the_first_byte_not_the_content_type() {
    for name in BACKENDS {
        let (hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
        let json_types = ["text/event-stream", "text/plain", "application/octet-stream", "text/html", ""];
        for content_type in json_types {
            assert_all_receive(
                &fixture,
                &format!("JSON called {content_type:?}"),
                with_content_type(hello.json(), content_type),
                &complete_hello(),
            );
            let padded = MockResponse::json(200, &format!("\r\n \t{}\n", hello.body));
            assert_all_receive(
                &fixture,
                &format!("padded JSON called {content_type:?}"),
                with_content_type(padded, content_type),
                &complete_hello(),
            );
            let marked = MockResponse::json(200, &format!("\u{feff}{}", hello.body));
            assert_all_receive(
                &fixture,
                &format!("JSON with a BOM, called {content_type:?}"),
                with_content_type(marked.clone(), content_type),
                &complete_hello(),
            );
            let split = with_content_type(marked.chunked().split(1), content_type);
            assert_eq!(
                fetch_received(fixture.set_response(split), Dialect::Chat, Form::Stream),
                complete_hello(),
                "JSON with a BOM, called {content_type:?}, byte by byte"
            );
        }
        for content_type in ["application/json", "text/plain", "application/x-ndjson", ""] {
            assert_all_receive(
                &fixture,
                &format!("SSE called {content_type:?}"),
                with_content_type(hello.stream(), content_type),
                &complete_hello(),
            );
            let marked = MockResponse::sse_raw(format!("\u{feff}: hi\n\n{}", hello.text()));
            assert_all_receive(
                &fixture,
                &format!("SSE with a BOM, called {content_type:?}"),
                with_content_type(marked.clone(), content_type),
                &complete_hello(),
            );
            let split = with_content_type(marked.split(1), content_type);
            assert_eq!(
                fetch_received(fixture.set_response(split), Dialect::Chat, Form::Stream),
                complete_hello(),
                "SSE with a BOM, called {content_type:?}, byte by byte"
            );
        }
    }
    let fixture = GatewayFixture::of("openai-chat");
    let none = MockResponse::new(200).bytes(HelloStream::of("openai-chat").text());
    assert_all_receive(&fixture, "SSE without a label", none, &complete_hello());
    let none = MockResponse::new(200).bytes(HelloStream::of("openai-chat").body);
    assert_all_receive(&fixture, "JSON without a label", none, &complete_hello());
}

fn with_content_type(answer: MockResponse, content_type: &str) -> MockResponse {
    answer.header("content-type", content_type)
}

// ---- backends defined only in YAML

const LINES: &str = r#"
backend: lines
transport: http
request:
  path: /generate
  stream: always
  headers: { x-user: "{{ request.user }}", x-key: "{{ secret.key }}" }
  body: { model: "{{ request.model }}" }
events:
  framing: ndjson
  event_name: $.kind
  rules:
    - { event: delta, emit: [ text: { delta: $.text } ] }
    - { event: over, emit: [ finish: { reason: stop } ] }
    - { event: trouble, emit: [ fault: { message: $.why, code: $.code } ] }
"#;

const NAMED: &str = r#"
backend: named
transport: http
request:
  path: "/models/{{ model }}/generate"
  stream: always
  body: { model: "{{ request.model }}" }
events:
  framing: { sse: { event: type } }
  event_name: $.type
  rules:
    - { event: delta, emit: [ text: { delta: $.text } ] }
    - { event: over, emit: [ finish: { reason: stop } ] }
"#;

pub fn yaml_backend(name: &str) -> MutexGuard<'static, GatewayFixture> {
    GatewayFixture::shared(name, || {
        let dir = TestDir::empty();
        dir.write("layer/backends/lines.yaml", LINES);
        dir.write("layer/backends/named.yaml", NAMED);
        GatewayFixture::launched(name, |launch| launch.add(dir))
    })
}

#[test]
fn an_ndjson_backend_needs_only_yaml() {
    let fixture = yaml_backend("lines");
    let lines = [r#"{"kind":"delta","text":"Hel"}"#, r#"{"kind":"delta","text":"lo"}"#, r#"{"kind":"over"}"#];
    let text = lines.join("\n");
    for (what, answer) in [
        ("as it should", MockResponse::ndjson(&lines)),
        ("byte by byte", MockResponse::ndjson(&lines).split(1)),
        ("CRLF", MockResponse::ndjson(&[]).bytes(text.replace('\n', "\r\n"))),
        ("no last line end", MockResponse::ndjson(&[]).bytes(&text)),
        ("empty lines", MockResponse::ndjson(&[]).bytes(format!("\n\n{}\n", text.replace('\n', "\n\n \n")))),
        ("no label", MockResponse::ndjson(&lines).header("content-type", "")),
        ("called JSON", MockResponse::ndjson(&lines).header("content-type", "application/json")),
        ("a line that cannot be read", MockResponse::ndjson(&[lines[0], "{oops", lines[1], lines[2]])),
        ("gzip", MockResponse::ndjson(&lines).gzip()),
        ("a BOM", MockResponse::ndjson(&[]).bytes(format!("\u{feff}{text}"))),
    ] {
        assert_all_receive(&fixture, what, answer, &complete_hello());
    }
    assert_eq!((fixture.last().path.as_str(), fixture.last().json()), ("/v1/generate", json!({ "model": "m" })));
    let broken = MockResponse::ndjson(&[lines[0], r#"{"kind":"trouble","why":"no, because","code":"nope"}"#]);
    let received = fetch_received(fixture.set_response(broken), Dialect::Chat, Form::Stream);
    let message = "no, because".to_owned();
    assert_eq!(received, Received::Interrupted { text: "Hel".to_owned(), message, code: Some("nope".to_owned()) });
    let received = fetch_received(fixture.set_response(MockResponse::ndjson(&lines[..1])), Dialect::Chat, Form::Json);
    assert_eq!(received, bad_gateway("the backend's response ended before it was complete"));
}

#[test]
fn a_backend_with_names_only_in_sse_frames_needs_only_yaml() {
    let fixture = yaml_backend("named");
    let text = "event: delta\ndata: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\nevent: delta\n\nevent: ping\n\nevent: over\ndata: {}\n\n";
    assert_all_receive(&fixture, "as it should", MockResponse::sse_raw(text), &complete_hello());
    assert_all_receive(
        &fixture,
        "byte by byte",
        MockResponse::sse_raw(text.replace('\n', "\r\n")).split(1),
        &complete_hello(),
    );
    // A name applies only to its own event.
    let nameless = text.replacen("data: {\"text\":\"lo\"}\nevent: delta", "data: {\"text\":\"lo\"}", 1);
    assert_all_receive(
        &fixture,
        "an event without a name",
        MockResponse::sse_raw(nameless),
        &Received::Complete("Hel".to_owned()),
    );
    assert_eq!(fixture.last().path, "/v1/models/m/generate");
}

// ---- connections

#[test]
fn turns_reuse_a_connection_after_the_end_marker() {
    for name in BACKENDS {
        let (hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
        let stream = hello.stream();
        let late_end = hello.stream().pause(Duration::from_millis(20));
        for (what, answer) in [("SSE", stream), ("SSE with a late last chunk", late_end), ("JSON", hello.json())] {
            let before = fixture.backend.connections();
            for dialect in Dialect::ALL {
                for form in [Form::Stream, Form::Json] {
                    assert_eq!(fetch_received(fixture.set_response(answer.clone()), dialect, form), complete_hello());
                    // As with real clients, some time passes before the next turn.
                    std::thread::sleep(ms(30));
                }
            }
            let more = fixture.backend.connections() - before;
            // On a busy machine a connection may not be back in the pool when the next turn starts.
            assert!(more <= 2, "{name}, {what}: {more} connections for six turns");
        }
    }
}

#[test]
fn a_backend_without_keep_alive_gets_a_new_connection_each_time() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::own("openai-chat"));
    for answer in [
        hello.stream().header("connection", "close"),
        hello.json().header("connection", "close"),
        hello.stream().until_close(),
    ] {
        assert_all_receive(&fixture, "a connection for one turn", answer, &complete_hello());
    }
    assert_eq!(fixture.backend.connections(), 18);
}

#[test]
fn a_backend_url_may_have_a_hostname_and_a_path() {
    let backend = MockBackend::start(|_| HelloStream::of("openai-chat").json());
    let place = format!("openai-chat=http://localhost:{}/a/b/", backend.addr().port());
    let server = serve().arg("--backend").arg(place).start();
    assert_eq!(Dialect::Chat.read(Form::Json, &server.fetch(Dialect::Chat.request(Form::Json))), complete_hello());
    assert_eq!(backend.requests()[0].path, "/a/b/chat/completions");
    assert_eq!(backend.requests()[0].header("host"), Some(&*format!("localhost:{}", backend.addr().port())));
}

#[test]
fn backend_requests_have_the_expected_headers() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), GatewayFixture::of("openai-chat"));
    for (form, accept) in [(Form::Stream, "text/event-stream, application/json"), (Form::Json, "application/json")] {
        assert_eq!(fetch_received(fixture.set_response(hello.json()), Dialect::Chat, form), complete_hello());
        let seen = fixture.last();
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
        let names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "accept", "accept-encoding", "user-agent", "host", "content-length"]);
        assert_eq!((seen.header("accept"), seen.header("content-type")), (Some(accept), Some("application/json")));
        assert_eq!(seen.header("host"), Some(fixture.backend.addr().to_string().as_str()));
    }
    assert_eq!(fixture.last().header("user-agent"), Some(concat!("reframe/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(fixture.last().header("accept-encoding"), Some("identity"));
}

trait AssertOk {
    fn ok(&self) -> &Reply;
}

impl AssertOk for Reply {
    fn ok(&self) -> &Reply {
        assert_eq!(self.status(), 200, "{}", self.text());
        self
    }
}
