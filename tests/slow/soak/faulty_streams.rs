//! Answers of faulty backends, in every dialect, as streams and as JSON: each ends in exactly one terminal.

use super::{ProcessStats, SoakLoad};
use crate::disconnects::gateway_config;
use crate::support::backend_events::{chat_stream, chunk, data, word};
use crate::support::{MockResponse, Reply, SseMessage, TestGateway, dialect_request, eventually, ms};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What a faulty Chat backend sends, by name.
fn faults() -> Vec<(&'static str, MockResponse)> {
    let good = chat_stream(&["One ", "two ", "three."]);
    let start = data(&chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null)) + &data(&word("One"));
    let sse = |text: &str| MockResponse::sse_raw(start.clone() + text);
    let delta = |delta: Value| data(&chunk(&delta, &Value::Null));
    let long = |length: usize| data(&word(&"x".repeat(length)));
    let end = data(&chunk(&json!({}), &json!("stop"))) + "data: [DONE]\n\n";
    vec![
        ("nothing is wrong", MockResponse::sse_raw(&good)),
        ("torn into bytes", MockResponse::sse_raw(&good).split(1)),
        ("torn into threes", MockResponse::sse_raw(&good).split(3)),
        ("torn inside a character", sse(&delta(json!({ "content": "über 🦀" }))).bytes(&end).split(2)),
        ("CR line ends", MockResponse::sse_raw(good.replace('\n', "\r"))),
        ("CRLF line ends", MockResponse::sse_raw(good.replace('\n', "\r\n"))),
        ("a byte order mark", MockResponse::sse_raw(format!("\u{feff}{good}"))),
        ("compressed", MockResponse::sse_raw(&good).gzip()),
        ("compressed and cut", sse("").disconnect().gzip()),
        ("no events", MockResponse::sse(&[])),
        ("only comments", MockResponse::sse_raw(": one\n\n: two\n\n")),
        ("only the end", MockResponse::sse_raw("data: [DONE]\n\n")),
        ("an early end", sse("")),
        ("an early close", sse("").disconnect()),
        ("a reset", sse("").reset()),
        ("a reset before the headers", MockResponse::raw().reset()),
        ("a close before the headers", MockResponse::raw().disconnect()),
        ("not HTTP", MockResponse::garbage("SSH-2.0-OpenSSH_9.6\r\n")),
        ("a cut event", sse("data: {\"id\":\"chatcmpl-up1\",\"obj").disconnect()),
        ("a wrong length", sse("").wrong_length(50)),
        ("bad JSON", sse("data: {\"choices\":[{]}\n\n").bytes(&end)),
        ("text that is no JSON", sse("data: oops\n\n").bytes(&end)),
        ("a number for an event", sse("data: 7\n\n").bytes(&end)),
        ("null for an event", sse("data: null\n\n").bytes(&end)),
        ("a list for an event", sse("data: [1]\n\n").bytes(&end)),
        (
            "no UTF-8",
            MockResponse::sse_raw(&start)
                .bytes(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}\n\n")
                .bytes(&end),
        ),
        ("choices of another type", sse("data: {\"choices\":{\"delta\":7}}\n\n").bytes(&end)),
        ("a delta of another type", sse(&delta(json!([1, 2]))).bytes(&end)),
        ("a content of another type", sse(&delta(json!({ "content": { "a": 1 } }))).bytes(&end)),
        (
            "an index of another type",
            sse("data: {\"choices\":[{\"index\":\"x\",\"delta\":{\"content\":\"a\"}}]}\n\n").bytes(&end),
        ),
        ("calls of another type", sse(&delta(json!({ "tool_calls": "none" }))).bytes(&end)),
        ("a call without a name", sse(&delta(json!({ "tool_calls": [{ "index": 0, "id": "c" }] }))).bytes(&end)),
        ("a foreign finish", sse(&data(&chunk(&json!({}), &json!("bored")))).bytes("data: [DONE]\n\n")),
        ("two finishes", sse(&end).bytes(&end)),
        (
            "text after the finish",
            sse(&data(&chunk(&json!({}), &json!("stop")))).bytes(data(&word("late"))).bytes("data: [DONE]\n\n"),
        ),
        ("an error in the stream", sse("data: {\"error\":{\"message\":\"broken\"}}\n\n")),
        ("an error of another type", sse("data: {\"error\":[7]}\n\n")),
        ("an error first", MockResponse::sse(&["{\"error\":{\"message\":\"broken\",\"code\":429}}"])),
        ("an oversized event", MockResponse::sse_raw(&start).bytes(long(300_000)).bytes(&end)),
        ("an endless line", MockResponse::sse_raw(&start).bytes("data: ").bytes("x".repeat(400_000)).disconnect()),
        ("a stall", sse("").stall()),
        ("a stall before the first event", MockResponse::sse(&[]).stall()),
        ("a stall before the headers", MockResponse::hang()),
        ("a pause", sse("").pause(Duration::from_millis(20)).bytes(&end)),
        ("a 400", MockResponse::json(400, "{\"error\":{\"message\":\"no\"}}")),
        ("a 404 in HTML", MockResponse::new(404).header("content-type", "text/html").bytes("<h1>gone</h1>")),
        ("a 429", MockResponse::json(429, "{\"error\":{\"message\":\"slow down\"}}").header("retry-after", "7")),
        ("a 500 without a body", MockResponse::new(500)),
        ("a 502 that is cut", MockResponse::json(502, "{\"error\":").wrong_length(20)),
        ("a redirect", MockResponse::new(307).header("location", "http://127.0.0.1:1/")),
        ("a 204", MockResponse::new(204)),
        (
            "JSON for a stream",
            MockResponse::json(
                200,
                "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"One\"},\"finish_reason\":\"stop\"}]}",
            ),
        ),
        ("an empty object", MockResponse::json(200, "{}")),
        ("HTML", MockResponse::new(200).header("content-type", "text/html").bytes("<h1>hello</h1>")),
    ]
}

#[test]
fn every_faulty_answer_ends_in_exactly_one_terminal() {
    let faults = faults();
    let load = SoakLoad::new(faults.len() * 6, 5000, 20);
    let gateway = gateway_config()
        .idle(ms(400))
        .first_event(ms(400))
        .edit("event_bytes: 16MiB", "event_bytes: 256KiB")
        .start("openai-chat", "openai");
    for (n, (_, response)) in faults.iter().enumerate() {
        gateway.set_response(&format!("f-{n}"), response.clone());
    }
    let before = ProcessStats::of(&gateway.server);
    let began = Instant::now();
    let (next, endings) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<&str, usize>::new()));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= load.count || load.is_over() {
                        return;
                    }
                    let ending = fetch(&gateway, &faults, n);
                    *endings.lock().unwrap().entry(ending).or_default() += 1;
                }
            });
        }
    });
    let during = ProcessStats::of(&gateway.server);
    eventually("no slot is taken", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
    let after = before.assert_returned(&gateway.server, 16);
    let endings = endings.into_inner().unwrap();
    let total: usize = endings.values().sum();
    println!("faulty streams: {total} answers, {} kinds of fault, {:.0?}: {endings:?}", faults.len(), began.elapsed());
    println!("  before {before}\n  during {during}\n  after  {after}");
    assert!(load.is_long || total == load.count);
    assert!(endings.len() >= 3, "{endings:?}");
    assert!(!gateway.server.log().contains("panicked"), "{}", gateway.server.log());
}

const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

/// Sends the `n`th request and returns how it ended.
fn fetch(gateway: &TestGateway, faults: &[(&'static str, MockResponse)], n: usize) -> &'static str {
    let (fault, form) = (n % faults.len(), n / faults.len());
    let (dialect, stream) = (DIALECTS[form % 3], form / 3 % 2 == 0);
    let what = format!("{}, {dialect}, stream {stream}", faults[fault].0);
    let reply = gateway.server.fetch(dialect_request(dialect, &format!("f-{fault}"), stream));
    if reply.status() != 200 || !stream {
        return json_ending(&reply, &what);
    }
    let messages = reply.sse_messages();
    let terminals: Vec<&str> = messages.iter().filter_map(|message| terminal(dialect, message)).collect();
    match terminals[..] {
        [one] => one,
        _ => panic!("{what}: {terminals:?} in {:?}", crate::support::sse::names(&messages)),
    }
}

fn json_ending(reply: &Reply, what: &str) -> &'static str {
    let body = reply.json();
    match reply.status() {
        200 if body["error"].is_null() => "a complete body",
        // A response object of the Responses API has its error inside.
        200 => {
            assert_eq!(body["status"], "failed", "{what}: {body}");
            "a failed body"
        }
        400.. => {
            assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {body}");
            "an HTTP error"
        }
        status => panic!("{what}: {status}"),
    }
}

fn terminal(dialect: &str, message: &SseMessage) -> Option<&'static str> {
    match (dialect, message.name().as_str()) {
        (_, "error") => Some("an error in the stream"),
        ("responses", "response.completed") => Some("a complete stream"),
        ("responses", "response.incomplete") => Some("an incomplete stream"),
        ("responses", "response.failed") => Some("an error in the stream"),
        ("chat" | "completions", "[DONE]") => Some("a complete stream"),
        _ => None,
    }
}
