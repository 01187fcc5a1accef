//! A9: other names of models, values that a model implies, and headers and the query of a backend entry.

use super::{assert_pass, diagnostics};
use crate::support::{MockBackend, MockResponse, Request, TestDir, backend_events, chat, serve_with};
use serde_json::json;

const GATEWAY: &str = r#"
backends:
  cloud:
    use: openai-chat
    url: URL
    api_key: { env: PATH }
    headers: { authorization: null, api-key: "{{ secret.key }}", x-tenant: acme }
    query: { api-version: "2026-01-01", who: "a&b c" }
  gemini: { use: gemini-generate, url: URL }
models:
  - { id: nice, backend: cloud, upstream_model: real-1 }
  - { id: thinker, backend: cloud, upstream_model: real-2, implied: { reasoning_effort: high, max_tokens: 9 } }
  - { match: "or/*", backend: cloud, upstream_model: "vendor/*" }
  - { match: "GPT-*", backend: cloud, ignore_case: true }
  - { id: flash, backend: gemini, upstream_model: gemini-flash }
routes: [ { endpoint: POST /v1/chat/completions, dialect: chat } ]
static_routes:
  - { endpoint: GET /v1/models, body: { ids: { $each: models, as: model, do: "{{ model.id }}" } } }
"#;

#[test]
fn a09_models_have_other_names_at_their_backend() {
    let test = |model: &str, more: &str, sent: &str| {
        format!(
            "  - name: \"{model}{more}\"\n    backend_entry: cloud\n    request: {{ model: {model}, messages: [ {{ role: user, \
             content: Hi }} ]{more} }}\n    expect: {{ sent: {{ body: {sent} }} }}\n"
        )
    };
    let tests = [
        "tests:\n".to_owned(),
        test("nice", "", "{ model: real-1, reasoning_effort: null }"),
        test("thinker", "", "{ model: real-2, reasoning_effort: high, max_completion_tokens: 9 }"),
        test("thinker", ", reasoning_effort: low", "{ model: real-2, reasoning_effort: low }"),
        test("or/deep/seek", "", "{ model: vendor/deep/seek }"),
        test("gpt-4", "", "{ model: gpt-4 }"),
        "  - name: in the path\n    backend_entry: gemini\n    request: { model: flash, messages: [ { role: user, content: \
         Hi } ] }\n    expect: { sent: { path: \"/models/gemini-flash:generateContent\" } }\n"
            .to_owned(),
    ];
    let gateway = GATEWAY.replace("URL", "\"http://127.0.0.1:1/v1\"");
    assert_pass(6, &[("gateway.yaml", &gateway), ("dialects/chat.test.yaml", &tests.concat())]);
}

#[test]
fn a09_an_entry_has_headers_and_a_query() {
    let tests = r#"
tests:
  - name: in place of those of the file, and in addition
    backend_entry: cloud
    request: { model: nice, messages: [ { role: user, content: Hi } ] }
    expect:
      sent:
        path: /chat/completions
        headers: { authorization: null, api-key: API-KEY, x-tenant: acme }
        query: { api-version: "2026-01-01", who: a&b c }
"#;
    let gateway = GATEWAY.replace("URL", "\"http://127.0.0.1:1/v1\"");
    assert_pass(1, &[("gateway.yaml", &gateway), ("dialects/chat.test.yaml", tests)]);
}

#[test]
fn a09_the_server_uses_the_names_and_lists_them() {
    let backend = MockBackend::start(|request| {
        if request.path.starts_with("/v1/models") {
            let models = json!({ "data": [{ "id": "vendor/a" }, { "id": "GPT-x" }, { "id": "other" }] });
            return MockResponse::json(200, &models.to_string());
        }
        let message = json!({ "role": "assistant", "content": "Hello" });
        MockResponse::json(200, &backend_events::completion(&message, "stop").to_string())
    });
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &GATEWAY.replace("URL", &format!("\"{}\"", backend.url())));
    let server = serve_with(dir);
    let reply = server.fetch(chat("Hi").with("model", "or/a"));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let [request] = &backend.requests()[..] else { panic!("{:?}", backend.requests()) };
    assert_eq!(request.json()["model"], "vendor/a");
    assert_eq!(request.path, "/v1/chat/completions?api-version=2026%2D01%2D01&who=a%26b%20c".replace("%2D", "-"));
    assert_eq!((request.header("authorization"), request.header("x-tenant")), (None, Some("acme")));
    assert!(request.header("api-key").is_some());
    let listed = server.fetch(Request::get("/v1/models")).json();
    assert_eq!(listed["ids"], json!(["nice", "thinker", "or/a", "GPT-x", "flash", "demo"]));
    let listing = backend.requests().into_iter().find(|request| request.path.starts_with("/v1/models")).unwrap();
    assert!(listing.path.ends_with("/models?api-version=2026-01-01&who=a%26b%20c"), "{}", listing.path);
    assert_eq!(server.fetch(chat("Hi").with("model", "NICE")).status(), 404);
}

#[test]
fn a09_mistakes_in_models_are_reported() {
    for (right, wrong, message) in [
        ("upstream_model: real-1", "upstream_model: \"real-*\"", "`*` has no meaning here: the model has an `id:`"),
        ("upstream_model: \"vendor/*\"", "upstream_model: \"*/*\"", "a name can have only one `*`"),
        ("reasoning_effort: high", "reasoning_efort: high", "unknown request field `reasoning_efort`"),
        ("max_tokens: 9", "n: 9", "a model cannot imply `n`"),
        ("max_tokens: 9", "max_tokens: nine", "an integer for `max_tokens`"),
        ("api-key: \"{{ secret.key }}\"", "api-key: \"{{ request.user }}\"", "unknown variable `request.user`"),
    ] {
        let gateway = GATEWAY.replace("URL", "\"http://127.0.0.1:1/v1\"").replacen(right, wrong, 1);
        let found = diagnostics(&[("gateway.yaml", &gateway)]);
        assert!(found.contains(message), "{wrong}: {found}");
    }
}
