//! Keepalive comments.

use super::{empty_stream, finished, gateway_config, ms, run_concurrently, word};
use crate::support::backend_events::{created, event, text_delta};
use crate::support::sse::names;
use crate::support::{MockResponse, SseMessage, TestGateway, assert_contains, dialect_request};
use serde_json::json;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn chat() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> = LazyLock::new(|| {
        gateway_config()
            .keepalive("200ms")
            .first_event("1200ms")
            .edit("query: no_keepalive", "query: no_keepalive, user_agents: [ Obsidian, electron ]")
            .shared("openai-chat", "openai")
    });
    &SHARED
}

/// Run-length encoding of the names: three comments and a chunk give `[(comment, 3), (chunk, 1)]`.
fn runs(messages: &[SseMessage]) -> Vec<(String, usize)> {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for name in names(messages) {
        match runs.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => runs.push((name, 1)),
        }
    }
    runs
}

fn comments(messages: &[SseMessage]) -> usize {
    messages.iter().filter(|t| t.is_comment()).count()
}

#[test]
fn comments_are_sent_before_the_first_event_and_between_events() {
    let answer = finished(empty_stream().pause(ms(700)).event(&word("One")).pause(ms(500)).event(&word("Two")));
    chat().set_response("k-both", answer);
    let started = Instant::now();
    let stream = chat().server.client().stream(dialect_request("chat", "k-both", true)).sse();
    let head = started.elapsed();
    assert!(head >= ms(195) && head < ms(600), "the headers arrived after {head:?}");
    let messages = stream.rest();
    let runs = runs(&messages);
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["comment", "chunk", "comment", "chunk", "[DONE]"], "{runs:?}");
    assert_eq!((runs[1].1, runs[3].1), (2, 2), "{runs:?}");
    // Three and two, plus or minus one on a slow machine.
    assert!((2..=4).contains(&runs[0].1) && (1..=3).contains(&runs[2].1), "{runs:?}");
    // `keepalive {now_ms}`
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let at: u128 = messages[0].text().strip_prefix("keepalive ").unwrap().parse().unwrap();
    assert!(now - at < 10_000, "{at} is not now");
    let apart = messages[1].at - messages[0].at;
    assert!(apart >= ms(190), "two comments after {apart:?}");
}

#[test]
fn frames_postpone_the_next_comment() {
    let answer = (0..20).fold(empty_stream(), |answer, _| answer.event(&word("x")).pause(ms(60)));
    chat().set_response("k-traffic", finished(answer));
    let messages = chat().server.fetch(dialect_request("chat", "k-traffic", true)).sse_messages();
    assert_eq!(comments(&messages), 0, "{:?}", names(&messages));
    assert_eq!(messages.len(), 23);
}

#[test]
fn events_without_frames_do_not_postpone_comments() {
    // Comments and malformed events of the backend are not sent to the client.
    let answer = (0..6).fold(empty_stream().event(&word("x")), |answer, _| answer.pause(ms(100)).bytes(": hm\n\n"));
    chat().set_response("k-hidden", finished(answer));
    let messages = chat().server.fetch(dialect_request("chat", "k-hidden", true)).sse_messages();
    assert!((2..=3).contains(&comments(&messages)), "{:?}", names(&messages));
}

#[test]
fn comments_can_be_disabled_per_client() {
    let answer = finished(empty_stream().pause(ms(500)).event(&word("One")).pause(ms(500)));
    chat().set_response("k-off", answer);
    let request = || dialect_request("chat", "k-off", true);
    let path = "/v1/chat/completions";
    let without = [
        request().header("x-no-keepalive", "1"),
        request().at(&format!("{path}?no_keepalive=1")),
        request().at(&format!("{path}?a=b&no_keepalive=1")),
        request().header("user-agent", "Mozilla/5.0 obsidian/1.5"),
        request().header("user-agent", "An ELECTRON app"),
    ];
    run_concurrently(without, |request| {
        let started = Instant::now();
        let stream = chat().server.client().stream(request).sse();
        assert!(started.elapsed() >= ms(490), "the headers were sent early: {:?}", started.elapsed());
        assert_eq!(names(&stream.rest()), ["chunk", "chunk", "chunk", "[DONE]"]);
    });
    let with = [
        request().header("x-no-keepalive", "0"),
        request().at(&format!("{path}?no_keepalive=0")),
        request().header("user-agent", "curl/8"),
    ];
    run_concurrently(with, |request| assert!(comments(&chat().server.fetch(request).sse_messages()) >= 2));
}

#[test]
fn a_json_body_has_no_comments() {
    let answer = finished(empty_stream().pause(ms(500)).event(&word("One")).pause(ms(300)));
    chat().set_response("k-json", answer);
    let reply = chat().server.fetch(dialect_request("chat", "k-json", false));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "One");
}

#[test]
fn a_fault_after_a_comment_follows_a_valid_stream_start() {
    let error_body = json!({ "error": { "message": "too many", "code": "slow_down" } }).to_string();
    let faults = [
        (
            "k-429",
            MockResponse::raw().pause(ms(300)).bytes(format!(
                "HTTP/1.1 429 no\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{error_body}",
                error_body.len()
            )),
            "too many",
        ),
        ("k-inside", empty_stream().pause(ms(300)).event(&error_body), "too many"),
        ("k-end", empty_stream().pause(ms(300)), "the backend ended without an answer"),
        ("k-done", empty_stream().pause(ms(300)).event("[DONE]"), "the backend ended without an answer"),
        ("k-stall", empty_stream().stall(), "the backend did not start its response within 1.2s"),
        ("k-cut", empty_stream().pause(ms(300)).disconnect(), "the connection to the backend was lost: "),
        ("k-reset", MockResponse::raw().pause(ms(300)).reset(), "the backend did not respond: "),
    ];
    run_concurrently(faults, |(model, answer, message)| {
        chat().set_response(model, answer);
        let fetch = |dialect: &str| {
            let reply = chat().server.fetch(dialect_request(dialect, model, true));
            assert_eq!(reply.status(), 200, "{model}");
            let mut messages = reply.sse_messages();
            assert!(messages[0].is_comment(), "{model}: {:?}", names(&messages));
            messages.retain(|t| !t.is_comment());
            messages
        };
        let messages = fetch("chat");
        assert_eq!(names(&messages), ["chunk", "error"], "{model}");
        assert_eq!(messages[0].json()["choices"][0]["delta"]["role"], "assistant");
        let error = messages[1].json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(error.starts_with(message), "{model}: {error}");
        let messages = fetch("responses");
        assert_eq!(
            names(&messages),
            ["response.created", "response.in_progress", "response.failed", "[DONE]"],
            "{model}"
        );
        assert_contains(
            &json!({ "response": { "status": "failed", "output": [], "error": { "message": error } } }),
            &messages[2].json(),
        );
        let numbers: Vec<u64> = messages[..3].iter().map(|t| t.json()["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(names(&fetch("completions")), ["error"], "{model}");
    });
}

#[test]
fn comments_do_not_change_the_frames() {
    let gateway = gateway_config().keepalive("100ms").start("openai-responses", "codex-proxy");
    let first = MockResponse::sse_raw(event(&created())).pause(ms(250)).bytes(event(&text_delta("Good ")));
    let answer =
        first.pause(ms(250)).bytes(event(&text_delta("day.")) + &event(&crate::support::backend_events::completed()));
    gateway.set_response("k-same", answer);
    let mut messages = gateway.server.fetch(dialect_request("responses", "k-same", true)).sse_messages();
    assert!(comments(&messages) >= 3, "{:?}", names(&messages));
    messages.retain(|t| !t.is_comment());
    let quiet =
        gateway.server.fetch(dialect_request("responses", "k-same", true).header("x-no-keepalive", "1")).sse_messages();
    assert_eq!(names(&messages), names(&quiet));
    assert_eq!(messages[1].text(), quiet[1].text());
}
