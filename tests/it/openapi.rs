//! The OpenAPI document: generated from the active mappings, current in the repository, and served.

use crate::support::{Reply, Request, Server, TestDir, eventually, repo, serve};
use serde_json::Value;
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
        let events = contents["text/event-stream"]["schema"]["oneOf"].as_array().unwrap();
        assert!(events.len() >= kinds, "{path}: {} kinds of events", events.len());
        for status in ["400", "401", "404", "413", "429", "500", "502", "503", "504"] {
            let error = &operation["responses"][status]["content"]["application/json"]["schema"];
            assert!(error["$ref"].is_string(), "{path} {status}");
        }
        assert!(operation["responses"]["429"]["headers"]["retry-after"].is_object());
        assert!(operation["responses"]["200"]["headers"]["x-request-id"].is_object());
    }
    for path in ["/v1/models", "/v1/models/{model}", "/metrics", "/openapi.json", "/openapi.yaml", "/docs"] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
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
fn a_profile_is_reflected_in_the_document() {
    let server = serve().args(["--profile", "codex-proxy"]).start();
    let document = document(&server);
    let operation = &document["paths"]["/v1/responses"]["post"];
    let body = &operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(body, "#/components/schemas/responses-v2.body");
    let schema = resolve(&document, body.as_str().unwrap()).to_string();
    assert!(schema.contains("\"created\"") && !schema.contains("\"created_at\""), "{schema}");
    let events = operation["responses"]["200"]["content"]["text/event-stream"]["schema"].to_string();
    assert!(!events.contains("response.in_progress"), "{events}");
    assert!(operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].is_string());
}

#[test]
fn a_reload_changes_the_document_and_its_etag() {
    let dir = TestDir::shipped();
    let server = serve().in_folder(&dir.path("")).start();
    let before = get(&server, "/openapi.json");
    let etag = before.header("etag").unwrap().to_owned();
    let again = fetch_if_none_match(&server, "/openapi.json", &etag);
    assert_eq!((again.status(), again.text().as_str()), (304, ""));
    assert_eq!(get(&server, "/openapi.yaml").header("content-type"), Some("application/yaml"));
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
fn schemas_are_served_unchanged() {
    let server = serve().start();
    let reply = get(&server, "/schemas/responses/events.json");
    assert_eq!(reply.text(), repo("schemas/responses/events.json"));
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
    assert_eq!((wrong.status(), wrong.header("allow")), (405, Some("GET, HEAD")));
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
