//! Keepalive comments.

use super::{empty_stream, finished, gateway_config, is_comment, rest, run_concurrently, stream, word};
use crate::support::backend_events::{created, event, text_delta};
use crate::support::sse::names;
use crate::support::{
    Gate, MockResponse, ResponseStream, SseMessage, TestGateway, assert_contains, dialect_request, ms,
};
use serde_json::json;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn chat() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> = LazyLock::new(|| {
        gateway_config()
            .keepalive(ms(200))
            .first_event(ms(1000))
            .edit("query: no_keepalive", "query: no_keepalive, user_agents: [ Obsidian, electron ]")
            .shared("openai-chat", "openai")
    });
    &SHARED
}

/// The next event; comments before it are skipped.
fn next_event(stream: &mut ResponseStream) -> SseMessage {
    std::iter::from_fn(|| stream.next_message()).find(|message| !is_comment(message)).unwrap()
}

fn comments(messages: &[SseMessage]) -> usize {
    messages.iter().filter(|t| is_comment(t)).count()
}

#[test]
fn comments_are_sent_before_the_first_event_and_between_events() {
    let gate = Gate::default();
    let held = empty_stream().wait(&gate).event(&word("One")).wait(&gate).event(&word("Two"));
    chat().set_response("k-both", finished(held));
    let started = Instant::now();
    let mut stream = stream(chat(), "chat", "k-both");
    let head = started.elapsed();
    assert!(head >= ms(195), "the headers arrived after {head:?}");
    let before = [0, 1].map(|_| stream.next_message().unwrap());
    assert!(before.iter().all(is_comment), "{:?}", names(&before));
    // `keepalive {now_ms}`
    let sent = before.map(|comment| comment.text().strip_prefix("keepalive ").unwrap().parse::<u64>().unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!(now - sent[1] < 60_000, "{} is not now", sent[1]);
    let apart = Duration::from_millis(sent[1] - sent[0]);
    assert!(apart >= ms(150), "two comments after {apart:?}");
    gate.open();
    assert_eq!(next_event(&mut stream).json()["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(next_event(&mut stream).json()["choices"][0]["delta"]["content"], "One");
    assert!(is_comment(&stream.next_message().unwrap()));
    gate.open();
    assert_eq!(next_event(&mut stream).json()["choices"][0]["delta"]["content"], "Two");
    let mut end = rest(stream);
    end.retain(|message| !is_comment(message));
    assert_eq!(names(&end), ["chunk", "[DONE]"]);
}

#[test]
fn frames_postpone_the_next_comment() {
    let gateway = gateway_config().keepalive(ms(1000)).start("openai-chat", "openai");
    // One and a half times the interval in total.
    let answer = (0..15).fold(empty_stream(), |answer, _| answer.event(&word("x")).pause(ms(100)));
    gateway.set_response("k-traffic", finished(answer));
    let started = Instant::now();
    let messages = gateway.server.fetch(dialect_request("chat", "k-traffic", true)).sse_messages();
    assert!(started.elapsed() > ms(1400));
    assert_eq!(comments(&messages), 0, "{:?}", names(&messages));
    assert_eq!(messages.len(), 18);
}

#[test]
fn events_without_frames_do_not_postpone_comments() {
    // Comments and malformed events of the backend are not sent to the client.
    let answer = (0..6).fold(empty_stream().event(&word("x")), |answer, _| answer.pause(ms(100)).bytes(": hm\n\n"));
    chat().set_response("k-hidden", finished(answer));
    let messages = chat().server.fetch(dialect_request("chat", "k-hidden", true)).sse_messages();
    assert!(comments(&messages) > 0, "{:?}", names(&messages));
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
        let stream = chat().server.client().stream(request);
        assert!(started.elapsed() >= ms(490), "the headers were sent early: {:?}", started.elapsed());
        assert_eq!(names(&rest(stream)), ["chunk", "chunk", "chunk", "[DONE]"]);
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
    let did_not_start = format!("the backend did not start its response within {:?}", ms(1000));
    // Each fault waits for the client's first comment.
    let gates = [(); 7].map(|()| Gate::default());
    let faults = [
        (
            "k-429",
            MockResponse::raw().wait(&gates[0]).bytes(format!(
                // Without `connection: close` the next request could use the connection that the backend is closing.
                "HTTP/1.1 429 no\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n\
                 {error_body}",
                error_body.len()
            )),
            "too many",
        ),
        ("k-inside", empty_stream().wait(&gates[1]).event(&error_body), "too many"),
        ("k-end", empty_stream().wait(&gates[2]), "the backend ended without an answer"),
        ("k-done", empty_stream().wait(&gates[3]).event("[DONE]"), "the backend ended without an answer"),
        ("k-stall", empty_stream().stall(), &did_not_start),
        ("k-cut", empty_stream().wait(&gates[5]).disconnect(), "the connection to the backend was lost: "),
        ("k-reset", MockResponse::raw().wait(&gates[6]).reset(), "the backend did not respond: "),
    ];
    run_concurrently(faults.into_iter().zip(&gates), |((model, answer, message), gate)| {
        chat().set_response(model, answer);
        let fetch = |dialect: &str| {
            let mut stream = stream(chat(), dialect, model);
            assert_eq!(stream.head.status, 200, "{model}");
            assert!(is_comment(&stream.next_message().unwrap()), "{model}");
            gate.open();
            let mut messages = rest(stream);
            messages.retain(|t| !is_comment(t));
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
    let gateway = gateway_config().keepalive(ms(100)).start("openai-responses", "codex-proxy");
    let first = MockResponse::sse_raw(event(&created())).pause(ms(300)).bytes(event(&text_delta("Good ")));
    let answer =
        first.pause(ms(300)).bytes(event(&text_delta("day.")) + &event(&crate::support::backend_events::completed()));
    gateway.set_response("k-same", answer);
    let mut messages = gateway.server.fetch(dialect_request("responses", "k-same", true)).sse_messages();
    assert!(comments(&messages) > 0, "{:?}", names(&messages));
    messages.retain(|t| !is_comment(t));
    let quiet =
        gateway.server.fetch(dialect_request("responses", "k-same", true).header("x-no-keepalive", "1")).sse_messages();
    assert_eq!(names(&messages), names(&quiet));
    assert_eq!(messages[1].text(), quiet[1].text());
}
