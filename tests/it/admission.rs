//! Limits of requests: rates with their headers, sizes of prompts and bodies, memory, times, and open files.

use crate::support::{
    Client, MockBackend, MockResponse, Reply, Request, Server, TestDir, backend_events, chat, dialect_request,
    eventually, ms, serve,
};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;

/// The demo without pauses, with these keys in gateway.yaml.
fn server(gateway: &str) -> Server {
    let dir = TestDir::empty().with_pace("none");
    dir.write("layer/gateway.yaml", gateway);
    serve().env("REFRAME_API_KEY", "key-of-the-first").env("SECOND_KEY", "key-of-the-second").add(dir).start()
}

fn hello(server: &Server, key: &str) -> Reply {
    server.fetch(chat("Hello!").header("authorization", &format!("Bearer {key}")))
}

fn error(reply: &Reply) -> (u16, Value, Value) {
    let error = reply.json()["error"].clone();
    (reply.status(), error["type"].clone(), error["code"].clone())
}

#[test]
fn requests_per_minute_are_limited_by_key_and_reported_in_headers() {
    let server = server(
        "limits: { requests_per_minute: 2 }
headers: { rate_limit: x-ratelimit }
api_keys:
  - { name: second, secret: { env: SECOND_KEY }, limits: { requests_per_minute: 5 } }
",
    );
    let first = hello(&server, "key-of-the-first");
    assert_eq!(first.status(), 200);
    assert_eq!(first.header("x-ratelimit-limit-requests"), Some("2"));
    assert_eq!(first.header("x-ratelimit-remaining-requests"), Some("1"));
    let reset = first.header("x-ratelimit-reset-requests").unwrap();
    assert!(reset == "30s" || reset == "29s", "half of a minute: {reset}");
    // A stream has the headers too.
    let stream = chat("Hello!").streamed().header("authorization", "Bearer key-of-the-first");
    assert_eq!(server.fetch(stream).header("x-ratelimit-remaining-requests"), Some("0"));

    let rejected = hello(&server, "key-of-the-first");
    assert_eq!(error(&rejected), (429, json!("rate_limit_error"), json!("rate_limit_exceeded")));
    let seconds: u64 = rejected.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=31).contains(&seconds), "{seconds}");
    assert_eq!(rejected.header("x-ratelimit-limit-requests"), Some("2"));
    assert_eq!(rejected.header("x-ratelimit-remaining-requests"), Some("0"));
    let reset = rejected.header("x-ratelimit-reset-requests").unwrap();
    let seconds: u64 = reset.trim_start_matches("1m0s").trim_end_matches('s').parse().unwrap_or(60);
    assert!((31..=60).contains(&seconds), "until all is free again, as in other responses: {reset}");
    let other = hello(&server, "key-of-the-second");
    assert_eq!((other.status(), other.header("x-ratelimit-limit-requests")), (200, Some("5")), "a key has its own");
    let metrics = server.fetch(Request::get("/metrics").header("authorization", "Bearer key-of-the-second")).text();
    assert!(metrics.contains("reframe_limits_reached_total{limit=\"requests_per_minute\"} 1"), "{metrics}");
}

#[test]
fn tokens_of_requests_and_responses_are_limited_per_minute() {
    let server = server("limits: { tokens_per_minute: 12 }\nheaders: { rate_limit: x-ratelimit }\n");
    let first = hello(&server, "key-of-the-first");
    assert_eq!(first.header("x-ratelimit-limit-tokens"), Some("12"));
    assert_eq!(first.header("x-ratelimit-remaining-tokens"), Some("10"), "two tokens of the request");
    // The tokens of the response are charged when it has ended.
    let rejected = eventually("the response is charged", || {
        let reply = hello(&server, "key-of-the-first");
        (reply.status() == 429).then_some(reply)
    });
    assert_eq!(error(&rejected), (429, json!("rate_limit_error"), json!("rate_limit_exceeded")));
    assert!(rejected.header("retry-after").is_some());
}

#[test]
fn without_limits_there_are_no_rate_headers() {
    let reply = hello(&server("headers: { rate_limit: x-ratelimit }\n"), "key-of-the-first");
    assert!(!reply.head.headers.iter().any(|(name, _)| name.starts_with("x-ratelimit")), "{:?}", reply.head);
}

#[test]
fn a_prompt_with_too_many_tokens_is_rejected_with_its_field() {
    let server = server("limits: { request_tokens: 10 }\n");
    let long = |request: Request| server.fetch(request.header("authorization", "Bearer key-of-the-first"));
    let text = "x".repeat(41);
    let rejected = long(chat(&text).into());
    assert_eq!(error(&rejected), (400, json!("invalid_request_error"), json!("context_length_exceeded")));
    assert_eq!(rejected.json()["error"]["param"], "messages");
    assert_eq!(long(chat(&text[1..]).into()).status(), 200);
    let responses = json!({ "model": "demo", "input": text }).to_string();
    assert_eq!(long(Request::post(responses).at("/v1/responses")).status(), 400);
}

#[test]
fn choices_and_nesting_are_limited() {
    let server = server("limits: { choices: 1, json_depth: 8 }\n");
    let fetch = |request: Request| server.fetch(request.header("authorization", "Bearer key-of-the-first"));
    let two = fetch(chat("Which?").with("n", 2).into());
    assert_eq!((two.status(), &two.json()["error"]["param"]), (400, &json!("n")));
    let deep = format!("{}{}", "[".repeat(8), "]".repeat(8));
    let deep = fetch(chat("Hello!").with("metadata", serde_json::from_str::<Value>(&deep).unwrap()).into());
    assert_eq!(deep.status(), 400);
    assert!(deep.text().contains("nested too deeply"), "{}", deep.text());
}

#[test]
fn no_more_turns_start_while_the_memory_of_all_is_used() {
    let large = backend_events::word(&"x".repeat(64 * 1024)).to_string();
    let backend = MockBackend::start(move |_| MockResponse::sse(&[&large]).stall());
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "limits: { buffered_bytes: 32KiB }\n");
    let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
    let mut stream = server.client().stream(dialect_request("chat", "m", true));
    while !stream.next_message().unwrap().into_frame().data.contains("xxx") {}
    let rejected = server.fetch(dialect_request("chat", "m", true));
    assert_eq!((rejected.status(), rejected.header("retry-after")), (503, Some("1")), "{}", rejected.text());
    drop(stream);
    eventually("the memory of a turn that ended is free", || {
        let metrics = server.fetch(Request::get("/metrics")).text();
        metrics.contains("reframe_buffered_bytes 0").then_some(())
    });
}

#[test]
fn headers_of_a_request_have_a_time_limit() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &format!("timeouts: {{ headers: {}ms }}\n", ms(100).as_millis()));
    let server = serve().add(dir).start();
    let mut client = Client::connect(server.addr());
    client.send_bytes(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n");
    // The server answers 408 or nothing, and closes the connection.
    let mut rest = Vec::new();
    let _ = client.into_inner().read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn json_responses_have_an_idle_limit_of_their_own() {
    let word = backend_events::word("One").to_string();
    let backend = MockBackend::start(move |_| MockResponse::sse(&[&word]).stall());
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &format!("timeouts: {{ idle_json: {}ms }}\n", ms(100).as_millis()));
    let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
    let mut stream = server.client().stream(dialect_request("chat", "m", true));
    assert!(stream.next().is_some());
    let json = server.fetch(dialect_request("chat", "m", false));
    assert_eq!(json.status(), 504, "{}", json.text());
    // The limit of streams is 300 s.
    assert!(!server.log().contains("stream=true status=504"));
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_on_open_files_is_raised() {
    let server = server("{}\n");
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
}
