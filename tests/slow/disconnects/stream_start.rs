//! Response headers are delayed until the first event, so that an earlier failure is an HTTP error.

use super::{empty_stream, finished, gateway_config, rest, run_concurrently, stream, word};
use crate::support::backend_events::{created, event, text_delta};
use crate::support::sse::names;
use crate::support::{Gate, MockResponse, TestGateway, assert_contains, assert_within, dialect_request, ms};
use serde_json::json;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

fn chat() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> =
        LazyLock::new(|| gateway_config().first_event(ms(1500)).shared("openai-chat", "openai"));
    &SHARED
}

const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

#[test]
fn response_headers_wait_for_the_first_event() {
    let gate = Gate::default();
    let held = empty_stream().wait(&gate).event(&word("One")).wait(&gate).event(&word("Two"));
    chat().set_response("h-first", finished(held));
    thread::scope(|scope| {
        let request = scope.spawn(|| (stream(chat(), "chat", "h-first"), Instant::now()));
        thread::sleep(ms(250));
        let first_event = Instant::now();
        gate.open();
        let (mut stream, head) = request.join().unwrap();
        assert!(head >= first_event, "the headers arrived {:?} before the first event", first_event - head);
        assert_eq!(stream.head.status, 200);
        // The second event is still held back.
        assert_eq!(stream.next_message().unwrap().json()["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(stream.next_message().unwrap().json()["choices"][0]["delta"]["content"], "One");
        gate.open();
        assert_eq!(stream.next_message().unwrap().json()["choices"][0]["delta"]["content"], "Two");
        assert_eq!(names(&rest(stream)), ["chunk", "[DONE]"]);
    });
}

#[test]
fn a_backend_that_sends_only_headers_is_a_504() {
    let silent = [
        ("h-head", empty_stream().stall()),
        ("h-hang", MockResponse::hang()),
        ("h-comments", empty_stream().bytes(": hm\n\n").stall()),
    ];
    let models = silent.map(|(model, answer)| {
        chat().set_response(model, answer);
        model
    });
    let requests = models.into_iter().flat_map(|model| DIALECTS.map(|dialect| (model, dialect)));
    let requests = requests.flat_map(|(model, dialect)| [true, false].map(|stream| (model, dialect, stream)));
    run_concurrently(requests, |(model, dialect, stream)| {
        let started = Instant::now();
        let reply = chat().server.fetch(dialect_request(dialect, model, stream));
        let elapsed = started.elapsed();
        assert_eq!(reply.status(), 504, "{model} {dialect} {stream}");
        let message = format!("the backend did not start its response within {:?}", ms(1500));
        let error = json!({ "message": message, "type": "server_error", "param": null, "code": "timeout" });
        assert_eq!(reply.json(), json!({ "error": error }), "{model} {dialect} {stream}");
        assert!(elapsed >= ms(1495), "{elapsed:?}");
        // The other timeouts are 300 seconds and more.
        assert_within("a 504 after its limit", elapsed - ms(1495), Duration::from_millis(500));
    });
}

#[test]
fn metadata_events_do_not_stop_the_first_event_timeout() {
    // `response.created` alone is not sent to the client.
    let gateway = gateway_config().first_event(ms(1000)).start("openai-responses", "openai");
    gateway.set_response("h-created", MockResponse::sse_raw(event(&created())).stall());
    run_concurrently(DIALECTS, |dialect| {
        assert_eq!(gateway.server.fetch(dialect_request(dialect, "h-created", true)).status(), 504, "{dialect}");
    });
    // Once a frame was sent, the limit no longer applies.
    let messages = event(&created()) + &event(&text_delta("Well"));
    gateway.set_response(
        "h-sent",
        MockResponse::sse_raw(messages).pause(ms(1200)).bytes(event(&crate::support::backend_events::completed())),
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
    // With the default limits: nothing but the policy sends the headers of a silent backend.
    let gateway = gateway_config().profile("eager", "stream_start: immediately").start("openai-chat", "eager");
    gateway.set_response("h-once", empty_stream().stall());
    gateway.set_response("h-once-fault", MockResponse::json(429, "{\"error\":{\"message\":\"not now\"}}"));
    for (dialect, opening, failure) in OPENINGS {
        let mut stream = stream(&gateway, dialect, "h-once");
        for name in opening {
            assert_eq!(stream.next_message().unwrap().name(), *name);
        }
        drop(stream);
        // The status is already 200, so a failure is sent in the stream.
        let reply = gateway.server.fetch(dialect_request(dialect, "h-once-fault", true));
        assert_eq!(reply.status(), 200, "{dialect}");
        assert_eq!(names(&reply.sse_messages()), [opening, failure].concat(), "{dialect}");
    }
    // The policy applies to streams only.
    assert_eq!(gateway.server.fetch(dialect_request("chat", "h-once-fault", false)).status(), 429);
}

#[test]
fn a_timeout_after_an_immediate_start_is_sent_in_the_stream() {
    // A stream without any event is not a truncated response, whatever the idle policy is.
    for policies in ["stream_start: immediately", "stream_start: immediately, on_idle: finish_length"] {
        let gateway = gateway_config().first_event(ms(300)).profile("eager", policies).start("openai-chat", "eager");
        gateway.set_response("h-once-late", empty_stream().stall());
        run_concurrently(OPENINGS, |(dialect, opening, failure)| {
            let reply = gateway.server.fetch(dialect_request(dialect, "h-once-late", true));
            assert_eq!(reply.status(), 200, "{dialect}");
            assert_eq!(names(&reply.sse_messages()), [opening, failure].concat(), "{dialect}");
        });
    }
}

/// The frames of an immediate start, and those of a failure.
const OPENINGS: [(&str, &[&str], &[&str]); 3] = [
    ("chat", &["chunk"], &["error"]),
    ("responses", &["response.created", "response.in_progress"], &["response.failed", "[DONE]"]),
    ("completions", &[], &["error"]),
];
