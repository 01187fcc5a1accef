//! Endpoints: which methods each has, health, CORS headers, requests for a WebSocket.

use crate::support::{Reply, Request, TestDir, chat, demo, repo, serve, serve_with};
use serde_json::json;
use std::io::{Read, Write};

const ROUTES: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/completions"];

#[test]
fn options_needs_no_key_and_lists_the_methods() {
    let server = serve().env("REFRAME_API_KEY", "the-right-key").start();
    for path in ROUTES {
        let reply = server.fetch(Request::new("OPTIONS", path));
        assert_eq!((reply.status(), reply.header("allow")), (204, Some("POST,HEAD,OPTIONS")), "{path}");
        assert!(reply.header("x-request-id").is_some());
    }
    for path in ["/v1/models", "/v1/models/demo", "/healthz", "/metrics", "/status"] {
        let reply = server.fetch(Request::new("OPTIONS", path));
        assert_eq!((reply.status(), reply.header("allow")), (204, Some("GET,HEAD,OPTIONS")), "{path}");
    }
    for path in ["/docs", "/openapi.json", "/schemas"] {
        let reply = server.fetch(Request::new("OPTIONS", path));
        assert_eq!((reply.status(), reply.header("allow")), (204, Some("GET,HEAD,OPTIONS")), "{path}");
    }
    let unknown = server.fetch(Request::new("OPTIONS", "/nowhere"));
    assert_eq!((unknown.status(), &unknown.json()["error"]["code"]), (404, &json!("unknown_url")));
}

/// As OpenAI does. The proxy that `codex-completions-api` takes the place of serves the list there too: drop_in.rs.
#[test]
fn the_list_of_models_with_a_slash_at_the_end_is_an_unknown_path() {
    let reply = demo().fetch(Request::get("/v1/models/"));
    assert_eq!((reply.status(), &reply.json()["error"]["code"]), (404, &json!("unknown_url")));
}

#[test]
fn a_stream_is_not_kept_alive_if_its_connection_ends() {
    let head = |request: &[u8]| {
        let mut client = demo().client();
        client.send_bytes(request);
        let mut text = String::new();
        client.into_inner().read_to_string(&mut text).unwrap();
        text.split("\r\n\r\n").next().unwrap().to_owned()
    };
    let request = Request::from(chat("Hello!").streamed().header("connection", "Close"));
    let closed = head(&request.to_bytes());
    assert!(closed.contains("\r\nconnection: close"), "{closed}");
    let old = String::from_utf8(request.to_bytes()).unwrap().replace("HTTP/1.1", "HTTP/1.0");
    for text in [old.clone(), old.replace("connection: Close\r\n", "")] {
        let old = head(text.as_bytes());
        assert!(old.starts_with("HTTP/1.0 200") && !old.contains("keep-alive"), "{old}");
    }
    let kept = demo().client().stream(chat("Hello!").streamed());
    assert_eq!(kept.head.header("connection"), Some("keep-alive"));
}

/// Every response is counted, also those that start no turn. Clients cannot create labels.
#[test]
fn refused_requests_are_counted_by_route_and_status() {
    let dir = TestDir::empty();
    let keys = "api_keys:\n  - { name: narrow, secret: { env: NARROW_KEY }, routes: [ /v1/models* ] }\n";
    dir.write("layer/gateway.yaml", keys);
    let launch = serve().env("REFRAME_API_KEY", "the-right-key").env("NARROW_KEY", "the-narrow-key");
    let server = launch.add(dir).start();
    let with_key = |request: Request, key: &str| server.fetch(request.header("x-api-key", key)).status();
    assert_eq!(server.fetch(chat("Hello!")).status(), 401);
    assert_eq!(with_key(chat("Hello!").header("authorization", "Bearer the-narrow-key").into(), "none"), 403);
    assert_eq!(with_key(Request::new("DELETE", "/v1/chat/completions"), "the-right-key"), 405);
    assert_eq!(with_key(Request::new("BREW", "/nothing"), "the-right-key"), 404);
    let metrics = server.fetch(Request::get("/metrics").header("x-api-key", "the-right-key")).text();
    let other = "reframe_http_responses_total{route=\"other\",method=\"other\",status=\"404\"} 1\n";
    assert!(metrics.contains(other), "{metrics}");
    for (method, status) in [("POST", 401), ("POST", 403), ("DELETE", 405)] {
        let labels = format!("route=\"/v1/chat/completions\",method=\"{method}\",status=\"{status}\"");
        let counted = format!("reframe_http_responses_total{{{labels}}} 1\n");
        assert!(metrics.contains(&counted), "{status}: {metrics}");
    }
}

#[test]
fn head_at_a_route_needs_a_key_and_starts_no_turn() {
    let server = serve().env("REFRAME_API_KEY", "the-right-key").start();
    for path in ROUTES {
        let refused = server.fetch(Request::new("HEAD", path));
        assert_eq!(refused.status(), 401, "{path}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"api\""));
        let reply = server.fetch(Request::new("HEAD", path).header("authorization", "Bearer the-right-key"));
        assert_eq!((reply.status(), reply.header("content-type")), (200, Some("application/json; charset=utf-8")));
    }
    let metrics = server.fetch(Request::get("/metrics").header("x-api-key", "the-right-key")).text();
    assert!(!metrics.contains("reframe_turns_total{"), "{metrics}");
}

#[test]
fn a_wrong_method_is_an_error_in_the_dialect_of_the_route() {
    for path in ROUTES {
        let reply = demo().fetch(Request::new("DELETE", path));
        assert_eq!((reply.status(), reply.header("allow")), (405, Some("POST,HEAD,OPTIONS")));
        assert_eq!(reply.json()["error"]["message"], format!("{path} does not allow DELETE"));
    }
}

#[test]
fn a_request_for_a_websocket_is_426_where_the_route_declares_it() {
    let websocket = |path: &str| {
        let request = Request::get(path).header("connection", "Upgrade").header("upgrade", "websocket");
        demo().fetch(
            request.header("sec-websocket-version", "13").header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        )
    };
    let reply = websocket("/v1/responses");
    assert_eq!((reply.status(), reply.header("upgrade")), (426, Some("HTTP/1.1")));
    assert_eq!(reply.header("connection"), Some("upgrade"));
    assert_eq!(reply.json()["error"]["message"], "/v1/responses does not serve WebSockets");
    assert_eq!(websocket("/v1/chat/completions").status(), 405);
    assert_eq!(demo().fetch(Request::get("/v1/responses")).status(), 405, "without `Upgrade` it is a wrong method");
    // It is not a way around the key.
    let server = serve().env("REFRAME_API_KEY", "the-right-key").start();
    assert_eq!(server.fetch(Request::get("/v1/responses").header("upgrade", "websocket")).status(), 401);
}

// ---- health

#[test]
fn health_needs_no_key() {
    let server = serve().env("REFRAME_API_KEY", "the-right-key").start();
    let healthy = json!({ "ok": true, "draining": false, "backends": [{ "name": "demo", "ready": true }] });
    for (path, body) in [("/livez", json!({ "ok": true })), ("/readyz", healthy.clone()), ("/healthz", healthy)] {
        let reply = server.fetch(Request::get(path));
        assert_eq!((reply.status(), reply.json()), (200, body), "{path}");
        assert_eq!(server.fetch(Request::new("HEAD", path)).status(), 200);
        assert_eq!(server.fetch(Request::new("POST", path)).status(), 405);
    }
}

#[test]
fn a_static_route_may_have_a_status_and_headers() {
    let routes = "static_routes:\n  - endpoint: GET /teapot\n    status: \"{{ 418 if query.tea else 503 }}\"\n    headers: { cache-control: \"public, max-age=60\", x-tea: \"{{ query.tea }}\" }\n    body: { ready: \"{{ health.ready }}\" }\n";
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", routes);
    let server = serve_with(dir);
    let reply = server.fetch(Request::get("/teapot?tea=green"));
    assert_eq!((reply.status(), reply.header("x-tea")), (418, Some("green")));
    assert_eq!(reply.header("cache-control"), Some("public, max-age=60"));
    let reply = server.fetch(Request::get("/teapot"));
    assert_eq!((reply.status(), reply.header("x-tea"), reply.json()), (503, None, json!({ "ready": true })));
}

// ---- CORS

const PAGE: &str = "https://page.example";
const VARY: &str = "Access-Control-Request-Headers, Access-Control-Request-Method";

fn assert_allowed(reply: &Reply, what: &str) {
    assert_eq!(reply.header("access-control-allow-origin"), Some(PAGE), "{what}");
    assert_eq!(reply.header("access-control-allow-credentials"), Some("true"), "{what}");
    assert_eq!(reply.header("vary"), Some(&*format!("Origin, {VARY}")), "{what}");
    assert_eq!(reply.header("access-control-allow-methods"), Some("GET, POST, HEAD, OPTIONS"), "{what}");
    assert_eq!(reply.header("access-control-max-age"), Some("600"), "{what}");
    let exposed = reply.header("access-control-expose-headers").unwrap();
    assert!(exposed.starts_with("content-type, x-request-id"), "{what}");
    for name in
        ["limit", "remaining", "reset"].iter().flat_map(|kind| ["requests", "tokens"].map(|of| format!("{kind}-{of}")))
    {
        assert!(exposed.split(", ").any(|header| header == format!("x-ratelimit-{name}")), "{what}: {name}: {exposed}");
    }
    assert!(reply.header("access-control-allow-headers").unwrap().starts_with("authorization, content-type"), "{what}");
}

#[test]
fn every_response_to_a_page_has_cors_headers() {
    let server = serve().env("REFRAME_API_KEY", "the-right-key").start();
    let with_key = |request: Request| request.header("authorization", "Bearer the-right-key").header("origin", PAGE);
    for (what, status, request) in [
        ("a body", 200, with_key(chat("Hello!").into())),
        ("a stream", 200, with_key(chat("Hello!").streamed().into())),
        ("an invalid request", 400, with_key(Request::post("{"))),
        ("a request without a key", 401, Request::from(chat("Hello!")).header("origin", PAGE)),
        ("an unknown model", 404, with_key(chat("Hello!").with("model", "other").into())),
        ("an unknown path", 404, with_key(Request::get("/nowhere"))),
        ("a wrong method", 405, with_key(Request::get("/v1/chat/completions"))),
        ("HEAD", 200, with_key(Request::new("HEAD", "/v1/responses"))),
        ("the models", 200, with_key(Request::get("/v1/models"))),
        ("health", 200, Request::get("/healthz").header("origin", PAGE)),
    ] {
        let reply = server.fetch(request);
        assert_eq!(reply.status(), status, "{what}");
        assert_allowed(&reply, what);
    }
    let docs = server.fetch(Request::get("/openapi.json").header("origin", PAGE));
    assert_eq!((docs.status(), docs.header("access-control-allow-origin")), (200, Some("*")));
}

#[test]
fn a_preflight_request_gets_the_headers_that_it_asks_for() {
    let server = serve().env("REFRAME_API_KEY", "the-right-key").start();
    let preflight = Request::new("OPTIONS", "/v1/responses").header("origin", PAGE);
    let reply = server.fetch(preflight.clone());
    assert_eq!(reply.status(), 204);
    assert_allowed(&reply, "a preflight request");
    let preflight = preflight.header("access-control-request-headers", "X-Mine, authorization");
    let reply = server.fetch(preflight.header("access-control-request-method", "POST"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("X-Mine, authorization"));
}

#[test]
fn without_an_origin_all_may_read_and_no_credentials_are_allowed() {
    let reply = demo().fetch(Request::get("/v1/models"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    assert_eq!(reply.header("vary"), Some(VARY));
}

#[test]
fn other_origins_than_those_listed_get_no_cors_headers() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "cors: { origins: [ \"https://page.example\", \"http://localhost:3000\" ] }\n");
    let server = serve().env("REFRAME_API_KEY", "the-right-key").add(dir).start();
    let reply = |origin: &str| server.fetch(Request::get("/healthz").header("origin", origin));
    assert_allowed(&reply(PAGE), "listed");
    for origin in ["http://localhost:5173", "HTTP://LOCALHOST"] {
        assert_eq!(reply(origin).header("access-control-allow-origin"), Some(origin));
    }
    for origin in ["https://other.example", "null", "https://page.example.evil.example"] {
        let reply = reply(origin);
        assert_eq!(reply.header("vary"), Some(&*format!("Origin, {VARY}")));
        let cors = reply.head.headers.iter().filter(|(name, _)| name.starts_with("access-control-"));
        assert_eq!(cors.count(), 0, "{origin}");
    }
    assert_eq!(server.fetch(Request::get("/healthz")).header("access-control-allow-origin"), None);
}

#[test]
fn cors_can_be_turned_off() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "cors: $remove\n");
    let server = serve_with(dir);
    let reply = server.fetch(Request::get("/v1/models").header("origin", "http://localhost:1"));
    assert_eq!((reply.status(), reply.header("vary"), reply.header("access-control-allow-origin")), (200, None, None));
}

/// HTTP/1 has a reason for every status, and 529 is not registered.
#[test]
fn a_status_that_is_not_registered_has_a_reason() {
    let dir = TestDir::empty();
    let route =
        |path: &str, status: u16| format!("  - {{ endpoint: GET {path}, open: true, status: {status}, body: {{}} }}\n");
    let routes = [route("/busy", 529), route("/odd", 499), route("/known", 503)].concat();
    dir.write("layer/gateway.yaml", &format!("static_routes:\n{routes}"));
    let server = serve_with(dir);
    for (path, line) in [
        ("/busy", "HTTP/1.1 529 Server Error\r\n"),
        ("/odd", "HTTP/1.1 499 Client Error\r\n"),
        ("/known", "HTTP/1.1 503 Service Unavailable\r\n"),
    ] {
        let mut socket = std::net::TcpStream::connect(server.addr()).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with(line), "{reply}");
    }
}

/// Every line of the page names a test that exists.
#[test]
fn the_page_about_http_names_existing_tests() {
    let page = repo("docs/http.md");
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| behaviour")) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        if cell == "test" {
            continue;
        }
        let mut file = String::new();
        for word in cell.split_whitespace() {
            match word.trim_end_matches(',').trim_matches('`') {
                path if path.starts_with("tests/") => file = repo(path),
                path if path.ends_with(".rs") => file = module(path),
                test => {
                    assert!(file.contains(&format!("fn {test}()")), "no test `{test}` for: {row}");
                    named += 1;
                }
            }
        }
        assert!(!file.is_empty(), "no test for: {row}");
    }
    assert!(named > 100, "{named}");
}

/// A module of the integration tests, with the modules below it.
fn module(file: &str) -> String {
    let mut text = repo(&format!("tests/it/{file}"));
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(file.trim_end_matches(".rs"));
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        text += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    text
}
