//! Error scenarios of aggregation: empty stream, partial stream, malformed events, timeout, connection error. Each is
//! tested with each profile and with the other dialects.

use super::aggregator::{normalized_body, openai_message, proxied_body_without_usage, proxied_message};
use super::{codex_proxy, openai};
use crate::support::backend_events::{created, events, text_delta};
use crate::support::{MockResponse, RefusingPort, TestDir, TestGateway, assert_contains, dialect_request, serve};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn empty_stream() {
    // No bytes, white space, comments and a lone end marker are all empty.
    let nothing =
        [("e1-none", ""), ("e1-space", "\n\n"), ("e1-comment", ": hello\n\n"), ("e1-done", "data: [DONE]\n\n")];
    for (model, text) in nothing {
        let answer = MockResponse::sse(&[]).bytes(text);
        let reply = codex_proxy().fetch(model, answer.clone(), dialect_request("responses", model, false));
        let expected = proxied_body_without_usage("completed", &json!([]));
        assert_eq!(normalized_body(&reply, "created"), expected);

        for dialect in ["responses", "chat", "completions"] {
            if dialect == "responses" {
                openai().set_response(model, answer.clone());
            }
            let reply = openai().server.fetch(dialect_request(dialect, model, false));
            assert_eq!(reply.status(), 502, "{dialect} {text:?}");
            let error = json!({ "message": "the backend ended without an answer", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{dialect} {text:?}");
        }
    }
}

#[test]
fn empty_stream_is_an_empty_completion_for_a_codex_proxy_chat_client() {
    let reply = codex_proxy().fetch("e1-chat", MockResponse::sse(&[]), dialect_request("chat", "e1-chat", false));
    assert_eq!(reply.status(), 200);
    let message = json!({ "role": "assistant", "content": null, "refusal": null });
    assert_contains(
        &json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "usage": { "prompt_tokens": 2, "completion_tokens": 0, "total_tokens": 2 } }),
        &reply.json(),
    );
}

#[test]
fn partial_stream() {
    let stream = events(&[created(), text_delta("Half")]);
    let ends = [
        ("e2-end", MockResponse::sse_raw(&stream)),
        ("e2-cut", MockResponse::sse_raw(&stream).disconnect()),
        ("e2-reset", MockResponse::sse_raw(&stream).pause(Duration::from_millis(50)).reset()),
    ];
    for (model, answer) in ends {
        let reply = codex_proxy().fetch(model, answer.clone(), dialect_request("responses", model, false));
        assert_eq!(
            normalized_body(&reply, "created"),
            proxied_body_without_usage("failed", &json!([proxied_message("Half")])),
            "{model}"
        );
        let reply = openai().fetch(model, answer, dialect_request("responses", model, false));
        let body = normalized_body(&reply, "created_at");
        assert_eq!(body["output"], json!([openai_message("Half", "incomplete")]), "{model}");
        assert_eq!(body["status"], "failed", "{model}");
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
        // A chat body cannot represent a failed response.
        for gateway in [codex_proxy(), openai()] {
            let reply = gateway.server.fetch(dialect_request("chat", model, false));
            assert_eq!(reply.status(), 502, "{model}: {}", reply.text());
        }
    }
}

#[test]
fn a_stream_that_started_without_content_is_not_completed() {
    let answer = MockResponse::sse_raw(events(&[created()]));
    let reply = codex_proxy().fetch("e2-began", answer.clone(), dialect_request("responses", "e2-began", false));
    assert_eq!(normalized_body(&reply, "created"), proxied_body_without_usage("failed", &json!([])));
    let chat = codex_proxy().server.fetch(dialect_request("chat", "e2-began", false));
    assert_eq!(chat.status(), 502);
    let reply = openai().fetch("e2-began", answer, dialect_request("responses", "e2-began", false));
    assert_eq!(reply.status(), 502);
    assert_eq!(reply.json()["error"]["message"], "the backend started a response but sent no content");
}

#[test]
fn only_malformed_events() {
    let garbage = "data: {oops\n\nevent: response.completed\ndata: {\"type\":\n\n";
    let reply = openai().fetch("e3", MockResponse::sse_raw(garbage), dialect_request("responses", "e3", false));
    assert_eq!(reply.status(), 502);
    let reply = codex_proxy().fetch("e3", MockResponse::sse_raw(garbage), dialect_request("responses", "e3", false));
    assert_eq!(reply.json()["output"], json!([]));
}

#[test]
fn timeout() {
    let with_short_timeouts = |dir: TestDir| {
        dir.with_edit("gateway.yaml", "first_event: 300s\n  idle: 300s", "first_event: 300ms\n  idle: 300ms")
    };
    for profile in ["openai", "codex-proxy"] {
        let gateway = TestGateway::start("openai-responses", profile, with_short_timeouts(TestDir::empty()));
        for (model, answer) in [("e4-hang", MockResponse::hang()), ("e4-head", MockResponse::sse(&[]).stall())] {
            let started = Instant::now();
            let reply = gateway.fetch(model, answer, dialect_request("responses", model, false));
            assert_eq!(reply.status(), 504, "{profile} {model}");
            let message = "the backend did not start its response within 300ms";
            let error = match profile {
                "openai" => json!({ "message": message, "type": "server_error", "param": null, "code": "timeout" }),
                _ => json!({ "message": "backend idle timeout", "type": "timeout_error", "code": "timeout_error" }),
            };
            assert_eq!(reply.json(), json!({ "error": error }), "{profile} {model}");
            assert!(started.elapsed() >= Duration::from_millis(300));
        }
        let half = MockResponse::sse_raw(events(&[created(), text_delta("Half")])).stall();
        let reply = gateway.fetch("e4-half", half, dialect_request("responses", "e4-half", false));
        assert_eq!(reply.status(), 200);
        assert_contains(&json!({ "status": "failed", "output": [{ "content": [{ "text": "Half" }] }] }), &reply.json());
        // A chat body has no status, so the timeout is an HTTP error.
        assert_eq!(gateway.server.fetch(dialect_request("chat", "e4-half", false)).status(), 504);
        // The backend request is cancelled too.
        crate::support::eventually("the backend is left", || (gateway.backend.disconnects().len() == 4).then_some(()));
    }
}

#[test]
fn connection_error() {
    for profile in ["openai", "codex-proxy"] {
        let refusing = RefusingPort::start();
        let gateway = if profile == "openai" { openai() } else { codex_proxy() };
        let resets = MockResponse::raw().reset();
        for stream in [false, true] {
            let model = format!("e5-{stream}");
            let reply = gateway.fetch(&model, resets.clone(), dialect_request("responses", &model, stream));
            assert_eq!(reply.status(), 502, "{profile} stream {stream}");
            assert!(reply.json()["error"]["message"].as_str().unwrap().starts_with("the backend did not respond: "));
        }
        let at = format!("openai-responses={}", refusing.url());
        let server = serve().args(["--backend", &at, "--profile", profile]).start();
        for (dialect, stream) in [("responses", false), ("responses", true), ("chat", false), ("completions", true)] {
            let reply = server.fetch(dialect_request(dialect, "m", stream));
            assert_eq!(reply.status(), 502, "{profile} {dialect}");
            assert_contains(&json!({ "error": { "type": "server_error" } }), &reply.json());
            assert!(
                reply.json()["error"]["message"].as_str().unwrap().starts_with("the backend could not be reached: ")
            );
        }
    }
}

#[test]
fn one_line_of_configuration_selects_the_codex_proxy_profile() {
    let server =
        serve().args(["--backend", "openai-responses=http://127.0.0.1:9/v1", "--profile", "codex-proxy"]).start();
    assert_eq!(server.fetch(dialect_request("responses", "m", false)).status(), 502);
}

#[test]
fn a_backend_error_keeps_its_status_and_message() {
    let backend_error =
        json!({ "error": { "message": "too many of you", "type": "rate_limit_error", "code": "slow_down" } });
    let answer = MockResponse::json(429, &backend_error.to_string()).header("retry-after", "7");
    for gateway in [codex_proxy(), openai()] {
        gateway.set_response("e5-429", answer.clone());
        for stream in [false, true] {
            let reply = gateway.server.fetch(dialect_request("responses", "e5-429", stream));
            assert_eq!((reply.status(), reply.header("retry-after")), (429, Some("7")));
            let error = json!({ "message": "too many of you", "type": "rate_limit_error", "code": "slow_down" });
            assert_contains(&json!({ "error": error }), &reply.json());
        }
    }
}
