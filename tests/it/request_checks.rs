//! What requests must meet, with the messages of the profiles `codex-proxy` and `codex-completions-api` (`checks:`).

use crate::support::gateway_with_backend::{TestGateway, assert_contains};
use crate::support::{MockResponse, Request, Server, TestDir, backend_events, chat, serve};
use serde_json::{Value, json};

fn proxy() -> Server {
    serve().args(["--profile", "codex-proxy"]).start()
}

fn with(mut body: Value, member: &str, value: &Value) -> Value {
    body[member] = value.clone();
    body
}

fn responses(body: &Value) -> Request {
    Request::post(body.to_string()).at("/v1/responses")
}

/// The error of a request that must be rejected.
fn rejected(server: &Server, request: Request, what: &str) -> Value {
    let reply = server.fetch(request);
    assert_eq!(reply.status(), 400, "{what}: {}", reply.text());
    reply.json()["error"].clone()
}

fn envelope(code: &str, message: &str, param: &str) -> Value {
    json!({ "message": message, "type": "invalid_request_error", "param": param, "code": code })
}

/// The response of a backend.
fn answer() -> MockResponse {
    let message = json!({ "role": "assistant", "content": "Hi" });
    MockResponse::json(200, &backend_events::completion(&message, "stop").to_string())
}

const INVALID: &str = "invalid_request_error";
const FORMAT: &str = "response_format.type must be \"text\", \"json_object\", or \"json_schema\" when provided";
const NAME: &str = "function definitions must include a non-empty \"name\"";
const CHOICE: &str = "tool_choice must be a string (\"auto\" | \"none\" | \"required\") or { type: \"function\", function: { \
                      name } }";
const CHOICE_WORD: &str = "tool_choice must be \"auto\", \"none\", \"required\", or a function selector";
const UNDECLARED: &str = "tool_choice.function.name must reference a declared tool";
const EFFORT: &str = "reasoning.effort must be one of: low, medium, high, xhigh";

fn function(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

/// Member, value, `param` and message.
type Cases = Vec<(&'static str, Value, &'static str, &'static str)>;

fn assert_rejected(server: &Server, cases: Cases, request: impl Fn(&str, &Value) -> Request) {
    for (member, value, param, message) in cases {
        let what = format!("{member}: {value}");
        let error = rejected(server, request(member, &value), &what);
        assert_eq!(error, envelope(INVALID, message, param), "{what}");
    }
}

#[test]
fn scalars_of_chat_have_the_messages_of_the_profile() {
    let tokens = "max_tokens must be a positive integer";
    let cases = vec![
        ("n", json!(0), "n", "n must be an integer between 1 and 128; received 0"),
        ("n", json!(1.5), "n", "n must be an integer between 1 and 128; received 1.5"),
        ("n", json!("many"), "n", "n must be an integer between 1 and 128; received many"),
        ("logprobs", json!(true), "logprobs", "logprobs is not supported for this model"),
        ("top_logprobs", json!(2), "top_logprobs", "top_logprobs is not supported"),
        ("seed", json!(1.5), "seed", "seed must be an integer"),
        ("temperature", json!(3), "temperature", "temperature must be between 0 and 2"),
        ("temperature", json!("x"), "temperature", "temperature must be a finite number between 0 and 2"),
        ("top_p", json!(0), "top_p", "top_p must be greater than 0 and at most 1"),
        ("top_p", json!("x"), "top_p", "top_p must be a finite number between 0 and 1"),
        ("max_tokens", json!(0), "max_tokens", tokens),
        ("max_completion_tokens", json!("x"), "max_tokens", tokens),
        ("maxOutputTokens", json!(0), "max_tokens", tokens),
        (
            "parallel_tool_calls",
            json!("maybe"),
            "parallel_tool_calls",
            "parallel_tool_calls must be a boolean when provided",
        ),
        ("reasoning", json!(5), "reasoning", "reasoning must be an object when provided"),
        ("reasoning", json!({ "effort": "wild" }), "reasoning.effort", EFFORT),
        ("reasoning_effort", json!("wild"), "reasoning.effort", EFFORT),
        ("reasoningEffort", json!("none"), "reasoning.effort", EFFORT),
    ];
    assert_rejected(&proxy(), cases, |member, value| chat("Hello!").with(member, value.clone()).into());
}

#[test]
fn tools_of_chat_have_the_messages_of_the_profile() {
    let cases = vec![
        ("tools", json!(5), "tools", "tools must be an array of definitions"),
        ("tools", json!([5]), "tools[0]", "tool definition must be an object with type \"function\""),
        ("tools", json!([function("f"), null]), "tools[1]", "tool definition must be an object with type \"function\""),
        ("tools", json!([{}]), "tools[0].type", "tool type must be \"function\""),
        ("tools", json!([{ "type": "x" }]), "tools[0].type", "tool type must be \"function\""),
        ("tools", json!([{ "type": "function" }]), "tools[0].function.name", NAME),
        ("tools", json!([function("f"), function(" ")]), "tools[1].function.name", NAME),
        ("functions", json!(5), "functions", "functions must be an array of function definitions"),
        ("functions", json!([5]), "functions[0]", "function definitions must be objects with name/parameters"),
        ("functions", json!([{}]), "functions[0].name", NAME),
        ("tool_choice", json!("wild"), "tool_choice", CHOICE_WORD),
        ("tool_choice", json!(5), "tool_choice", CHOICE),
        ("tool_choice", json!("required"), "tool_choice", "tool_choice requires tools definitions"),
        ("tool_choice", function("f"), "tool_choice", "tool_choice requires tools definitions"),
        ("tool_choice", json!({ "type": "x" }), "tool_choice.type", "tool_choice.type must be \"function\""),
        (
            "tool_choice",
            json!({ "type": "function" }),
            "tool_choice.function.name",
            "tool_choice.function.name is required",
        ),
    ];
    let server = proxy();
    assert_rejected(&server, cases, |member, value| chat("Hello!").with(member, value.clone()).into());
    let offered = |member: &str, tools: Value, name: &str| {
        Request::from(chat("Hello!").with(member, tools).with("tool_choice", function(name)))
    };
    for (member, tools) in [("tools", json!([function("f")])), ("functions", json!([{ "name": "f" }]))] {
        let error = rejected(&server, offered(member, tools.clone(), "g"), member);
        assert_eq!(error, envelope(INVALID, UNDECLARED, "tool_choice.function.name"), "{member}");
        assert_eq!(server.fetch(offered(member, tools, "f")).status(), 200, "{member}");
    }
}

/// `functions` and `function_call` are older names of the same.
#[test]
fn an_older_choice_must_be_a_declared_function() {
    let server = proxy();
    let chosen = |name: &str| {
        let functions = json!([{ "name": "f" }]);
        Request::from(chat("Hello!").with("functions", functions).with("function_call", json!({ "name": name })))
    };
    assert_eq!(server.fetch(chosen("f")).status(), 200);
    let error = rejected(&server, chosen("g"), "another function");
    assert_eq!(error, envelope(INVALID, UNDECLARED, "tool_choice.function.name"));
}

#[test]
fn roles_and_formats_of_chat_have_the_messages_of_the_profile() {
    let object = "response_format.json_schema.schema must be a JSON object";
    let container = "json_schema must be an object or null when provided";
    let of_schema = |schema: Value| json!({ "type": "json_schema", "json_schema": schema });
    let cases = vec![
        (
            "messages",
            json!([{ "role": "user", "content": "hi" }, { "role": "pirate", "content": "hi" }]),
            "messages[1].role",
            "unsupported role \"pirate\"; supported roles are: system, developer, user, assistant, tool, function",
        ),
        (
            "messages",
            json!([{ "content": "hi" }]),
            "messages[0].role",
            "unsupported role \"\"; supported roles are: system, developer, user, assistant, tool, function",
        ),
        ("response_format", json!(5), "response_format", FORMAT),
        (
            "response_format",
            json!({}),
            "response_format.type",
            "response_format.type must be provided when response_format is set",
        ),
        ("response_format", json!({ "type": "x" }), "response_format", FORMAT),
        ("response_format", json!({ "type": "json_schema" }), "response_format.json_schema", container),
        ("response_format", of_schema(json!(5)), "response_format.json_schema", container),
        (
            "response_format",
            of_schema(json!({ "name": "a", "schema": 5 })),
            "response_format.json_schema.schema",
            object,
        ),
    ];
    assert_rejected(&proxy(), cases, |member, value| chat("Hello!").with(member, value.clone()).into());
}

#[test]
fn responses_have_the_messages_of_the_profile() {
    let message = |content: Value| json!([{ "type": "message", "role": "user", "content": content }]);
    let role = "message role must be system, developer, user, or assistant";
    let image = "input_image.image_url must be a string";
    let kind = "unsupported input item type";
    let cases = vec![
        ("messages", json!([]), "messages", "messages is not supported for /v1/responses"),
        ("instructions", json!(5), "instructions", "instructions must be a string"),
        ("input", json!(5), "input", "input must be a string or an array of items"),
        ("input", json!([5]), "input[0]", "input item must be an object"),
        ("input", json!([{ "type": "wild" }]), "input[0]", kind),
        ("input", json!([{}]), "input[0]", kind),
        ("input", json!([{ "type": "message", "role": "pirate", "content": "x" }]), "input[0].role", role),
        ("input", json!([{ "type": "message", "content": "x" }]), "input[0].role", role),
        ("input", json!([{ "role": "pirate", "content": "x" }]), "input[0].role", role),
        (
            "input",
            json!([{ "type": "function_call_output", "output": "x" }]),
            "input[0].call_id",
            "call_id is required",
        ),
        ("input", message(json!(["x"])), "input[0]", "content item must be an object"),
        ("input", message(json!([{ "type": "wild" }])), "input[0]", kind),
        ("input", message(json!([{ "type": "input_image", "image_url": 5 }])), "input[0]", image),
        ("tools", json!(5), "tools", "tools must be an array of definitions"),
        ("tools", json!([5]), "tools[0]", "tool definition must be an object"),
        ("tools", json!([{}]), "tools[0].type", "tool type must be a non-empty string"),
        ("tools", json!([{ "type": "" }]), "tools[0].type", "tool type must be a non-empty string"),
        ("tools", json!([{ "type": "function" }]), "tools[0].function.name", NAME),
        ("tools", json!([{ "type": "function", "function": {} }]), "tools[0].function.name", NAME),
        ("tool_choice", json!("wild"), "tool_choice", CHOICE_WORD),
        ("tool_choice", json!(true), "tool_choice", CHOICE),
        ("tool_choice", json!({ "name": "f" }), "tool_choice", "tool_choice requires tools definitions"),
        ("tool_choice", json!({ "type": "mcp" }), "tool_choice.type", "tool_choice.type must be \"function\""),
        ("reasoning", json!(5), "reasoning", "reasoning must be an object when provided"),
        ("reasoning", json!({ "effort": "wild" }), "reasoning.effort", EFFORT),
    ];
    let server = proxy();
    let body = json!({ "model": "demo", "input": "Hello!" });
    assert_rejected(&server, cases, |member, value| responses(&with(body.clone(), member, value)));
    let error = rejected(&server, responses(&with(body.clone(), "n", &json!(2))), "n");
    assert_eq!(error, envelope("n_unsupported", "n must be 1 for /v1/responses; received 2", "n"));
    // A tool of either API, and a choice of it.
    for tool in [function("f"), json!({ "type": "function", "name": "f" }), json!({ "name": "f" })] {
        let body = with(body.clone(), "tools", &json!([tool]));
        for choice in [function("f"), json!({ "type": "function", "name": "f" })] {
            let reply = server.fetch(responses(&with(body.clone(), "tool_choice", &choice)));
            assert_eq!(reply.status(), 200, "{tool} {choice}: {}", reply.text());
        }
        for choice in [function("g"), json!({ "type": "function", "name": "g" })] {
            let error = rejected(&server, responses(&with(body.clone(), "tool_choice", &choice)), "another tool");
            assert_eq!(error, envelope(INVALID, UNDECLARED, "tool_choice.function.name"), "{tool} {choice}");
        }
    }
}

/// Some values that other servers reject.
#[test]
fn values_that_the_profile_accepts() {
    let server = proxy();
    for (member, value) in [
        ("n", json!("2")),
        ("logprobs", json!(false)),
        ("temperature", json!(2)),
        ("parallel_tool_calls", json!("Yes")),
        ("reasoning", json!({ "effort": "xhigh" })),
        ("tools", Value::Null),
        ("tools", json!([])),
        ("tool_choice", json!("auto")),
        ("response_format", Value::Null),
    ] {
        let reply = server.fetch(chat("Hello!").with(member, value.clone()));
        assert_eq!(reply.status(), 200, "{member}: {value}: {}", reply.text());
    }
    let two = server.fetch(chat("Hello!").with("n", "2")).json();
    assert_eq!(two["choices"].as_array().unwrap().len(), 2, "{two}");
    let items = json!([{ "role": "developer", "content": [{ "type": "input_text", "text": "Hello!" }] }]);
    for input in [items, json!([])] {
        let reply = server.fetch(responses(&json!({ "model": "demo", "input": input })));
        assert_eq!(reply.status(), 200, "{input}: {}", reply.text());
    }
}

/// The effort is sent in lower case, from each of its places.
#[test]
fn an_effort_may_be_in_any_case() {
    for profile in ["codex-proxy", "codex-completions-api"] {
        let gateway = TestGateway::start("openai-chat", profile, TestDir::empty());
        for (at, member, value) in [
            ("chat", "reasoning", json!({ "effort": "HIGH" })),
            ("chat", "reasoning_effort", json!(" High ")),
            ("chat", "reasoningEffort", json!("hiGH")),
            ("responses", "reasoning", json!({ "effort": "HIGH" })),
            ("responses", "reasoning_effort", json!("High")),
        ] {
            let model = format!("{at}-{member}");
            let base = match at {
                "chat" => json!({ "model": model, "messages": [{ "role": "user", "content": "Hello!" }] }),
                _ => json!({ "model": model, "input": "Hello!" }),
            };
            let path = if at == "chat" { "/v1/chat/completions" } else { "/v1/responses" };
            let request = Request::post(with(base, member, &value).to_string()).at(path);
            let reply = gateway.fetch(&model, answer(), request);
            assert_eq!(reply.status(), 200, "{profile} {member}: {}", reply.text());
            let sent = &gateway.requests_for(&model)[0];
            assert_eq!(sent["reasoning_effort"], "high", "{profile} {at} {member}: {value}");
        }
    }
}

/// Input without items is no request: to an adapter over chat it has no messages.
#[test]
fn an_empty_input_is_rejected() {
    let required = |body: Value, profile: &str| {
        let server = serve().args(["--backend", "openai-chat=http://127.0.0.1:1", "--profile", profile]).start();
        rejected(&server, responses(&body), profile)
    };
    for body in [json!({ "model": "m", "input": [] }), json!({ "model": "m" }), json!({ "model": "m", "messages": [] })]
    {
        let error = required(body.clone(), "codex-completions-api");
        assert_eq!(error, envelope(INVALID, "messages[] required", "messages"), "{body}");
    }
    let error = required(json!({ "model": "m", "input": [] }), "openai");
    assert_eq!((&error["param"], &error["code"]), (&json!("input"), &json!("invalid_value")), "{error}");
    assert_eq!(error["message"], "`input` must have at least 1 item");
}

/// The older proxy is an adapter over chat: it also reads messages.
#[test]
fn responses_of_the_older_profile_read_messages() {
    let gateway = TestGateway::start("openai-chat", "codex-completions-api", TestDir::empty());
    let messages = json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hello!" }]);
    let body = json!({ "model": "m", "messages": messages });
    let reply = gateway.fetch("m", answer(), responses(&body));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_contains(&json!({ "messages": messages }), &gateway.requests_for("m")[0]);
}
