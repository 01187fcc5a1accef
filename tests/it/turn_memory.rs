//! The memory of a turn is bounded: everything that a turn keeps counts against `limits.turn_bytes`, and
//! log-probabilities are kept only where the dialect reads them later.

use crate::support::replay::LoadedSet;
use crate::support::sse::SseContent;
use crate::support::{MockBackend, MockResponse, Reply, Server, TestDir, dialect_request, serve};
use serde_json::{Value, json};
use std::fs;

const MIB: u64 = 1 << 20;

/// A gateway with one response of its backend, and this limit on the memory of a turn.
fn gateway(answer: MockResponse, limit: &str) -> (MockBackend, Server) {
    let backend = MockBackend::start(move |_| answer.clone());
    let dir = TestDir::empty().with_edit("gateway.yaml", "turn_bytes: 64MiB", &format!("turn_bytes: {limit}"));
    let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
    (backend, server)
}

fn delta(text: &str, logprobs: &Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": { "content": text }, "logprobs": { "content": logprobs } }] })
        .to_string()
}

/// A token with `top` alternatives.
fn token(text: &str, top: usize) -> Value {
    let alternative = |n: usize| {
        let text = format!("{text}{n}");
        json!({ "token": text, "logprob": -0.123_456 * (n + 1) as f64, "bytes": text.as_bytes() })
    };
    let mut token = alternative(0);
    token["top_logprobs"] = (0..top).map(alternative).collect();
    token
}

fn finish() -> String {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string()
}

fn sse(events: impl IntoIterator<Item = String>) -> MockResponse {
    let events = events.into_iter().map(|event| format!("data: {event}\n\n"));
    MockResponse::sse_raw(events.chain(["data: [DONE]\n\n".to_owned()]).collect::<String>())
}

/// The largest resident memory so far, in bytes.
fn peak(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// The error of a response, in a stream or as a body.
fn error_message(dialect: &str, reply: &Reply, stream: bool) -> String {
    let error = match (dialect, stream) {
        (_, false) => reply.json()["error"].clone(),
        ("responses", true) => {
            let mut events = reply.sse_messages().into_iter().filter_map(|message| match message.content {
                SseContent::Event { data, .. } => serde_json::from_str::<Value>(&data).ok(),
                SseContent::Comment(_) => None,
            });
            let last = events.next_back().expect("a frame");
            assert_eq!(last["type"], "response.failed", "{last}");
            last["response"]["error"].clone()
        }
        (_, true) => serde_json::from_str::<Value>(&reply.frames().last().unwrap().data).unwrap()["error"].clone(),
    };
    error["message"].as_str().unwrap_or_else(|| panic!("no error in {}", reply.text())).to_owned()
}

#[test]
fn a_backend_that_sends_log_probabilities_without_end_is_cut_at_the_limit() {
    let big = json!({ "token": "x".repeat(1 << 20), "logprob": -1 });
    let event = format!("data: {}\n\n", delta("a", &json!([big])));
    let (_backend, server) = gateway(MockResponse::sse_raw(&event).endless(&event), "8MiB");
    let reply = server.fetch(dialect_request("responses", "m", true));
    let message = error_message("responses", &reply, true);
    assert_eq!(message, "the backend's response needs more than 8388608 bytes of memory, the limit of this gateway");
}

/// A tree of small values costs many times its JSON, and so do small items and parts.
#[test]
fn small_values_are_counted_with_what_they_cost() {
    let event = |part: Value| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": part }] }));
    let cited = json!({ "type": "url_citation", "url_citation": {
        "url": "u", "title": "", "start_index": 0, "end_index": 1,
    } });
    let call = |n: usize| json!({ "index": n, "function": { "arguments": "1" } });
    let tokens: Vec<Value> = (0..1000).map(|_| token("a", 1)).collect();
    let many_tokens = format!("data: {}\n\n", delta("a", &json!(tokens)));
    for (what, kib, chunk) in [
        ("log-probabilities", 1024, many_tokens),
        ("annotations", 1024, event(json!({ "annotations": vec![cited; 1000] }))),
        // Less than the limit of calls.
        ("calls", 128, event(json!({ "tool_calls": (0..900).map(call).collect::<Vec<_>>() }))),
        (
            "text and refusals in turn",
            1024,
            (event(json!({ "content": "a" })) + &event(json!({ "refusal": "b" }))).repeat(100),
        ),
    ] {
        let (_backend, server) = gateway(MockResponse::sse_raw(&chunk).endless(&chunk), &format!("{kib}KiB"));
        let before = peak(&server);
        let reply = server.fetch(dialect_request("responses", "m", true));
        let grown = peak(&server) - before;
        println!("{what}: {} KiB", grown >> 10);
        let message = error_message("responses", &reply, true);
        let limit = format!("needs more than {} bytes of memory", kib << 10);
        assert!(message.contains(&limit), "{what}: {message}");
        // The events that are parsed and the frames that are sent need memory too.
        assert!(grown < 48 * MIB, "{what}: {grown} bytes for a limit of {kib} KiB");
    }
}

/// A delta is compared with every call before it.
#[test]
fn the_number_of_calls_is_limited() {
    let call =
        |n: usize| json!({ "index": n, "id": format!("call_{n}"), "function": { "name": "f", "arguments": "{}" } });
    let answer = |calls: usize| {
        let calls: Vec<Value> = (0..calls).map(call).collect();
        let delta = json!({ "tool_calls": calls });
        sse([json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": "tool_calls" }] }).to_string()])
    };
    for (dialect, stream) in [("chat", true), ("chat", false), ("responses", true), ("responses", false)] {
        let (_backend, server) = gateway(answer(1000), "64MiB");
        let reply = server.fetch(dialect_request(dialect, "m", stream));
        assert!(reply.status() == 200 && reply.text().contains("call_999"), "{dialect} {stream}");
        let (_backend, server) = gateway(answer(1001), "64MiB");
        let message = error_message(dialect, &server.fetch(dialect_request(dialect, "m", stream)), stream);
        assert_eq!(message, "the backend's response has more than 1000 tool calls, the limit of this gateway");
    }
}

#[test]
fn a_normal_answer_with_log_probabilities_needs_little_memory() {
    const TOKENS: usize = 5000;
    let events = (0..TOKENS).map(|n| delta(&format!("w{n} "), &json!([token(&format!("w{n} "), 20)])));
    let answer = sse(events.chain([finish()]));
    // The frames of a Responses stream and the bodies contain all tokens once more.
    for (dialect, stream, limit) in
        [("chat", true, 16), ("completions", false, 24), ("chat", false, 96), ("responses", true, 192)]
    {
        let (_backend, server) = gateway(answer.clone(), "64MiB");
        let before = peak(&server);
        let reply = server.fetch(dialect_request(dialect, "m", stream));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        assert!(reply.text().contains("w4999"), "{dialect} {stream}");
        let grown = peak(&server) - before;
        println!("{dialect} stream={stream}: {:.1} MiB", grown as f64 / MIB as f64);
        assert!(grown < limit * MIB, "{dialect} stream={stream}: {grown} bytes, more than {limit} MiB");
    }
}

#[test]
fn log_probabilities_are_kept_only_where_they_are_read_later() {
    let plan = &LoadedSet::embedded().plan;
    let reads = |dialect: &str| {
        let dialect = plan.dialect(dialect, Some("openai")).unwrap();
        (dialect.stream_reads.logprobs, dialect.body_reads.logprobs)
    };
    assert_eq!(reads("chat"), (false, true), "the frame of a delta has its own");
    assert_eq!(reads("responses"), (true, true));
    assert_eq!(reads("completions"), (false, false));
}
