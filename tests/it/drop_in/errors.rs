//! Errors: their status, type, code and order.

use super::{ask, ready, responses, start, with_key};
use crate::support::{Request, assert_within, eventually};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn error_of(variables: &[(&str, &str)]) -> (u16, Value) {
    let (status, body) = ready(variables).chat(ask("Hi"));
    (status, body["error"].clone())
}

/// Lines: error-params error-model error-tool-name
#[test]
fn invalid_requests_name_their_parameter() {
    let gateway = ready(&[]);
    let cases = [
        (ask("Hi").with("temperature", "fast"), "temperature"),
        (ask("Hi").with("n", 0), "n"),
        (ask("Hi").with("n", 6), "n"),
        (ask("Hi").with("messages", json!([])), "messages"),
        (ask("Hi").without("messages"), "messages"),
        (ask("Hi").with("tools", json!([{ "type": "function", "function": {} }])), "tools[0].function.name"),
        (ask("Hi").with("tools", json!([{ "type": "function" }])), "tools[0].function.name"),
    ];
    for (request, param) in cases {
        let (status, body) = gateway.chat(request);
        assert_eq!(status, 400, "{param}: {body}");
        let error = &body["error"];
        assert_eq!((&error["param"], &error["code"]), (&json!(param), &json!("invalid_request_error")), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    let (status, body) = gateway.chat(ask("Hi").without("model"));
    assert_eq!((status, &body["error"]["code"]), (400, &json!("model_required")));
    let (status, body) = gateway.chat(ask("Hi").with("model", "no-such-model"));
    assert_eq!(
        (status, &body["error"]["code"], &body["error"]["param"]),
        (404, &json!("model_not_found"), &json!("model"))
    );
    let (_, body) = gateway.chat(ask("Hi").with("n", 6));
    assert_eq!(body["error"]["message"], "n must be an integer between 1 and 5; received 6");
    let reply = gateway.server.fetch(with_key(Request::post("{")));
    let invalid =
        json!({ "message": "Invalid JSON", "type": "invalid_request_error", "param": null, "code": "invalid_json" });
    assert_eq!((reply.status(), &reply.json()["error"]), (400, &invalid));
    for n in [0, 6] {
        let request = responses(json!({ "model": "codex-5", "input": "Hi", "n": n }));
        assert_eq!(gateway.server.fetch(with_key(request)).status(), 400, "n = {n}");
    }
}

/// Lines: error-context-length
#[test]
fn a_prompt_beyond_the_limit_is_rejected() {
    let gateway = ready(&[("PROXY_MAX_PROMPT_TOKENS", "10")]);
    let (status, body) = gateway.chat(ask(&"x".repeat(200)));
    let error = &body["error"];
    assert_eq!((status, &error["code"]), (403, &json!("context_length_exceeded")), "{error}");
    assert_eq!((&error["type"], &error["param"]), (&json!("tokens_exceeded_error"), &json!("messages")));
}

/// Lines: error-busy
#[test]
fn a_worker_with_all_its_turns_is_busy() {
    let gateway = ready(&[("FAKE_MODE", "held"), ("WORKER_MAX_CONCURRENCY", "1")]);
    let mut first = gateway.client().stream(with_key(ask("Hi").streamed()));
    assert!(first.next().is_some() && first.next().is_some());
    let (status, body) = gateway.chat(ask("Hi"));
    let error = &body["error"];
    assert_eq!((status, &error["code"], &error["retryable"]), (429, &json!("worker_busy"), &json!(true)), "{error}");
    assert_eq!(error["type"], "rate_limit_error");
    gateway.release();
}

/// Lines: error-not-ready
#[test]
fn a_worker_without_a_handshake_is_not_ready() {
    let gateway = start(&[("FAKE_START", "silent"), ("WORKER_HANDSHAKE_TIMEOUT_MS", "200")]);
    let readiness = eventually("the handshake fails", || {
        let (status, body) = gateway.get("/readyz");
        assert_eq!(status, 503);
        Some(body).filter(|body| body["health"]["readiness"]["reason"] == "handshake_failed")
    });
    assert_eq!(readiness["ok"], false);
    let (status, body) = gateway.chat(ask("Hi"));
    assert_eq!((status, &body["error"]["code"]), (503, &json!("worker_not_ready")), "{body}");
    assert_eq!((&body["error"]["type"], &body["error"]["retryable"]), (&json!("backend_unavailable"), &json!(true)));
    assert_eq!(body["worker_status"]["ready"], false);
    let request = responses(json!({ "model": "codex-5", "input": "Hi" }));
    assert_eq!(gateway.server.fetch(with_key(request)).status(), 503);
}

/// Lines: error-request-timeout
#[test]
fn a_worker_that_does_not_answer_is_a_timeout() {
    let sent = Instant::now();
    let (status, error) = error_of(&[("FAKE_MODE", "silent"), ("WORKER_REQUEST_TIMEOUT_MS", "200")]);
    assert_eq!((status, &error["code"]), (504, &json!("worker_request_timeout")), "{error}");
    assert_eq!((&error["type"], &error["retryable"]), (&json!("timeout_error"), &json!(true)));
    assert_within("the timeout", sent.elapsed(), Duration::from_secs(10));
}

/// Lines: error-idle
#[test]
fn a_body_without_events_is_an_idle_timeout() {
    let (status, error) = error_of(&[("FAKE_MODE", "silent"), ("PROXY_IDLE_TIMEOUT_MS", "100")]);
    assert_eq!(
        (status, &error["code"], &error["type"]),
        (504, &json!("idle_timeout"), &json!("timeout_error")),
        "{error}"
    );
}

/// Lines: error-exit
#[test]
fn a_worker_that_exits_in_a_turn_is_unavailable() {
    let (status, error) = error_of(&[("FAKE_MODE", "crash")]);
    assert_eq!((status, &error["code"], &error["retryable"]), (503, &json!("worker_exited"), &json!(true)), "{error}");
    assert_eq!(error["type"], "backend_unavailable");
}

/// Lines: error-rpc
#[test]
fn an_error_of_the_worker_is_a_server_error() {
    let (status, error) = error_of(&[("FAKE_MODE", "error")]);
    assert_eq!(
        (status, &error["code"], &error["type"]),
        (500, &json!("worker_error"), &json!("server_error")),
        "{error}"
    );
    assert_eq!(error["message"], "synthetic worker error");
}

/// Lines: error-unauthorized
#[test]
fn a_worker_without_a_login_is_unauthorized() {
    let (status, error) = error_of(&[("FAKE_MODE", "unauthorized")]);
    assert_eq!(status, 401);
    let expected = json!({ "message": "unauthorized", "type": "authentication_error", "code": "invalid_api_key" });
    assert_eq!(error, expected);
}

/// Lines: error-login error-login-stream
#[test]
fn the_login_is_in_the_details_if_the_operator_wants_that() {
    let gateway = ready(&[("FAKE_MODE", "unauthorized"), ("PROXY_AUTH_LOGIN_URL", "true")]);
    let details = json!({ "auth_url": "https://example.com/login", "login_id": "login-1" });
    let (status, body) = gateway.chat(ask("Hi"));
    assert_eq!((status, &body["error"]["details"]), (401, &details), "{body}");
    let frames = gateway.stream(ask("Hi"));
    let failed = frames.iter().find(|frame| frame["error"].is_object()).unwrap();
    assert_eq!(failed["error"]["details"], details);
    assert_eq!(frames.last(), Some(&json!("[DONE]")));
}

/// Lines: error-login-mode
#[test]
fn the_login_is_in_the_code_or_the_message_if_the_operator_wants_that() {
    let login = " | login_url=https://example.com/login | login_id=login-1";
    for (mode, in_code, in_message) in [("code", true, false), ("message", false, true), ("code+message", true, true)] {
        let settings =
            [("FAKE_MODE", "unauthorized"), ("PROXY_AUTH_LOGIN_URL", "true"), ("PROXY_AUTH_LOGIN_URL_MODE", mode)];
        let gateway = ready(&settings);
        let code = format!("invalid_api_key{}", if in_code { login } else { "" });
        let message = format!("unauthorized{}", if in_message { login } else { "" });
        let (status, body) = gateway.chat(ask("Hi"));
        let frames = gateway.stream(ask("Hi"));
        let failed = frames.iter().find(|frame| frame["error"].is_object()).unwrap();
        assert_eq!(status, 401);
        for error in [&body["error"], &failed["error"]] {
            assert_eq!((&error["code"], &error["message"]), (&json!(code), &json!(message)), "{mode}");
        }
    }
}

/// Lines: error-order
#[test]
fn the_key_is_checked_first_then_the_worker_and_then_the_body() {
    let gateway = start(&[("FAKE_START", "silent"), ("WORKER_HANDSHAKE_TIMEOUT_MS", "200")]);
    let invalid = || ask("Hi").without("messages");
    assert_eq!(gateway.server.fetch(invalid()).status(), 401);
    let (status, body) = gateway.chat(invalid());
    assert_eq!((status, &body["error"]["code"]), (503, &json!("worker_not_ready")), "{body}");
    assert_eq!(gateway.server.fetch(with_key(responses(json!({})))).status(), 503);
}

/// Lines: rate-limit
#[test]
fn requests_beyond_the_rate_are_rejected() {
    let gateway = ready(&[("PROXY_RATE_LIMIT_ENABLED", "true"), ("PROXY_RATE_LIMIT_MAX", "1")]);
    assert_eq!(gateway.chat(ask("Hi")).0, 200);
    let reply = gateway.server.fetch(with_key(ask("Hi")));
    assert_eq!((reply.status(), &reply.json()["error"]["code"]), (429, &json!("rate_limited")));
    assert!(reply.header("retry-after").is_some());
    for is_enabled in
        [&[("PROXY_RATE_LIMIT_MAX", "1")][..], &[("PROXY_RATE_LIMIT_MAX", "1"), ("PROXY_RATE_LIMIT_ENABLED", "false")]]
    {
        let gateway = ready(is_enabled);
        assert_eq!([gateway.chat(ask("Hi")).0, gateway.chat(ask("Hi")).0], [200, 200]);
    }
}
