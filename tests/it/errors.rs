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

/// What the proxy does not accept in a request of chat, with its messages.
#[test]
fn fields_of_chat_are_checked_with_the_messages_of_the_profile() {
    let server = proxy();
    let format = "response_format.type must be \"text\", \"json_object\", or \"json_schema\" when provided";
    let effort = "reasoning.effort must be one of: low, medium, high, xhigh";
    let tokens = "max_tokens must be a positive integer";
    for (field, value, param, message) in [
        ("n", json!(0), "n", "n must be an integer between 1 and 128; received 0"),
        ("n", json!(1.5), "n", "n must be an integer between 1 and 128; received 1.5"),
        ("n", json!("many"), "n", "n must be an integer between 1 and 128; received many"),
        ("logprobs", json!(true), "logprobs", "logprobs is not supported for this model"),
        ("top_logprobs", json!(2), "top_logprobs", "top_logprobs is not supported"),
        ("response_format", json!({ "type": "x" }), "response_format", format),
        (
            "response_format",
            json!({ "type": "json_schema", "json_schema": 5 }),
            "response_format.json_schema",
            "json_schema must be an object or null when provided",
        ),
        ("seed", json!(1.5), "seed", "seed must be an integer"),
        ("temperature", json!(3), "temperature", "temperature must be between 0 and 2"),
        ("temperature", json!("x"), "temperature", "temperature must be a finite number between 0 and 2"),
        ("top_p", json!(0), "top_p", "top_p must be greater than 0 and at most 1"),
        ("max_tokens", json!(0), "max_tokens", tokens),
        ("maxOutputTokens", json!(0), "max_tokens", tokens),
        ("tools", json!(5), "tools", "tools must be an array of definitions"),
        ("tools", json!([{ "type": "x" }]), "tools[0].type", "tool type must be \"function\""),
        ("tool_choice", json!("required"), "tool_choice", "tool_choice requires tools definitions"),
        (
            "tool_choice",
            json!({ "type": "function" }),
            "tool_choice.function.name",
            "tool_choice.function.name is required",
        ),
        (
            "parallel_tool_calls",
            json!("maybe"),
            "parallel_tool_calls",
            "parallel_tool_calls must be a boolean when provided",
        ),
        ("reasoning", json!(5), "reasoning", "reasoning must be an object when provided"),
        ("reasoning", json!({ "effort": "wild" }), "reasoning.effort", effort),
        ("reasoning_effort", json!("wild"), "reasoning.effort", effort),
        (
            "messages",
            json!([{ "role": "user", "content": "hi" }, { "role": "pirate", "content": "hi" }]),
            "messages[1].role",
            "role must be one of: system, developer, user, assistant, tool, function",
        ),
    ] {
        let reply = server.fetch(with_key(chat("Hello!").with(field, value.clone()).into()));
        let expected = envelope_with("invalid_request_error", "invalid_request_error", message, json!(param));
        assert_eq!(error(&reply), (400, expected), "{field}: {value}");
    }
    // Accepted, although other servers do not accept all of them.
    for (field, value) in [
        ("n", json!("2")),
        ("logprobs", json!(false)),
        ("temperature", json!(2)),
        ("parallel_tool_calls", json!("yes")),
        ("reasoning", json!({ "effort": "xhigh" })),
    ] {
        let reply = server.fetch(with_key(chat("Hello!").with(field, value.clone()).into()));
        assert_eq!(reply.status(), 200, "{field}: {value}: {}", reply.text());
    }
    let two = server.fetch(with_key(chat("Hello!").with("n", "2").into())).json();
    assert_eq!(two["choices"].as_array().unwrap().len(), 2, "{two}");
}

/// What the proxy does not accept in a request of Responses, with its messages.
#[test]
fn fields_of_responses_are_checked_with_the_messages_of_the_profile() {
    let server = proxy();
    let message = |role: &str| json!([{ "type": "message", "role": role, "content": "Hello!" }]);
    let invalid = "invalid_request_error";
    for (field, value, param, code, text) in [
        ("n", json!(2), "n", "n_unsupported", "n must be 1 for /v1/responses; received 2"),
        ("messages", json!([]), "messages", invalid, "messages is not supported for /v1/responses"),
        ("instructions", json!(5), "instructions", invalid, "instructions must be a string"),
        ("input", json!(5), "input", invalid, "input must be a string or an array of items"),
        ("input", json!([{ "type": "wild" }]), "input[0]", invalid, "unsupported input item type"),
        (
            "input",
            message("pirate"),
            "input[0].role",
            invalid,
            "message role must be system, developer, user, or assistant",
        ),
        (
            "input",
            json!([{ "type": "function_call_output", "output": "x" }]),
            "input[0].call_id",
            invalid,
            "call_id is required",
        ),
        ("tools", json!([{ "type": "" }]), "tools[0].type", invalid, "tool type must be a non-empty string"),
    ] {
        let body = with(json!({ "model": "demo", "input": "Hello!" }), field, value.clone());
        let reply = server.fetch(with_key(Request::post(body.to_string()).at("/v1/responses")));
        let expected = envelope_with("invalid_request_error", code, text, json!(param));
        assert_eq!(error(&reply), (400, expected), "{field}: {value}");
    }
    let body = with(json!({ "model": "demo" }), "input", message("developer"));
    assert_eq!(server.fetch(with_key(Request::post(body.to_string()).at("/v1/responses"))).status(), 200);
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
