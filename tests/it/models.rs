//! Models: names of clients and of backends, what a model implies, and which name a response has.

use crate::support::gateway_with_backend::dialect_request;
use crate::support::{MockBackend, MockResponse, Request, Server, TestDir, backend_events, chat, serve};
use serde_json::{Value, json};

/// A gateway with these models, and the requests that its backend gets.
fn gateway(models: &str, profile: &str) -> (Server, MockBackend) {
    let body = backend_events::chat_stream(&["Hi"]);
    let backend = MockBackend::start(move |_| MockResponse::sse_raw(&body));
    let dir = TestDir::empty();
    let backends = format!("backends: {{ far: {{ use: openai-chat, url: \"{}\" }} }}\n", backend.url());
    dir.write("layer/gateway.yaml", &format!("{backends}models:\n  $replace:\n{models}\n"));
    (serve().args(["--profile", profile]).add(dir).start(), backend)
}

const MODELS: &str = "    - { id: fast, backend: far, upstream_model: gpt-4o-mini }
    - { id: gpt-5, backend: far, upstream_model: gpt-5.2 }
    - { id: gpt-5.2-XH, backend: far, upstream_model: gpt-5.2, ignore_case: true, implied: { reasoning_effort: xhigh } }
    - { id: secret, backend: far, listed: false }
    - { match: \"or/*\", backend: far, upstream_model: \"*\" }";

fn sent(backend: &MockBackend) -> Value {
    backend.requests().iter().rev().find(|request| request.method == "POST").unwrap().json()
}

#[test]
fn aliases_and_prefixes_are_sent_as_the_names_of_the_backend() {
    let (server, backend) = gateway(MODELS, "openai");
    for (requested, upstream) in [
        ("fast", "gpt-4o-mini"),
        ("gpt-5", "gpt-5.2"),
        ("gpt-5.2-XH", "gpt-5.2"),
        ("GPT-5.2-xh", "gpt-5.2"),
        ("secret", "secret"),
        ("or/vendor/model:8b", "vendor/model:8b"),
    ] {
        assert_eq!(server.fetch(dialect_request("chat", requested, false)).status(), 200, "{requested}");
        assert_eq!(sent(&backend)["model"], upstream, "{requested}");
    }
    for unknown in ["FAST", "gpt-5.3", "or", ""] {
        let reply = server.fetch(dialect_request("chat", unknown, false));
        assert_eq!(
            (reply.status(), reply.json()["error"]["code"].clone()),
            (404, json!("model_not_found")),
            "{unknown}"
        );
    }
}

#[test]
fn a_model_may_imply_an_effort_and_the_client_has_precedence() {
    let (server, backend) = gateway(MODELS, "openai");
    server.fetch(dialect_request("chat", "gpt-5.2-xh", false));
    assert_eq!(sent(&backend)["reasoning_effort"], "xhigh");
    server.fetch(chat("Hello!").with("model", "gpt-5.2-xh").with("reasoning_effort", "low"));
    assert_eq!(sent(&backend)["reasoning_effort"], "low");
}

/// Under `codex-proxy`, chat requests may have the effort in three places.
#[test]
fn the_effort_may_be_in_several_places() {
    let (server, backend) = gateway(MODELS, "codex-proxy");
    for (field, value) in [
        ("reasoning", json!({ "effort": "high" })),
        ("reasoning_effort", json!("high")),
        ("reasoningEffort", json!("high")),
    ] {
        assert_eq!(server.fetch(chat("Hello!").with("model", "gpt-5.2-xh").with(field, value)).status(), 200);
        assert_eq!(sent(&backend)["reasoning_effort"], "high", "{field}");
    }
}

#[test]
fn the_list_has_the_names_for_clients() {
    let (server, _backend) = gateway(MODELS, "openai");
    let listed = server.fetch(Request::get("/v1/models")).json();
    let ids: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["fast", "gpt-5", "gpt-5.2-XH"]);
    for path in ["/v1/models/or/vendor/model", "/v1/models/or%2Fvendor%2Fmodel"] {
        assert_eq!(server.fetch(Request::get(path)).json()["id"], "or/vendor/model");
    }
    assert_eq!(server.fetch(Request::get("/v1/models/secret")).status(), 200);
    assert_eq!(server.fetch(Request::get("/v1/models/other")).status(), 404);
}

/// The policy `model_echo`.
#[test]
fn a_response_has_the_model_that_the_policy_selects() {
    for (policy, expected) in
        [("effective", "reported-by-backend"), ("requested", "GPT-5.2-xH"), ("requested_lower", "gpt-5.2-xh")]
    {
        let mut body = backend_events::completion(&json!({ "role": "assistant", "content": "Hi" }), "stop");
        body["model"] = json!("reported-by-backend");
        let dir = TestDir::empty();
        let route = |path: &str, dialect: &str| {
            format!("  - {{ endpoint: POST {path}, dialect: {dialect}, policies: {{ model_echo: {policy} }} }}\n")
        };
        let routes = [
            route("/v1/chat/completions", "chat"),
            route("/v1/responses", "responses"),
            route("/v1/completions", "completions"),
        ];
        dir.write("layer/gateway.yaml", &format!("routes:\n{}", routes.concat()));
        let backend = MockBackend::start(move |_| MockResponse::json(200, &body.to_string()));
        let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
        for dialect in ["chat", "responses", "completions"] {
            let reply = server.fetch(dialect_request(dialect, "GPT-5.2-xH", false));
            assert_eq!(reply.json()["model"], expected, "{policy} {dialect}");
        }
    }
}
