//! Response headers are delayed until the first event, so that an earlier failure is an HTTP error.

use super::{empty_stream, finished, gateway_config, ms, run_concurrently, word};
use crate::support::backend_events::{created, event, text_delta};
use crate::support::sse::names;
use crate::support::{MockResponse, TestGateway, assert_contains, assert_within, dialect_request};
use serde_json::json;
use std::sync::LazyLock;
use std::time::Instant;

fn chat() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> =
        LazyLock::new(|| gateway_config().first_event("600ms").shared("openai-chat", "openai"));
    &SHARED
}

const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

#[test]
fn response_headers_wait_for_the_first_event() {
    let chat = chat();
    chat.set_response(
        "h-first",
        finished(empty_stream().pause(ms(250)).event(&word("One")).pause(ms(250)).event(&word("Two"))),
    );
    let started = Instant::now();
    let mut stream = chat.server.client().stream(dialect_request("chat", "h-first", true)).sse();
    let head = started.elapsed();
    assert!(head >= ms(240), "the headers arrived after {head:?}");
    assert_within("the headers after the first event", head - ms(240), ms(100));
    assert_eq!(stream.head().status, 200);
    assert_eq!(stream.next().unwrap().json()["choices"][0]["delta"]["role"], "assistant");
    let one = stream.next().unwrap();
    assert_eq!(one.json()["choices"][0]["delta"]["content"], "One");
    let two = stream.next().unwrap();
    assert_eq!(two.json()["choices"][0]["delta"]["content"], "Two");
    assert!(two.at - one.at >= ms(200), "separate events arrived together");
    assert_eq!(names(&stream.rest()), ["chunk", "[DONE]"]);
}

#[test]
fn a_backend_that_sends_only_headers_is_a_504() {
    let chat = chat();
    let silent = [
        ("h-head", empty_stream().stall()),
        ("h-hang", MockResponse::hang()),
        ("h-comments", empty_stream().bytes(": hm\n\n").stall()),
    ];
    for (model, answer) in silent {
        chat.set_response(model, answer);
        let ways = DIALECTS.into_iter().flat_map(|dialect| [(dialect, true), (dialect, false)]);
        run_concurrently(ways, |(dialect, stream)| {
            let started = Instant::now();
            let reply = chat.server.fetch(dialect_request(dialect, model, stream));
            let elapsed = started.elapsed();
            assert_eq!(reply.status(), 504, "{model} {dialect} {stream}");
            let error = json!({ "message": "the backend did not start its response within 600ms", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{model} {dialect} {stream}");
            assert!(elapsed >= ms(595), "{elapsed:?}");
            assert_within("a 504 after its limit", elapsed - ms(595), ms(100));
        });
    }
}

#[test]
fn metadata_events_do_not_stop_the_first_event_timeout() {
    // `response.created` alone is not sent to the client.
    let gateway = gateway_config().first_event("400ms").start("openai-responses", "openai");
    gateway.set_response("h-created", MockResponse::sse_raw(event(&created())).stall());
    for dialect in DIALECTS {
        assert_eq!(gateway.server.fetch(dialect_request(dialect, "h-created", true)).status(), 504, "{dialect}");
    }
    // Once a frame was sent, the limit no longer applies.
    let messages = event(&created()) + &event(&text_delta("Well"));
    gateway.set_response(
        "h-sent",
        MockResponse::sse_raw(messages).pause(ms(700)).bytes(event(&crate::support::backend_events::completed())),
    );
    assert_eq!(
        names(&gateway.server.fetch(dialect_request("chat", "h-sent", true)).sse_messages()),
        ["chunk", "chunk", "chunk", "[DONE]"]
    );
}

#[test]
fn a_fault_before_the_first_event_is_an_http_error() {
    let inside = json!({ "error": { "message": "not today", "code": "closed" } }).to_string();
    let error_body = json!({ "error": { "message": "who are you?", "code": "invalid_api_key" } }).to_string();
    let faults = [
        ("h-inside", MockResponse::sse(&[&inside]), 502, Some("not today")),
        ("h-401", MockResponse::json(401, &error_body), 401, Some("who are you?")),
        ("h-429", MockResponse::json(429, &error_body).header("retry-after", "3"), 429, Some("who are you?")),
        ("h-503", MockResponse::new(503), 503, None),
        ("h-html", MockResponse::new(200).header("content-type", "text/html").bytes("<html>"), 502, None),
        ("h-cut", empty_stream().disconnect(), 502, None),
        ("h-reset", empty_stream().reset(), 502, None),
        ("h-none", empty_stream(), 502, None),
        ("h-role", MockResponse::sse(&["[DONE]"]), 502, None),
    ];
    let chat = chat();
    for (model, answer, status, message) in faults {
        chat.set_response(model, answer.clone());
        for dialect in DIALECTS {
            let reply = chat.server.fetch(dialect_request(dialect, model, true));
            assert_eq!(
                (reply.status(), reply.header("content-type")),
                (status, Some("application/json")),
                "{model} {dialect}: {}",
                reply.text()
            );
            assert!(!reply.json()["error"]["message"].as_str().unwrap().is_empty());
            if let Some(message) = message {
                assert_eq!(reply.json()["error"]["message"], message, "{model} {dialect}");
            }
            assert_eq!(reply.header("retry-after"), (status == 429).then_some("3"), "{model} {dialect}");
        }
    }
}

#[test]
fn a_fault_after_the_first_event_is_sent_in_the_stream() {
    let inside = json!({ "error": { "message": "not today", "code": "closed" } }).to_string();
    let faults = [
        ("h-late-inside", MockResponse::sse(&[&word("One"), &inside])),
        ("h-late-cut", MockResponse::sse(&[&word("One")]).disconnect()),
        ("h-late-reset", MockResponse::sse(&[&word("One")]).pause(ms(50)).reset()),
        ("h-late-end", MockResponse::sse(&[&word("One")])),
        ("h-late-done", MockResponse::sse(&[&word("One"), "[DONE]"])),
    ];
    let chat = chat();
    for (model, answer) in faults {
        chat.set_response(model, answer);
        let reply = chat.server.fetch(dialect_request("chat", model, true));
        assert_eq!(reply.status(), 200);
        let messages = reply.sse_messages();
        assert_eq!(names(&messages), ["chunk", "chunk", "error"], "{model}");
        assert!(!messages[2].json()["error"]["message"].as_str().unwrap().is_empty());
        let messages = chat.server.fetch(dialect_request("completions", model, true)).sse_messages();
        assert_eq!(names(&messages), ["chunk", "error"], "{model}");
        let messages = chat.server.fetch(dialect_request("responses", model, true)).sse_messages();
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.failed",
            "[DONE]",
        ];
        assert_eq!(names(&messages), expected, "{model}");
        assert_contains(
            &json!({ "response": { "status": "failed", "output": [{ "status": "incomplete", "content": [{ "text": "One" }] }] } }),
            &messages[5].json(),
        );
    }
}

#[test]
fn stream_start_immediately_does_not_wait() {
    let gateway = gateway_config()
        .first_event("600ms")
        .profile("eager", "stream_start: immediately")
        .start("openai-chat", "eager");
    gateway.set_response("h-once", empty_stream().pause(ms(400)).event(&word("One")).stall());
    gateway.set_response("h-once-fault", MockResponse::json(429, "{\"error\":{\"message\":\"not now\"}}"));
    gateway.set_response("h-once-late", empty_stream().stall());
    let opening: [(&str, &[&str]); 3] =
        [("chat", &["chunk"]), ("responses", &["response.created", "response.in_progress"]), ("completions", &[])];
    // The first connection of a process is slow.
    gateway.server.fetch(dialect_request("chat", "h-once-fault", false));
    for (dialect, opening) in opening {
        let started = Instant::now();
        let mut stream = gateway.server.client().stream(dialect_request(dialect, "h-once", true)).sse();
        assert_within(&format!("the headers of {dialect} immediately"), started.elapsed(), ms(35));
        for name in opening {
            assert_eq!(stream.next().unwrap().name(), *name);
        }
        assert!(started.elapsed() < ms(350), "{dialect}: the opening waited {:?}", started.elapsed());
        drop(stream);
        // The status is already 200, so a failure is sent in the stream.
        let failure: &[&str] = if dialect == "responses" { &["response.failed", "[DONE]"] } else { &["error"] };
        for model in ["h-once-fault", "h-once-late"] {
            let reply = gateway.server.fetch(dialect_request(dialect, model, true));
            assert_eq!(reply.status(), 200, "{dialect} {model}");
            let messages = reply.sse_messages();
            assert_eq!(names(&messages), [opening, failure].concat(), "{dialect} {model}");
        }
    }
    // A stream without any event is not a truncated response, whatever the idle policy is.
    let policies = "stream_start: immediately, on_idle: finish_length";
    let gateway = gateway_config().first_event("300ms").profile("both", policies).start("openai-chat", "both");
    gateway.set_response("h-once-cut", empty_stream().stall());
    assert_eq!(
        names(&gateway.server.fetch(dialect_request("chat", "h-once-cut", true)).sse_messages()),
        ["chunk", "error"]
    );
}

#[test]
fn stream_start_immediately_applies_to_streams_only() {
    let gateway = gateway_config().profile("eager", "stream_start: immediately").start("openai-chat", "eager");
    gateway.set_response("h-once-fault", MockResponse::json(429, "{\"error\":{\"message\":\"not now\"}}"));
    assert_eq!(gateway.server.fetch(dialect_request("chat", "h-once-fault", false)).status(), 429);
}
