//! The shipped profiles: their gateway settings, the variables of the environment, and edits while the server runs.

use crate::support::{ChatRequest, Request, TestDir, chat, eventually, serve};
use serde_json::{Value, json};

fn explain(variables: &[(&str, &str)], profile: &str) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_reframe"));
    command.args(["explain", "--policies", "--route", "/v1/chat/completions", "--profile", profile]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_environment_sets_the_gateway() {
    let variables = [
        ("PROXY_SSE_KEEPALIVE_MS", "0"),
        ("PROXY_TIMEOUT_MS", "1500"),
        ("PROXY_SSE_MAX_CONCURRENCY", "7"),
        ("PROXY_CORS_ALLOWED_ORIGINS", "https://a.example, https://b.example"),
        ("PROXY_ENABLE_RESPONSES", "no"),
        ("PROXY_OUTPT_MODE", "x"),
    ];
    let text = explain(&variables, "codex-proxy");
    for (setting, variable) in [
        ("keepalive.every", "PROXY_SSE_KEEPALIVE_MS"),
        ("timeouts.overall, timeouts.stream", "PROXY_TIMEOUT_MS"),
        ("limits.streams", "PROXY_SSE_MAX_CONCURRENCY"),
        ("cors.origins", "PROXY_CORS_ALLOWED_ORIGINS"),
    ] {
        let line = text.lines().find(|line| line.starts_with(setting)).unwrap_or_else(|| panic!("{setting}\n{text}"));
        assert!(line.contains(variable), "{line}");
    }
    assert!(text.contains("no profile names the environment variable `PROXY_OUTPT_MODE`; did you mean"), "{text}");

    let launch = variables
        .iter()
        .fold(serve().args(["--profile", "codex-proxy"]), |launch, (name, value)| launch.env(name, value));
    let server = launch.start();
    let post = |path: &str| server.fetch(Request::post(r#"{"model":"demo","input":"Hi"}"#).at(path)).status();
    assert_eq!(post("/v1/responses"), 404, "PROXY_ENABLE_RESPONSES=no removes the route");
    let origin = |origin: &str| {
        let reply = server.fetch(Request::get("/v1/models").header("origin", origin));
        reply.header("access-control-allow-origin").map(str::to_owned)
    };
    assert_eq!(origin("https://b.example").as_deref(), Some("https://b.example"));
    assert_eq!(origin("https://c.example"), None);
}

#[test]
fn a_gateway_section_counts_only_on_the_command_line() {
    let dir = TestDir::empty();
    let route = "{ endpoint: POST /v1/chat/completions, dialect: chat, profile: codex-proxy }";
    dir.write("layer/gateway.yaml", &format!("routes: [ {route} ]\n"));
    let by_route = serve().add(dir).env("PROXY_ENABLE_RESPONSES", "no").start();
    let request = || Request::post(r#"{"model":"demo","input":"Hi"}"#).at("/v1/responses");
    assert_eq!(by_route.fetch(request()).status(), 200);
    let by_flag = serve().args(["--profile", "codex-proxy"]).env("PROXY_ENABLE_RESPONSES", "no").start();
    assert_eq!(by_flag.fetch(request()).status(), 404);
}

#[test]
fn a_wrong_value_of_a_variable_is_reported_at_its_line() {
    let text = explain(&[("PROXY_TIMEOUT_MS", "soon")], "codex-proxy");
    assert!(text.contains("error[") && text.contains("codex-proxy.yaml"), "{text}");
}

/// A file, a text in it and the text that replaces it on the same line, and what the next answers must have.
type OneLineEdit = (&'static str, &'static str, &'static str, fn(&Answers) -> bool);

/// What clients get that ask for the weather.
struct Answers {
    chat: String,
    chat_body: Value,
    /// Without tools.
    greeting: Value,
    responses: String,
    responses_body: Value,
}

const ROUTE: &str = "dialect: responses, profile: openai";

const EDITS: &[OneLineEdit] = &[
    ("profiles/openai.yaml", "usage: as_reported", "usage: zeros", |a| a.chat_body["usage"].is_object()),
    (
        "gateway.yaml",
        ROUTE,
        "dialect: responses, policies: { output_index: message_first, empty_message_item: always, reasoning: drop }",
        |a| a.responses_body["output"][0]["type"] == "message",
    ),
    ("dialects/chat.yaml", "    stop: stop", "    stop: length", |a| {
        a.greeting["choices"][0]["finish_reason"] == "length"
    }),
    (
        "profiles/openai.yaml",
        "profile: openai",
        "profile: openai\nrename_fields: { responses: { created_at: created } }",
        |a| a.responses_body["created"].is_number() && a.responses.contains("\"created\":"),
    ),
    ("profiles/openai.yaml", "tool_arguments: incremental", "tool_arguments: cumulative", |a| {
        a.chat.contains(r#""arguments":"{\"city\":\"Paris\"}""#)
    }),
    ("profiles/openai.yaml", "output_index: position", "terminator: typed", |a| {
        a.responses.trim_end().ends_with("event: done\ndata: [DONE]")
    }),
    ("profiles/openai.yaml", "output_index: position", "role_content: { chat: omitted }", |a| {
        a.chat.contains(r#""delta":{"role":"assistant"}"#)
    }),
    ("shared.yaml", "    max_tokens: length", "    max_tokens: length\n    made_calls: tool_calls", |a| {
        a.chat_body["choices"][0]["finish_reason"] == "tool_calls"
    }),
    ("profiles/openai.yaml", "output_index: position", "finish_debug: field", |a| {
        a.responses_body["_proxy"]["finish_reason"] == "tool_calls"
            && a.greeting["_proxy"]["finish_reason"] == "stop"
            && a.responses.contains("\"_proxy\":{\"finish_reason\":\"tool_calls\"}")
    }),
    ("profiles/openai.yaml", "output_index: position", "reasoning: drop", |a| !a.responses.contains("reasoning_text")),
];

/// Each edit is one line in one file while the server runs, and the next answers are valid.
#[test]
fn one_line_edits_change_the_next_answer() {
    let tools = json!([{ "type": "function", "function": { "name": "get_weather" } }]);
    let flat = json!([{ "type": "function", "name": "get_weather", "parameters": {} }]);
    for (file, old, new, holds) in EDITS {
        let dir = TestDir::shipped();
        dir.edit("mappings/scripts/demo.yaml", "pace: { fixed: 5 }", "pace: none");
        let server = serve().in_folder(&dir.path("")).start();
        let number = || server.fetch(Request::get("/openapi.json")).json()["info"]["x-generation"]["number"].clone();
        let before = number();
        dir.edit(&format!("mappings/{file}"), old, new);
        eventually("the next generation", || (number() != before).then_some(()));
        let chat = |request: ChatRequest| server.fetch(request.with("tools", tools.clone()));
        let responses = |stream: bool| {
            let body = json!({ "model": "demo", "input": "The weather?", "stream": stream, "tools": flat });
            server.fetch(Request::post(body.to_string()).at("/v1/responses"))
        };
        let answers = Answers {
            chat: chat(self::chat("The weather?").streamed()).text(),
            chat_body: chat(self::chat("The weather?")).json(),
            greeting: server.fetch(self::chat("Hello!")).json(),
            responses: responses(true).text(),
            responses_body: responses(false).json(),
        };
        assert!(holds(&answers), "{file}: {new}\n{}\n{}", answers.chat, answers.responses);
        assert!(answers.responses.contains("response.completed"), "{file}: {new}\n{}", answers.responses);
    }
}
