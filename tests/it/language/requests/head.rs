//! A6, A17, A19: what is read of a client's request besides its body.

use super::{assert_pass, diagnostics};
use crate::support::{MockBackend, MockResponse, Request, Server, TestDir, backend_events, chat, serve};
use serde_json::json;

/// The model is in the path, whether to stream too, and the user in a header.
const DIALECT: &str = r#"
dialect: paths
request:
  model: path.model
  user: { from: [ headers.x-user, query.user ], default: nobody }
  items:
    - { emit: [ message: { role: user, text: $.text } ] }
stream:
  framing: { data: json }
  frames: { text.delta: { text: { data: { text: "{{ text }}" } } }, turn.fail: {} }
  order: { item: text.delta* }
body: { text: "{{ turn.choices[0].text }}", model: "{{ request.model }}", user: "{{ request.user }}" }
errors: { message: "{{ fault.message }}", param: "{{ fault.param }}" }
"#;

const GATEWAY: &str = r#"
backends:
  local: { use: openai-chat, url: "URL", forward_headers: [ X-Trace, user-agent ] }
models: [ { match: "vendor/*", backend: local }, { id: fixed, backend: local } ]
routes:
  - { endpoint: "POST /v1beta/models/{model}:generate", dialect: paths, set: { stream: false } }
  - { endpoint: "POST /v1beta/models/{model}:stream", dialect: paths, set: { stream: true } }
  - { endpoint: POST /v1/chat/completions, dialect: chat, set: { model: fixed, max_tokens: 7 } }
static_routes:
  - endpoint: "GET /about/{what}"
    body: { what: "{{ path.what }}", q: "{{ query.q }}", agent: "{{ headers.user-agent }}", all: "{{ headers }}" }
api_keys:
  - { name: one, secret: { env: KEY_ONE } }
  - { name: two, secret: { env: KEY_TWO }, headers: [ X-API-Key, authorization ], query: key }
"#;

fn gateway(url: &str) -> String {
    // A name with a dash is read with brackets.
    GATEWAY.replace("URL", url).replace("headers.user-agent", "headers['user-agent']")
}

fn start(backend: &MockBackend, gateway: &str) -> Server {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &gateway.replace("URL", &backend.url()));
    dir.write("layer/dialects/paths.yaml", DIALECT);
    serve().add(dir).env("KEY_ONE", "the-first-key").env("KEY_TWO", "the-second-key").start()
}

fn backend() -> MockBackend {
    MockBackend::start(|_| {
        let message = json!({ "role": "assistant", "content": "Hello" });
        MockResponse::json(200, &backend_events::completion(&message, "stop").to_string())
    })
}

fn post(path: &str, body: &str) -> Request {
    Request::post(body).at(path).header("content-type", "application/json")
}

const BEARER: (&str, &str) = ("authorization", "Bearer the-first-key");

#[test]
fn a06_the_model_is_in_the_path_and_the_route_decides_about_streams() {
    let backend = backend();
    let server = start(&backend, &gateway("URL"));
    let fetch =
        |path: &str| server.fetch(post(path, r#"{"text":"Hi"}"#).header(BEARER.0, BEARER.1).header("x-user", "me"));
    let reply = fetch("/v1beta/models/vendor%2Fa:b:generate");
    assert_eq!(reply.json(), json!({ "text": "Hello", "model": "vendor/a:b", "user": "me" }), "{}", reply.text());
    let reply = fetch("/v1beta/models/vendor%2Fa:stream");
    assert!(reply.header("content-type").unwrap().starts_with("text/event-stream"), "{}", reply.text());
    let [body, stream] = &backend.requests()[..] else { panic!() };
    assert_eq!((&body.json()["model"], &body.json()["user"]), (&json!("vendor/a:b"), &json!("me")));
    assert_eq!(stream.json()["stream"], json!(true));
    let reply = fetch("/v1beta/models/unknown:generate");
    assert_eq!((reply.status(), &reply.json()["param"]), (404, &json!("model")));
    // What a route sets does not depend on the client.
    let chat = chat("Hi").with("model", "other").with("max_tokens", 99).header(BEARER.0, BEARER.1);
    assert_eq!(server.fetch(chat).status(), 200);
    let sent = backend.requests().pop().unwrap().json();
    assert_eq!((&sent["model"], &sent["max_completion_tokens"]), (&json!("fixed"), &json!(7)));
}

#[test]
fn a06_mappings_test_what_they_read_of_the_path() {
    let tests = r#"
tests:
  - name: the path and a header
    path: { model: m-1 }
    headers: { X-User: me }
    query: { user: you }
    request: { text: Hi }
    expect: { request: { model: m-1, user: me } }
  - name: only the query
    path: { model: m-1 }
    query: { user: you }
    request: { text: Hi }
    expect: { request: { user: you } }
  - name: nothing
    path: { model: m-1 }
    request: { text: Hi }
    expect: { request: { user: nobody } }
"#;
    assert_pass(3, &[("dialects/paths.yaml", DIALECT), ("dialects/paths.test.yaml", tests)]);
}

#[test]
fn a06_mistakes_in_paths_are_reported() {
    let gateway = gateway("http://127.0.0.1:1/v1");
    for (right, wrong, message) in [
        ("models/{model}:generate", "models/{modell}:generate", "reads `path.model`, which this path does not have"),
        ("models/{model}:generate", "models/generate", "add `{model}` to the path"),
        ("set: { stream: false }", "set: { stream: never }", "a boolean for `stream`"),
        ("set: { stream: false }", "set: { streams: false }", "unknown request field `streams`"),
    ] {
        let gateway = gateway.replacen(right, wrong, 1);
        let found = diagnostics(&[("gateway.yaml", &gateway), ("dialects/paths.yaml", DIALECT)]);
        assert!(found.contains(message), "{wrong}: {found}");
    }
    // Only the scalars of a request read it.
    let dialect = DIALECT.replace("text: $.text", "text: { from: path.model }");
    let found = diagnostics(&[("gateway.yaml", &gateway), ("dialects/paths.yaml", &dialect)]);
    assert!(found.contains("`path.model` can only be read by the scalars"), "{found}");
}

#[test]
fn a17_keys_are_accepted_in_the_places_that_are_listed() {
    let backend = backend();
    let server = start(&backend, &gateway("URL"));
    let status = |path: &str, header: Option<(&str, &str)>| {
        let request = Request::get(path);
        server.fetch(header.map_or(request.clone(), |(name, value)| request.header(name, value))).status()
    };
    let about = "/about/x";
    for (expected, path, header) in [
        (200, about, Some(("authorization", "Bearer the-first-key"))),
        (200, about, Some(("Authorization", "bearer the-second-key"))),
        (200, about, Some(("x-api-key", "the-second-key"))),
        (200, "/about/x?key=the-second-key", None),
        (200, "/about/x?key=the%2Dsecond%2Dkey", None),
        (401, about, None),
        (401, about, Some(("x-api-key", "the-first-key"))),
        (401, about, Some(("x-api-key", "Bearer the-second-key"))),
        (401, about, Some(("x-goog-api-key", "the-second-key"))),
        (401, "/about/x?key=the-first-key", None),
        (401, "/about/x?key=", None),
        (401, "/about/x?other=the-second-key", None),
    ] {
        assert_eq!(status(path, header), expected, "{path} {header:?}");
    }
    // No response and no log line repeats a key.
    let reply = server.fetch(Request::get("/about/x?key=the-second-key&q=1").header("x-api-key", "the-second-key"));
    assert!(!reply.text().contains("the-second-key"), "{}", reply.text());
    assert!(!server.wait_for_log("responded").contains("the-second-key"));
    let document = server.fetch(Request::get("/openapi.json")).json();
    let schemes = &document["components"]["securitySchemes"];
    assert_eq!(schemes["bearer"]["scheme"], "bearer");
    assert_eq!(schemes["x-api-key"], json!({ "type": "apiKey", "in": "header", "name": "x-api-key" }));
    assert_eq!(schemes["query_key"]["in"], "query");
}

#[test]
fn a17_the_message_names_the_places() {
    let backend = backend();
    let gateway =
        gateway("URL").replace("  - { name: one, secret: { env: KEY_ONE } }\n", "").replace(", authorization", "");
    let server = start(&backend, &gateway);
    let reply = server.fetch(Request::get("/about/x").header(BEARER.0, BEARER.1));
    assert_eq!(reply.status(), 401);
    let message = "an API key is required in the header `x-api-key` or the query parameter `key`";
    assert!(reply.text().contains(message), "{}", reply.text());
}

#[test]
fn a19_headers_are_forwarded_by_name() {
    let backend = backend();
    let server = start(&backend, &gateway("URL"));
    let request = chat("Hi").header(BEARER.0, BEARER.1).header("x-trace", "abc").header("x-other", "no");
    assert_eq!(server.fetch(request.header("user-agent", "mine/1")).status(), 200);
    let request = backend.requests().pop().unwrap();
    let sent = ["x-trace", "user-agent", "x-other", "authorization"].map(|name| request.header(name));
    assert_eq!(sent, [Some("abc"), Some("mine/1"), None, None]);
    let tests = r#"
tests:
  - name: one of two
    backend_entry: local
    dialect: chat
    headers: { X-Trace: abc, X-Other: no }
    request: { model: fixed, messages: [ { role: user, content: Hi } ] }
    expect: { sent: { headers: { x-trace: abc, x-other: null } } }
"#;
    let gateway = self::gateway("http://127.0.0.1:1/v1");
    let files = [("gateway.yaml", &*gateway), ("dialects/paths.yaml", DIALECT), ("dialects/chat.test.yaml", tests)];
    assert_pass(1, &files);
    for (wrong, message) in [
        ("content-length", "the header `content-length` cannot be forwarded"),
        ("Authorization", "the header `authorization` carries the API keys of this gateway"),
        ("x-api-key", "the header `x-api-key` carries the API keys of this gateway"),
        ("a b", "`a b` is not a valid header name"),
    ] {
        let gateway = gateway.replace("X-Trace", wrong);
        let found = diagnostics(&[("gateway.yaml", &gateway), ("dialects/paths.yaml", DIALECT)]);
        assert!(found.contains(message), "{wrong}: {found}");
    }
}

#[test]
fn a19_static_routes_see_the_request() {
    let backend = backend();
    let server = start(&backend, &gateway("URL"));
    let request = Request::get("/about/a%20b?q=1&q=2").header(BEARER.0, BEARER.1).header("user-agent", "mine/1");
    let reply = server.fetch(request.header("cookie", "secret=1")).json();
    assert_eq!((&reply["what"], &reply["q"], &reply["agent"]), (&json!("a b"), &json!("1"), &json!("mine/1")));
    assert!(!reply.to_string().contains("the-first-key") && !reply.to_string().contains("secret=1"), "{reply}");
}
