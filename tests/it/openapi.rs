//! The OpenAPI document: generated from the active mappings, current in the repository, and served.

use crate::support::{Reply, Request, Server, TestDir, demo, eventually, repo, serve};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

fn get(server: &Server, path: &str) -> Reply {
    server.client().fetch(Request::get(path))
}

fn document(server: &Server) -> Value {
    get(server, "/openapi.json").json()
}

#[test]
fn the_file_in_the_repository_is_current() {
    let root = env!("CARGO_MANIFEST_DIR");
    let run =
        Command::new(env!("CARGO_BIN_EXE_reframe")).args(["openapi", "--check"]).current_dir(root).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn a_stale_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_reframe")).args(arguments).current_dir(folder.path()).output().unwrap()
    };
    assert_eq!(run(&["openapi", "--check"]).status.code(), Some(2), "there is no file");
    assert_eq!(run(&["openapi", "--write"]).status.code(), Some(0));
    assert_eq!(run(&["openapi", "--check"]).status.code(), Some(0));
    let file = folder.path().join("openapi/openapi.json");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("3.1.0", "3.0.0")).unwrap();
    let stale = run(&["openapi", "--check"]);
    assert_eq!(stale.status.code(), Some(1));
    let output = String::from_utf8(stale.stderr).unwrap();
    assert!(output.contains("run `reframe openapi --write`"), "{output}");
}

#[test]
fn the_server_serves_its_openapi_document() {
    let server = serve().start();
    let document = document(&server);
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["x-generation"]["number"], 1);
    assert_eq!(document["info"]["x-generation"]["hash"].as_str().unwrap().len(), 16);
    for (path, kinds) in [("/v1/chat/completions", 2), ("/v1/responses", 24), ("/v1/completions", 2)] {
        let operation = &document["paths"][path]["post"];
        let body_schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let request = resolve(&document, body_schema["$ref"].as_str().unwrap());
        assert_eq!(request["properties"]["stream"]["default"], false, "{path}: left out, `stream` means JSON");
        let contents = &operation["responses"]["200"]["content"];
        assert!(contents["application/json"]["schema"]["$ref"].is_string(), "{path}");
        assert_eq!(contents["text/event-stream"]["schema"]["type"], "string", "a stream is not one object");
        let events = contents["text/event-stream"]["x-item-schema"]["anyOf"].as_array().unwrap();
        assert!(events.len() >= kinds, "{path}: {} kinds of events", events.len());
        for status in ["400", "401", "404", "413", "429", "500", "502", "503", "504"] {
            let error = &operation["responses"][status]["content"]["application/json"]["schema"];
            assert!(error["$ref"].is_string(), "{path} {status}");
        }
        assert!(operation["responses"]["429"]["headers"]["retry-after"].is_object());
        assert!(operation["responses"]["200"]["headers"]["x-request-id"].is_object());
    }
    for (path, content_type) in [
        ("/v1/models", "application/json"),
        ("/v1/models/{model}", "application/json"),
        ("/status", "application/json"),
        ("/metrics", "text/plain"),
        ("/metrics", "application/openmetrics-text"),
        ("/schemas/", "application/json"),
    ] {
        let schema = &document["paths"][path]["get"]["responses"]["200"]["content"][content_type]["schema"];
        assert!(schema["$ref"].is_string(), "{path}: {schema}");
    }
    for path in ["/openapi.json", "/openapi.yaml", "/docs", "/schemas/{folder}/{file}", "/"] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
    // Client generators do not look into `$defs` of components.
    assert!(!document.to_string().contains("$defs"));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let mut references = Vec::new();
    references_in(&document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        assert!(!resolve(&document, &reference).is_null(), "{reference} leads nowhere");
    }
}

/// The document reflects what a profile renames, drops and adds.
#[test]
fn the_texts_of_an_operation_name_the_members_of_its_dialect() {
    let document = demo().fetch(Request::get("/openapi.json")).json();
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/completions"] {
        let operation = &document["paths"][path]["post"];
        let description = |status: &str| operation["responses"][status]["description"].as_str().unwrap();
        assert_eq!(description("200"), "The response: JSON, or a stream if the request has `stream: true`.", "{path}");
        assert_eq!(description("400"), "Invalid request; `param` names the field.", "{path}");
        assert!(operation["summary"].as_str().is_some_and(|summary| summary.len() > 5), "{path}");
        assert!(operation["description"].as_str().unwrap().starts_with("Dialect `"), "{path}");
        let retry = &operation["responses"]["503"]["headers"]["retry-after"];
        assert_eq!(retry["description"], "Seconds to wait before a retry.");
    }
}

#[test]
fn a_profile_is_reflected_in_the_document() {
    let server = serve().args(["--profile", "codex-proxy"]).start();
    let document = document(&server);
    let operation = &document["paths"]["/v1/responses"]["post"];
    let body = &operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(body, "#/components/schemas/responses-v2.body");
    let schema = resolve(&document, "#/components/schemas/responses-v2.body.response").to_string();
    assert!(schema.contains("\"created\"") && !schema.contains("\"created_at\""), "{schema}");
    let events = operation["responses"]["200"]["content"]["text/event-stream"]["x-item-schema"].to_string();
    assert!(!events.contains("response.in_progress"), "{events}");
    assert!(operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].is_string());
}

#[test]
fn errors_have_the_statuses_of_the_dialect() {
    let dir = TestDir::shipped();
    dir.edit(
        "mappings/dialects/chat.yaml",
        "\nfaults: ",
        "\nstatus: \"{{ 408 if fault.kind == 'timeout' else none }}\"\nfaults: ",
    );
    let server = serve().arg("--mappings").arg(dir.path("mappings")).start();
    let document = document(&server);
    let responses = &document["paths"]["/v1/chat/completions"]["post"]["responses"];
    let timeouts = "The backend timed out. The request body was sent too slowly.";
    assert_eq!(responses["408"]["description"], timeouts);
    assert_eq!(responses["504"], Value::Null);
    let responses = &document["paths"]["/v1/responses"]["post"]["responses"];
    assert_ne!(responses["504"], Value::Null);
    assert_eq!(responses["408"]["description"], "The request body was sent too slowly.");
}

/// `/metrics` and `/status` have the errors of a missing key only if they need one.
#[test]
fn protected_endpoints_of_the_gateway_have_the_errors_of_a_missing_key() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "protect_metrics: false\n");
    let server = serve().env("REFRAME_API_KEY", "the-right-key").add(dir).start();
    let document = document(&server);
    let (metrics, status) = (&document["paths"]["/metrics"]["get"], &document["paths"]["/status"]["get"]);
    assert_eq!((&metrics["responses"]["401"], &metrics["security"]), (&Value::Null, &json!([])));
    assert!(status["responses"]["401"].is_object() && status["responses"]["403"].is_object(), "{status}");
    assert_eq!(server.fetch(Request::get("/metrics")).status(), 200);
    assert_eq!(server.fetch(Request::get("/status")).status(), 401);
}

/// A request for a WebSocket is a GET, which the endpoint does not have otherwise.
#[test]
fn the_document_has_the_426_of_a_request_for_a_websocket() {
    let document = document(demo());
    let operation = &document["paths"]["/v1/responses"]["get"];
    for status in ["401", "403", "405", "426"] {
        let schema = &operation["responses"][status]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/shared.error", "{status}: {operation}");
    }
    assert_eq!(operation["responses"]["426"]["description"], "The endpoint serves no WebSockets.");
    assert_eq!(document["paths"]["/v1/chat/completions"]["get"], Value::Null);
}

#[test]
fn a_reload_changes_the_document_and_its_etag() {
    let dir = TestDir::shipped();
    let server = serve().in_folder(&dir.path("")).start();
    let before = get(&server, "/openapi.json");
    let etag = before.header("etag").unwrap().to_owned();
    let again = fetch_if_none_match(&server, "/openapi.json", &etag);
    assert_eq!((again.status(), again.text().as_str()), (304, ""));
    assert_eq!(get(&server, "/openapi.yaml").header("content-type"), Some("text/plain; charset=utf-8"));
    dir.edit("mappings/gateway.yaml", "endpoint: POST /v1/completions", "endpoint: POST /v1/old/completions");
    let after = eventually("the new path", || {
        let reply = fetch_if_none_match(&server, "/openapi.json", &etag);
        (reply.status() == 200).then_some(reply)
    });
    let document = after.json();
    assert!(document["paths"]["/v1/old/completions"].is_object());
    assert!(document["paths"]["/v1/completions"].is_null());
    assert_eq!(document["info"]["x-generation"]["number"], 2);
}

#[test]
fn schemas_are_served_with_their_address() {
    let server = serve().start();
    let reply = get(&server, "/schemas/responses/events.json");
    let file = repo("schemas/responses/events.json");
    let with_address = file.replacen('{', "{\n  \"$id\": \"/schemas/responses/events.json\",", 1);
    assert_eq!(reply.text(), with_address, "the rest is unchanged");
    let etag = reply.header("etag").unwrap().to_owned();
    for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
        assert_eq!(fetch_if_none_match(&server, "/schemas/responses/events.json", &known).status(), 304, "{known}");
    }
    assert_eq!(fetch_if_none_match(&server, "/schemas/responses/events.json", "\"other\"").status(), 200);
    for path in ["/schemas/responses/nope.json", "/schemas/../Cargo.toml", "/schemas/%2e%2e/gateway.yaml", "/schemas/x"]
    {
        let missing = get(&server, path);
        assert_eq!((missing.status(), &missing.json()["error"]["code"]), (404, &Value::from("unknown_url")), "{path}");
    }
    let wrong = server.client().fetch(Request::new("DELETE", "/docs"));
    assert_eq!((wrong.status(), wrong.header("allow")), (405, Some("GET,HEAD,OPTIONS")));
}

/// Every schema is listed, and has a form in one file.
#[test]
fn schemas_are_listed_and_bundled() {
    let server = serve().start();
    let listed = get(&server, "/schemas/").json();
    assert_eq!(get(&server, "/schemas").json(), listed);
    let entries = listed["schemas"].as_array().unwrap();
    assert!(entries.len() >= 14, "{listed}");
    for entry in entries {
        assert_eq!(get(&server, entry["url"].as_str().unwrap()).json()["$id"], entry["url"]);
        let bundled = get(&server, entry["bundled_url"].as_str().unwrap()).json();
        assert_eq!(bundled["$id"], entry["bundled_url"]);
        let mut references = Vec::new();
        references_in(&bundled, &mut references);
        for reference in references {
            assert!(!resolve(&bundled, &reference).is_null(), "{entry}: {reference} leads nowhere");
        }
    }
    let events = get(&server, "/schemas/responses/events.bundled.json").json();
    assert!(events["anyOf"].as_array().unwrap().len() >= 20, "any of the events, not everything");
    assert_eq!(get(&server, "/schemas/chat/nope.bundled.json").status(), 404);
}

/// Web pages may read the documentation, and a browser that opens the gateway is led to it.
#[test]
fn the_documentation_is_open_to_browsers() {
    let server = serve().start();
    for path in ["/openapi.json", "/openapi.yaml", "/docs", "/schemas/", "/schemas/chat/body.json"] {
        assert_eq!(get(&server, path).header("access-control-allow-origin"), Some("*"), "{path}");
        let preflight = server.client().fetch(Request::new("OPTIONS", path));
        assert_eq!((preflight.status(), preflight.header("access-control-allow-origin")), (204, Some("*")), "{path}");
        assert_eq!(preflight.header("access-control-allow-headers"), Some("if-none-match"));
    }
    let browser = server.client().fetch(Request::get("/").header("accept", "text/html,*/*;q=0.8"));
    assert_eq!((browser.status(), browser.header("location")), (303, Some("/docs")));
    assert_eq!(get(&server, "/").status(), 404, "for other clients there is nothing");
}

/// A static route is validated like everything else: when it is loaded, and when it is sent.
#[test]
fn a_static_route_satisfies_its_schema() {
    let dir = TestDir::shipped();
    let schema = repo("schemas/shared/models.json");
    assert!(schema.contains("\"type\": \"array\""));
    // Two models pass at load; the third is too many.
    dir.write(
        "schemas/shared/models.json",
        &schema.replace("\"type\": \"array\"", "\"type\": \"array\", \"maxItems\": 2"),
    );
    let more = "models:\n  - { id: a, backend: demo }\n  - { id: b, backend: demo }\n";
    dir.edit("mappings/gateway.yaml", "models:\n", more);
    let server = serve().in_folder(&dir.path("")).start();
    let reply = get(&server, "/v1/models");
    assert_eq!((reply.status(), &reply.json()["error"]["code"]), (500, &Value::from("schema_violation")));
    assert_eq!(get(&server, "/v1/models/a").status(), 200);
    dir.edit("mappings/gateway.yaml", "validation: strict", "validation: report");
    let models = eventually("the list, which is only reported", || {
        let reply = get(&server, "/v1/models");
        (reply.status() == 200).then(|| reply.json())
    });
    assert_eq!(models["data"].as_array().unwrap().len(), 3);
}

/// Prometheus asks for OpenMetrics; everybody else gets a type that browsers show.
#[test]
fn metrics_have_the_requested_content_type() {
    let server = serve().start();
    let plain = get(&server, "/metrics");
    assert_eq!(plain.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    // Each series is declared with its own name, and with a type of that format.
    let text = plain.text();
    assert!(text.contains("\n# TYPE reframe_build_info gauge\nreframe_build_info{"), "{text}");
    for (name, kind) in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')) {
        assert!(["counter", "gauge", "histogram"].contains(&kind), "{name}: {kind}");
        assert!(kind != "counter" || name.ends_with("_total"), "{name}: {kind}");
    }
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let scraped = server.client().fetch(Request::get("/metrics").header("accept", accept));
    let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(scraped.header("content-type"), Some(expected));
    assert!(scraped.text().contains("# TYPE reframe_build info\n"));
}

/// The page loads nothing from other hosts, and its content security policy forbids it.
#[test]
fn the_docs_page_needs_no_other_host() {
    let server = serve().start();
    let page = get(&server, "/docs");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("http") && !policy.contains("unsafe-eval"), "{policy}");
    let text = page.text();
    assert!(text.contains("post_v1_chat_completions"));
    // The page of poem-openapi, with this document in the place of its own.
    assert_eq!(text.matches("let spec = {\"openapi\":\"3.1.0\"").count(), 1);
    for outside in ["<script src", "<link rel=\"stylesheet\"", "@import url"] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn the_api_docs_can_be_turned_off() {
    let dir = TestDir::shipped();
    dir.edit("mappings/gateway.yaml", "metrics: /metrics", "docs: off");
    let server = serve().in_folder(&dir.path("")).start();
    for path in ["/docs", "/openapi.json", "/schemas/chat/body.json", "/metrics"] {
        assert_eq!(get(&server, path).status(), 404, "{path}");
    }
}

fn fetch_if_none_match(server: &Server, path: &str, etag: &str) -> Reply {
    server.client().fetch(Request::get(path).header("if-none-match", etag))
}

fn resolve<'d>(document: &'d Value, reference: &str) -> &'d Value {
    document.pointer(reference.strip_prefix('#').unwrap()).unwrap_or(&Value::Null)
}

fn references_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str().filter(|_| key == "$ref") {
                    Some(reference) => found.push(reference.to_owned()),
                    None => references_in(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references_in(item, found)),
        _ => {}
    }
}
