//! Timeouts of backends: between two events, and overall.

use super::{empty_stream, finished, gateway_config, run_concurrently, word};
use crate::support::backend_events::{created, event, text_delta};
use crate::support::sse::names;
use crate::support::{MockResponse, assert_contains, assert_within, dialect_request, eventually, ms};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn an_idle_stream_ends_with_an_error() {
    let gateway = gateway_config().idle(ms(400)).start("openai-chat", "openai");
    gateway.set_response("i-stall", empty_stream().event(&word("One")).stall());
    let dialects: [(&str, &[&str]); 3] =
        [("chat", &["error"]), ("completions", &["error"]), ("responses", &["response.failed", "[DONE]"])];
    run_concurrently(dialects, |(dialect, ends)| {
        let started = Instant::now();
        let messages = gateway.server.fetch(dialect_request(dialect, "i-stall", true)).sse_messages();
        let elapsed = started.elapsed();
        assert!(elapsed >= ms(390), "{dialect}: {elapsed:?}");
        // The other timeouts are 300 seconds and more.
        assert_within("the error behind the idle limit", elapsed - ms(390), Duration::from_millis(500));
        assert_eq!(names(&messages)[messages.len() - ends.len()..], *ends);
        let failure = messages[messages.len() - ends.len()].text().to_owned();
        assert!(failure.contains(&format!("the backend sent no data for {:?}", ms(400))), "{failure}");
    });
    eventually("the backend request is cancelled", || (gateway.backend.disconnects().len() == 3).then_some(()));
}

#[test]
fn on_idle_can_truncate_the_response() {
    let gateway =
        gateway_config().idle(ms(300)).profile("patient", "on_idle: finish_length").start("openai-chat", "patient");
    gateway.set_response("i-cut", empty_stream().event(&word("One")).stall());
    let messages = gateway.server.fetch(dialect_request("chat", "i-cut", true)).sse_messages();
    assert_eq!(names(&messages), ["chunk", "chunk", "chunk", "[DONE]"]);
    assert_eq!(messages[2].json()["choices"][0]["finish_reason"], "length");
    let messages = gateway.server.fetch(dialect_request("responses", "i-cut", true)).sse_messages();
    let end = &messages[messages.len() - 2];
    assert_eq!(end.name(), "response.incomplete");
    assert_contains(
        &json!({ "response": { "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" }, "output": [{ "content": [{ "text": "One" }] }] } }),
        &end.json(),
    );
    // The client gets a truncated response; the log has the cause.
    let log = gateway.server.wait_for_log("a turn was truncated");
    assert!(log.contains(&format!("the backend sent no data for {:?}", ms(300))), "{log}");
    eventually("it is counted", || {
        (gateway.metric("reframe_turn_faults_total{backend=\"openai-chat\",kind=\"timeout\"}") == 2.0).then_some(())
    });
    eventually("both are cancelled", || (gateway.backend.disconnects().len() == 2).then_some(()));
}

#[test]
fn the_codex_proxy_profile_truncates_an_idle_stream() {
    let gateway = gateway_config().idle(ms(300)).start("openai-responses", "codex-proxy");
    gateway.set_response("i-proxy", MockResponse::sse_raw(event(&created()) + &event(&text_delta("One"))).stall());
    let messages = gateway.server.fetch(dialect_request("chat", "i-proxy", true)).sse_messages();
    assert_eq!(names(&messages), ["chunk", "chunk", "chunk", "[DONE]"]);
    assert_eq!(messages[2].json()["choices"][0]["finish_reason"], "length");
    let messages = gateway.server.fetch(dialect_request("responses", "i-proxy", true)).sse_messages();
    assert_eq!(
        names(&messages),
        ["response.created", "response.output_text.delta", "response.output_text.done", "response.completed", "done"]
    );
    assert_eq!(messages[3].json()["response"]["status"], "incomplete");
}

#[test]
fn a_slow_but_active_stream_is_limited_only_by_the_idle_timeout() {
    let gateway = gateway_config().first_event(ms(1000)).idle(ms(1000)).overall(ms(700)).start("openai-chat", "openai");
    // Longer in total than each of the limits.
    let answer = (0..15).fold(empty_stream(), |answer, _| answer.event(&word("x")).pause(ms(100)));
    gateway.set_response("i-steady", finished(answer));
    let started = Instant::now();
    let messages = gateway.server.fetch(dialect_request("chat", "i-steady", true)).sse_messages();
    assert!(started.elapsed() >= ms(1400), "{:?}", started.elapsed());
    assert_eq!(messages.len(), 18, "{:?}", names(&messages));
    assert_eq!(messages[17].text(), "[DONE]");
    // The overall limit applies to a client that waits for a complete body.
    let started = Instant::now();
    let reply = gateway.server.fetch(dialect_request("chat", "i-steady", false));
    assert_eq!(reply.status(), 504);
    let message = format!("the backend did not finish its response within {:?}", ms(700));
    assert_eq!(reply.json()["error"]["message"], message);
    assert!(started.elapsed() >= ms(695));
    // A body with a failed status contains what was received.
    let body = gateway.server.fetch(dialect_request("responses", "i-steady", false)).json();
    assert_contains(&json!({ "status": "failed", "error": { "message": message } }), &body);
    let received = body["output"][0]["content"][0]["text"].as_str().unwrap().len();
    assert!((1..15).contains(&received), "{received}");
}

#[test]
fn partial_events_reset_the_idle_timeout() {
    let gateway = gateway_config().idle(ms(800)).start("openai-chat", "openai");
    let long = crate::support::backend_events::data(&crate::support::backend_events::word(&"x".repeat(200)));
    let parts = long.len() / 40;
    let slow = MockResponse::sse(&[&word("One")]).bytes(long).split(40).pause_between(ms(150));
    gateway.set_response("i-bytes", finished(slow));
    assert!(ms(150) * parts as u32 > ms(800), "one event alone takes longer than the limit");
    let messages = gateway.server.fetch(dialect_request("chat", "i-bytes", true)).sse_messages();
    assert_eq!(names(&messages), ["chunk", "chunk", "chunk", "chunk", "[DONE]"]);
}

/// What a backend can send without an event: comments, and fields without data.
fn signs_of_life(answer: MockResponse, rounds: usize) -> MockResponse {
    (0..rounds).fold(answer, |answer, n| {
        let sign = [": OPENROUTER PROCESSING\n\n", "event: ping\n\n", "\n", "retry: 5\ndata:\n\n"][n % 4];
        answer.bytes(sign).pause(ms(50))
    })
}

#[test]
fn comments_do_not_extend_the_idle_timeout() {
    let gateway = gateway_config().idle(ms(500)).start("openai-chat", "openai");
    // The comments go on for ten times the limit.
    gateway.set_response("i-comments", signs_of_life(empty_stream().event(&word("One")), 100).stall());
    let started = Instant::now();
    let messages = gateway.server.fetch(dialect_request("chat", "i-comments", true)).sse_messages();
    let message = format!("the backend sent no data for {:?}", ms(500));
    assert_eq!(messages.last().unwrap().json()["error"]["message"], message);
    assert!(started.elapsed() < ms(4000), "{:?}: only after the last comment", started.elapsed());
    // Nor do they hold a finished response open: its end is assumed after the same time.
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    let answer = empty_stream().event(&word("One")).event(&last);
    gateway.set_response("i-finished", signs_of_life(answer, 100).stall());
    let messages = gateway.server.fetch(dialect_request("chat", "i-finished", true)).sse_messages();
    assert_eq!(messages.last().unwrap().text(), "[DONE]");
    eventually("both are cancelled", || (gateway.backend.disconnects().len() == 2).then_some(()));
}

#[test]
fn comments_before_the_first_event_are_no_idle_stream() {
    let gateway = gateway_config().idle(ms(500)).start("openai-chat", "openai");
    let waiting = signs_of_life(empty_stream(), 20);
    gateway.set_response("i-waiting", finished(waiting.event(&word("One"))));
    let messages = gateway.server.fetch(dialect_request("chat", "i-waiting", true)).sse_messages();
    assert_eq!(messages.last().unwrap().text(), "[DONE]");
}

#[test]
fn comments_count_as_a_sign_of_life_by_setting() {
    let gateway =
        gateway_config().idle(ms(500)).edit("comments: ignore", "comments: count").start("openai-chat", "openai");
    // Longer than the limit, and then the rest.
    let answer = signs_of_life(empty_stream().event(&word("One")), 20);
    gateway.set_response("i-counted", finished(answer.event(&word("Two"))));
    let messages = gateway.server.fetch(dialect_request("chat", "i-counted", true)).sse_messages();
    assert_eq!(messages.last().unwrap().text(), "[DONE]");
}

#[test]
fn an_idle_backend_of_a_json_response_is_a_504_or_failed() {
    let gateway = gateway_config().idle(ms(300)).start("openai-chat", "openai");
    gateway.set_response("i-json", empty_stream().event(&word("One")).stall());
    let reply = gateway.server.fetch(dialect_request("chat", "i-json", false));
    assert_eq!(reply.status(), 504);
    assert_eq!(reply.json()["error"]["message"], format!("the backend sent no data for {:?}", ms(300)));
    let body = gateway.server.fetch(dialect_request("responses", "i-json", false)).json();
    assert_contains(&json!({ "status": "failed", "output": [{ "content": [{ "text": "One" }] }] }), &body);
}

#[test]
fn a_stream_can_have_an_overall_timeout() {
    let limit = format!("stream: {}ms", ms(600).as_millis());
    let gateway = gateway_config().edit("stream: none", &limit).start("openai-chat", "openai");
    let answer = (0..20).fold(empty_stream(), |answer, _| answer.event(&word("x")).pause(ms(100)));
    gateway.set_response("i-stream", finished(answer));
    let messages = gateway.server.fetch(dialect_request("chat", "i-stream", true)).sse_messages();
    assert_eq!(messages.last().unwrap().name(), "error");
    assert_eq!(
        messages.last().unwrap().json()["error"]["message"],
        format!("the backend did not finish its response within {:?}", ms(600))
    );
}
