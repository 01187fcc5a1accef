//! Errors as clients see them: status, headers and envelope of each kind, in the profile `openai` and in `codex-proxy`.

use crate::support::gateway_with_backend::{TestGateway, dialect_request};
use crate::support::{
    Gate, MockBackend, MockResponse, RefusingPort, Reply, Request, Server, TestDir, backend_events, chat, serve,
};
use serde_json::{Value, json};

const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

/// The status and the error of a reply, which must have a request id.
fn error(reply: &Reply) -> (u16, Value) {
    let id = reply.header("x-request-id").unwrap_or_default();
    assert_eq!(id.len(), 32, "{}", reply.text());
    assert!(reply.header("openai-processing-ms").is_some_and(|ms| ms.parse::<u64>().is_ok()));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json();
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    (reply.status(), body["error"].clone())
}

fn envelope(kind: &str, code: &str, message: &str) -> Value {
    json!({ "message": message, "type": kind, "code": code })
}

/// The same, with a field at fault; null if it is the whole body.
fn envelope_with(kind: &str, code: &str, message: &str, param: Value) -> Value {
    json!({ "message": message, "type": kind, "code": code, "param": param })
}

/// A server with the profile `codex-proxy` and a key.
fn proxy() -> Server {
    serve().args(["--profile", "codex-proxy"]).env("REFRAME_API_KEY", "sk-the-right-key").start()
}

fn with_key(request: Request) -> Request {
    request.header("authorization", "Bearer sk-the-right-key")
}

#[test]
fn a_missing_key_has_the_envelope_of_the_profile() {
    let server = proxy();
    for dialect in DIALECTS {
        let reply = server.fetch(dialect_request(dialect, "demo", false));
        assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=api"), "{dialect}");
        let expected = envelope("authentication_error", "invalid_api_key", "unauthorized");
        assert_eq!(error(&reply), (401, expected), "{dialect}");
    }
}

#[test]
fn rejected_requests_have_the_codes_of_the_profile() {
    let server = proxy();
    let of_model = |model: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
        body["model"] = model;
        Request::post(body.to_string())
    };
    let with_param = |mut error: Value, param: &str| {
        error["param"] = json!(param);
        error
    };
    let invalid = |code: &str, message: &str| envelope("invalid_request_error", code, message);
    let missing_model = json!({ "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    let unknown = "The model no/body does not exist or you do not have access to it.";
    for (request, status, expected) in [
        (Request::post("{"), 400, envelope_with("invalid_request_error", "invalid_json", "Invalid JSON", Value::Null)),
        (Request::post(missing_model), 400, with_param(invalid("model_required", "model is required"), "model")),
        (of_model(json!(7)), 400, with_param(invalid("model_required", "model is required"), "model")),
        (of_model(json!(" ")), 400, with_param(invalid("model_required", "model is required"), "model")),
        (of_model(json!("no/body")), 404, with_param(invalid("model_not_found", unknown), "model")),
        (
            chat("").with("messages", json!([])).into(),
            400,
            with_param(invalid("invalid_request_error", "messages[] required"), "messages"),
        ),
    ] {
        assert_eq!(error(&server.fetch(with_key(request))), (status, expected));
    }
    let reply = server.fetch(with_key(Request::get("/v1/chat/completions")));
    let message = "/v1/chat/completions does not allow GET";
    assert_eq!(error(&reply), (405, invalid("invalid_request_error", message)));
    for body in [json!({}), json!({ "prompt": [] }), json!({ "prompt": "" })] {
        let body = with(body, "model", json!("demo")).to_string();
        let reply = server.fetch(with_key(Request::post(body).at("/v1/completions")));
        assert_eq!(error(&reply), (400, with_param(invalid("invalid_request_error", "prompt required"), "prompt")));
    }
}

fn with(mut body: Value, member: &str, value: Value) -> Value {
    body[member] = value;
    body
}

#[test]
fn a_large_body_has_the_code_of_the_profile() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "limits: { body_bytes: 1KiB }\n");
    let server = serve().args(["--profile", "codex-proxy"]).add(dir).start();
    let (code, message) = ("request_entity_too_large", "Request body too large");
    let expected = envelope_with("invalid_request_error", code, message, Value::Null);
    assert_eq!(error(&server.fetch(Request::post(" ".repeat(2000)))), (413, expected));
}

#[test]
fn limits_have_the_codes_of_the_profile() {
    let server = |limits: &str| {
        let dir = TestDir::empty();
        dir.write("layer/gateway.yaml", &format!("limits: {limits}\n"));
        serve().args(["--profile", "codex-proxy"]).add(dir).start()
    };
    let rates = server("{ requests_per_minute: 1 }");
    rates.fetch(chat("Hello!"));
    let reply = rates.fetch(chat("Hello!"));
    assert!(reply.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok()));
    assert_eq!(error(&reply), (429, envelope("rate_limit_error", "rate_limited", "rate limit exceeded")));

    let slots = server("{ streams: 1 }");
    let mut held = slots.client().stream(chat("Hello!").streamed());
    held.next_message().unwrap();
    let reply = slots.fetch(chat("Hello!").streamed());
    assert_eq!(reply.header("retry-after"), Some("1"));
    let expected = envelope("rate_limit_error", "concurrency_exceeded", "too many concurrent streams");
    assert_eq!(error(&reply), (429, expected));

    let tokens = server("{ request_tokens: 2 }");
    let mut expected = envelope("tokens_exceeded_error", "context_length_exceeded", "context length exceeded");
    expected["param"] = json!("messages");
    assert_eq!(error(&tokens.fetch(chat("A prompt with several tokens."))), (403, expected));
}

#[test]
fn an_unknown_encoding_and_a_wrong_n_have_the_codes_of_the_profile() {
    let server = proxy();
    let reply = server.fetch(with_key(Request::from(chat("Hello!")).header("content-encoding", "br")));
    let (code, message) = ("unsupported_encoding", "Unsupported encoding");
    let expected = envelope_with("invalid_request_error", code, message, Value::Null);
    assert_eq!(error(&reply), (415, expected));
    for n in [json!(0), json!("many"), json!(1.5)] {
        let (status, error) = error(&server.fetch(with_key(chat("Hello!").with("n", n).into())));
        assert_eq!((status, &error["param"]), (400, &json!("n")), "{error}");
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("invalid_request_error"), &json!("invalid_request_error"))
        );
    }
}

/// What a backend reports is matched by its status, its code and its text.
#[test]
fn errors_of_a_backend_are_matched_by_their_text() {
    let gateway = TestGateway::start("openai-chat", "codex-proxy", TestDir::empty());
    let failed = |model: &str, status: u16, backend_error: Value| {
        let answer = MockResponse::json(status, &json!({ "error": backend_error }).to_string());
        let (status, error) = error(&gateway.fetch(model, answer, dialect_request("chat", model, false)));
        (status, error["type"].as_str().unwrap().to_owned(), error["code"].as_str().unwrap().to_owned())
    };
    let expected = |status: u16, kind: &str, code: &str| (status, kind.to_owned(), code.to_owned());
    let of = |message: &str, code: Value| json!({ "message": message, "code": code });
    assert_eq!(
        failed("auth", 500, of("Authentication required: log in", Value::Null)),
        expected(401, "authentication_error", "invalid_api_key")
    );
    assert_eq!(
        failed("limit", 500, of("later", json!("usageLimitExceeded"))),
        expected(429, "rate_limit_error", "rate_limit_exceeded")
    );
    assert_eq!(
        failed("context", 500, of("too long", json!("ContextWindowExceeded"))),
        expected(400, "invalid_request_error", "context_length_exceeded")
    );
    assert_eq!(
        failed("sandbox", 500, of("no", json!("sandboxError"))),
        expected(400, "invalid_request_error", "sandbox_error")
    );
    assert_eq!(
        failed("rpc", 500, of("bad", json!("-32602"))),
        expected(400, "invalid_request_error", "invalid_request_error")
    );
    assert_eq!(
        failed("status429", 429, of("slow down", Value::Null)),
        expected(429, "rate_limit_error", "rate_limit_exceeded")
    );
    assert_eq!(failed("status503", 503, of("down", Value::Null)), expected(503, "server_error", "upstream_error"));
    assert_eq!(failed("status422", 422, of("no", Value::Null)), expected(422, "invalid_request_error", "bad_request"));
}

#[test]
fn a_backend_that_cannot_be_reached_is_retryable() {
    let nobody = RefusingPort::start();
    let at = format!("openai-chat={}", nobody.url());
    let server = serve().args(["--backend", &at, "--profile", "codex-proxy"]).start();
    for stream in [false, true] {
        let (status, error) = error(&server.fetch(dialect_request("chat", "m", stream)));
        assert_eq!((status, &error["type"], &error["code"]), (502, &json!("server_error"), &json!("backend_error")));
        assert_eq!(error["retryable"], true);
    }
}

/// The policy `timeout_code`.
#[test]
fn a_timeout_has_the_code_of_its_policy() {
    for (profile, policy, kind, code) in [
        ("openai", None, "server_error", "timeout"),
        ("codex-proxy", None, "timeout_error", "timeout_error"),
        ("codex-proxy", Some("by_limit"), "timeout_error", "idle_timeout"),
        ("openai", Some("timeout_error"), "server_error", "timeout_error"),
    ] {
        let gate = Gate::default();
        let held = gate.clone();
        let backend = MockBackend::start(move |_| MockResponse::sse(&[]).wait(&held));
        let dir = TestDir::empty();
        let policies = policy.map_or(String::new(), |policy| format!(", policies: {{ timeout_code: {policy} }}"));
        let route = format!("{{ endpoint: POST /v1/chat/completions, dialect: chat, profile: {profile}{policies} }}");
        dir.write("layer/gateway.yaml", &format!("timeouts: {{ first_event: 50ms }}\nroutes: [ {route} ]\n"));
        let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
        let (status, error) = error(&server.fetch(dialect_request("chat", "m", false)));
        assert_eq!((status, &error["type"], &error["code"]), (504, &json!(kind), &json!(code)), "{profile} {policy:?}");
        gate.open();
    }
}

/// The policy `terminator_after_failure`.
#[test]
fn a_failure_is_followed_by_the_terminator_if_the_policy_has_it() {
    for (profile, dialect, ends_with_terminator) in [
        ("openai", "chat", false),
        ("openai", "completions", false),
        ("openai", "responses", true),
        ("codex-proxy", "chat", true),
        ("codex-proxy", "completions", true),
        ("codex-proxy", "responses", true),
    ] {
        let word = backend_events::word("One").to_string();
        let failure = json!({ "error": { "message": "no power", "code": "dark" } }).to_string();
        let backend = MockBackend::start(move |_| MockResponse::sse(&[&word, &failure]));
        let at = format!("openai-chat={}", backend.url());
        let server = serve().args(["--backend", &at, "--profile", profile]).start();
        let text = server.fetch(dialect_request(dialect, "m", true)).text();
        assert!(text.contains("no power"), "{profile} {dialect}: {text}");
        assert_eq!(text.trim_end().ends_with("data: [DONE]"), ends_with_terminator, "{profile} {dialect}: {text}");
    }
}

#[test]
fn retry_after_of_a_backend_is_passed_on() {
    let gateway = TestGateway::start("openai-chat", "openai", TestDir::empty());
    let body = json!({ "error": { "message": "slow down", "code": "rate_limit_exceeded" } }).to_string();
    let answer = MockResponse::json(429, &body).header("retry-after", "7");
    let reply = gateway.fetch("m", answer, dialect_request("responses", "m", true));
    assert_eq!((reply.status(), reply.header("retry-after")), (429, Some("7")));
    assert_eq!(error(&reply).1["code"], "rate_limit_exceeded");
    assert_eq!(error(&reply).1["type"], "rate_limit_error");
}
