//! Authentication at every endpoint: where a key may be sent, what it allows, and with which keys the server starts.

use crate::support::{Launch, Reply, Request, Server, TestDir, chat, eventually, serve};
use serde_json::{Value, json};
use std::time::Duration;

const KEY: &str = "sk-the-right-key";
const WRONG: &str = "sk-another-key";

fn server() -> Server {
    serve().env("REFRAME_API_KEY", KEY).start()
}

/// Every endpoint that needs a key, with a request that succeeds with it.
fn protected() -> Vec<(Request, u16)> {
    let post =
        |path: &str, body: Value| Request::post(body.to_string()).at(path).header("content-type", "application/json");
    vec![
        (chat("Hello!").into(), 200),
        (chat("Hello!").streamed().into(), 200),
        (post("/v1/responses", json!({ "model": "demo", "input": "Hello!" })), 200),
        (post("/v1/completions", json!({ "model": "demo", "prompt": "Hello!" })), 200),
        (Request::new("HEAD", "/v1/chat/completions"), 200),
        (Request::new("HEAD", "/v1/responses"), 200),
        (Request::new("HEAD", "/v1/completions"), 200),
        (Request::get("/v1/chat/completions"), 405),
        (Request::get("/v1/models"), 200),
        (Request::new("HEAD", "/v1/models"), 200),
        (Request::get("/v1/models/demo"), 200),
        (Request::get("/v1/models/other"), 404),
        (Request::get("/metrics"), 200),
        (Request::get("/status"), 200),
    ]
}

#[test]
fn every_endpoint_accepts_a_key_in_every_form() {
    let server = server();
    let forms = |key: &str| {
        [
            ("authorization", format!("Bearer {key}")),
            ("authorization", format!("bearer {key}")),
            ("authorization", format!("BEARER   {key} ")),
            ("x-api-key", key.to_owned()),
            ("api-key", key.to_owned()),
            ("x-goog-api-key", key.to_owned()),
        ]
    };
    for (request, status) in protected() {
        let what = format!("{} {}", request.method, request.path);
        assert_refused(&server.fetch(request.clone()), &request, &what);
        for (name, value) in forms(KEY) {
            let reply = server.fetch(request.clone().header(name, &value));
            assert_eq!(reply.status(), status, "{what} with {name}: {value}");
        }
        for (name, value) in forms(WRONG).into_iter().chain([
            ("authorization", KEY.to_owned()),
            ("authorization", format!("Basic {KEY}")),
            ("authorization", "Bearer ".to_owned()),
            ("x-api-key", String::new()),
            ("x-api-key", format!("Bearer {KEY}")),
            ("cookie", format!("authorization=Bearer {KEY}")),
        ]) {
            assert_refused(
                &server.fetch(request.clone().header(name, &value)),
                &request,
                &format!("{what}: {name}: {value}"),
            );
        }
    }
}

/// `query:` of a key, for clients that cannot send headers.
#[test]
fn a_key_may_be_sent_in_the_query_where_the_gateway_allows_it() {
    let dir = TestDir::empty();
    let keys = "[ { name: default, secret: { env: REFRAME_API_KEY }, headers: [ authorization ], query: key } ]";
    dir.write("layer/gateway.yaml", &format!("api_keys: {keys}\n"));
    let server = serve().env("REFRAME_API_KEY", KEY).add(dir).start();
    let in_query = |request: &Request, query: &str| request.clone().at(&format!("{}?{query}", request.path));
    for (request, status) in protected() {
        let what = format!("{} {}", request.method, request.path);
        for query in [format!("key={KEY}"), format!("a=1&key={KEY}"), format!("key={}", KEY.replace('-', "%2D"))] {
            assert_eq!(server.fetch(in_query(&request, &query)).status(), status, "{what}?{query}");
        }
        for query in [format!("key={WRONG}"), "key=".to_owned(), format!("other={KEY}"), format!("KEY={KEY}")] {
            assert_refused(&server.fetch(in_query(&request, &query)), &request, &format!("{what}?{query}"));
        }
        let reply = server.fetch(request.clone().header("authorization", &format!("Bearer {KEY}")));
        assert_eq!(reply.status(), status, "{what} with a header");
    }
    assert!(!server.log().contains(KEY), "{}", server.log());
    // Without `query:` there is no such place.
    assert_eq!(self::server().fetch(Request::get(&format!("/v1/models?key={KEY}"))).status(), 401);
}

fn assert_refused(reply: &Reply, request: &Request, what: &str) {
    assert_eq!(reply.status(), 401, "{what}");
    assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"api\""), "{what}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{what}");
    assert!(reply.header("x-request-id").is_some(), "{what}");
    if request.method != "HEAD" {
        let error = reply.json()["error"].clone();
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("invalid_request_error"), &json!("invalid_api_key")),
            "{what}"
        );
        assert_eq!(error["param"], Value::Null);
        assert!(!error["message"].as_str().unwrap().contains("sk-"), "{what}");
    }
}

#[test]
fn health_and_documentation_need_no_key() {
    let server = server();
    for path in [
        "/healthz",
        "/readyz",
        "/livez",
        "/docs",
        "/openapi.json",
        "/openapi.yaml",
        "/schemas/",
        "/schemas/chat/body.json",
    ] {
        assert_eq!(server.fetch(Request::get(path)).status(), 200, "{path}");
        assert_eq!(server.fetch(Request::get(path).header("authorization", "Bearer wrong")).status(), 200, "{path}");
    }
}

#[test]
fn models_metrics_and_status_can_be_opened() {
    for (setting, paths) in [
        ("protect_models: false", &["/v1/models", "/v1/models/demo"][..]),
        ("protect_metrics: false", &["/metrics"]),
        ("protect_status: false", &["/status"]),
    ] {
        let dir = TestDir::empty();
        dir.write("layer/gateway.yaml", setting);
        let server = serve().env("REFRAME_API_KEY", KEY).add(dir).start();
        for path in ["/v1/models", "/v1/models/demo", "/metrics", "/status"] {
            let status = if paths.contains(&path) { 200 } else { 401 };
            assert_eq!(server.fetch(Request::get(path)).status(), status, "{setting}: {path}");
        }
        assert_eq!(server.fetch(chat("Hello!")).status(), 401);
    }
}

/// Local: over a loopback address, without a proxy between, under a local name, and no web page of another host.
#[test]
fn metrics_can_need_a_key_for_remote_clients_alone() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "protect_metrics: remote");
    let server = serve().env("REFRAME_API_KEY", KEY).add(dir).start();
    assert_eq!(server.fetch(Request::get("/metrics")).status(), 200);
    for (name, value) in [
        ("x-forwarded-for", "192.0.2.7"),
        ("forwarded", "for=192.0.2.7"),
        ("host", "attacker.example"),
        ("origin", "https://attacker.example"),
    ] {
        let request = || Request::get("/metrics").header(name, value);
        assert_eq!(server.fetch(request()).status(), 401, "{name}");
        let with_key = request().header("authorization", &format!("Bearer {KEY}"));
        assert_eq!(server.fetch(with_key).status(), 200, "{name}");
    }
    assert_eq!(server.fetch(Request::get("/status")).status(), 401);
}

// ---- what a key allows

/// A server with three keys: one for everything, one for some models and endpoints, one with a limit.
fn with_scopes() -> Server {
    let dir = TestDir::empty();
    dir.write(
        "layer/gateway.yaml",
        "models:
  - { id: team/a, backend: demo }
  - { id: team/b, backend: demo }
api_keys:
  - name: team
    secret: { env: TEAM_KEY }
    models: [ team/*, nothing ]
    routes: [ /v1/chat/completions, /v1/models* ]
",
    );
    serve().env("REFRAME_API_KEY", KEY).env("TEAM_KEY", "sk-team-key").add(dir).start()
}

fn with_team_key(request: impl Into<Request>) -> Request {
    request.into().header("authorization", "Bearer sk-team-key")
}

#[test]
fn a_key_allows_only_its_models() {
    let server = with_scopes();
    assert_eq!(server.fetch(with_team_key(chat("Hello!").with("model", "team/a"))).status(), 200);
    let refused = server.fetch(with_team_key(chat("Hello!")));
    assert_eq!((refused.status(), refused.json()["error"]["code"].clone()), (404, json!("model_not_found")));
    // As for a model that does not exist.
    let unknown = server.fetch(with_team_key(chat("Hello!").with("model", "team-less")));
    assert_eq!(unknown.json()["error"]["message"], "the model `team-less` does not exist");
    assert_eq!(refused.json()["error"]["message"], "the model `demo` does not exist");
    let ids = |key: &str| -> Vec<String> {
        let listed = server.fetch(Request::get("/v1/models").header("x-api-key", key)).json();
        listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    };
    // The key of a layer has the headers that the layer names: by default `authorization`.
    let listed = server.fetch(with_team_key(Request::get("/v1/models"))).json();
    assert_eq!(listed["data"][0]["id"], "team/a");
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    assert_eq!(ids(KEY), ["team/a", "team/b", "demo"]);
    assert_eq!(server.fetch(with_team_key(Request::get("/v1/models/team%2Fb"))).status(), 200);
    assert_eq!(server.fetch(with_team_key(Request::get("/v1/models/demo"))).status(), 404);
}

#[test]
fn a_key_allows_only_its_endpoints() {
    let server = with_scopes();
    let body = json!({ "model": "team/a", "input": "Hello!" }).to_string();
    let refused = server.fetch(with_team_key(Request::post(body).at("/v1/responses")));
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.json()["error"]["message"], "this API key does not allow /v1/responses");
    for path in ["/status", "/metrics"] {
        assert_eq!(server.fetch(with_team_key(Request::get(path))).status(), 403, "{path}");
    }
    assert_eq!(server.fetch(with_team_key(Request::get("/healthz"))).status(), 200);
}

// ---- keys of the process

#[test]
fn beyond_this_machine_the_server_needs_a_key_of_its_own() {
    let start = |key: &str| {
        let launch = Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).env("REFRAME_API_KEY", key);
        launch.run_with_timeout()
    };
    for (key, why) in [
        ("", "no API key is configured"),
        ("  ", "no API key is configured"),
        ("short-1", "the API key `default` has fewer than 8 characters"),
        ("changeme", "everybody knows the value of the API key `default`"),
        ("PassWord", "everybody knows the value of the API key `default`"),
        ("codex-local-secret", "everybody knows the value of the API key `default`"),
    ] {
        let exit = start(key);
        assert_eq!(exit.code, Some(2), "{key}: {exit:?}");
        assert!(exit.stderr.contains(why), "{key}: {}", exit.stderr);
        assert!(key.trim().is_empty() || !exit.stderr.contains(key), "the key is in the output: {}", exit.stderr);
    }
}

#[test]
fn a_changed_key_file_is_read_again_without_a_reload() {
    let dir = TestDir::empty();
    dir.write("key", "sk-first-key");
    let path = dir.path("key").display().to_string();
    dir.write("layer/gateway.yaml", &format!("api_keys: [ {{ name: default, secret: {{ file: {path:?} }} }} ]\n"));
    let key_file = dir.path("key");
    let server = serve().add(dir).start();
    let status =
        |key: &str| server.fetch(Request::get("/v1/models").header("authorization", &format!("Bearer {key}"))).status();
    assert_eq!((status("sk-first-key"), status("sk-second-longer-key")), (200, 401));
    std::fs::write(&key_file, "sk-second-longer-key\n").unwrap();
    eventually("the new key is accepted", || {
        std::thread::sleep(Duration::from_millis(20));
        (status("sk-second-longer-key") == 200).then_some(())
    });
    assert_eq!(status("sk-first-key"), 401, "the old key is not accepted any more");
}

#[test]
fn a_key_file_that_changes_to_a_key_that_can_be_guessed_keeps_the_old_key() {
    let dir = TestDir::empty();
    dir.write("key", "sk-a-long-first-key");
    let path = dir.path("key").display().to_string();
    dir.write("layer/gateway.yaml", &format!("api_keys: [ {{ name: default, secret: {{ file: {path:?} }} }} ]\n"));
    let key_file = dir.path("key");
    let server = Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).add(dir).start();
    let status =
        |key: &str| server.fetch(Request::get("/v1/models").header("authorization", &format!("Bearer {key}"))).status();
    for (count, weak) in ["short", "codex-local-secret"].into_iter().enumerate() {
        std::fs::write(&key_file, weak).unwrap();
        eventually("the new key is refused", || {
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!((status("sk-a-long-first-key"), status(weak)), (200, 401));
            let refused = server.log().matches("can be guessed and is not used").count();
            (refused > count).then_some(())
        });
    }
}
