//! The start, keys, verbs, CORS, and the list of models.

use super::{KEY, ask, ready, responses, start, with_key};
use crate::support::{Request, eventually};
use serde_json::{Value, json};

/// Lines: start-environment start-worker
#[test]
fn the_environment_of_the_proxy_starts_the_gateway_and_its_worker() {
    let gateway = ready(&[("CODEX_FORCE_PROVIDER", "local"), ("PROXY_METRICS_TOKEN", "metrics-token-1")]);
    assert!(gateway.server.banner.contains("listening on http://127.0.0.1:"), "{}", gateway.server.banner);
    assert!(gateway.server.banner.contains("/v1\n") || gateway.server.banner.contains("/v1"));
    let (_, start) = &gateway.starts()[0];
    let arguments = json!([
        "app-server",
        "-c",
        "model=\"gpt-5.2\"",
        "-c",
        "preferred_auth_method=\"chatgpt\"",
        "-c",
        "sandbox_mode=\"read-only\"",
        "-c",
        "model_provider=\"local\""
    ]);
    assert_eq!(start[0], arguments);
    assert!(start[1].as_str().unwrap().ends_with("/work"), "{}", start[1]);
    let environment = start[2].as_object().unwrap();
    assert_eq!(environment["CODEX_WORKER_SUPERVISED"], "true");
    assert!(environment["CODEX_HOME"].as_str().unwrap().ends_with("/.codex-api"));
    assert!(!environment.contains_key("PROXY_API_KEY") && !environment.contains_key("PROXY_METRICS_TOKEN"));
    assert!(!gateway.server.log().contains("no profile names"), "{}", gateway.server.log());
}

/// Lines: start-listener
#[test]
fn the_gateway_answers_before_the_worker_is_ready() {
    let gateway = start(&[("FAKE_START", "silent")]);
    assert_eq!(gateway.get("/healthz").0, 200);
    assert_eq!(gateway.get("/readyz").0, 503);
    let head = |path: &str| gateway.client().fetch(with_key(Request::new("HEAD", path))).status();
    assert_eq!((head("/v1/chat/completions"), head("/v1/responses")), (200, 503));
}

/// Lines: start-shutdown
#[test]
fn the_end_of_the_gateway_ends_the_worker() {
    let mut gateway = ready(&[("WORKER_SHUTDOWN_GRACE_MS", "250")]);
    let pid = gateway.starts()[0].0;
    gateway.server.terminate();
    assert!(gateway.server.wait().success());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

/// Lines: verbs preflight
#[test]
fn verbs_and_preflights() {
    let gateway = start(&[]);
    let head = Request::new("HEAD", "/v1/chat/completions");
    assert_eq!(gateway.client().fetch(with_key(head)).status(), 200);
    for path in ["/v1/chat/completions", "/v1/responses"] {
        let preflight = Request::new("OPTIONS", path)
            .header("origin", "https://app.example.com")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "X-Custom-Header");
        let reply = gateway.server.fetch(preflight);
        assert_eq!(reply.status(), 204);
        let header = |name| reply.header(name).unwrap_or_default().to_ascii_lowercase();
        assert!(["*", "https://app.example.com"].contains(&&*header("access-control-allow-origin")));
        assert!(header("access-control-allow-headers").contains("x-custom-header"));
        assert!(header("access-control-allow-methods").contains("post"));
    }
}

/// Lines: auth
#[test]
fn a_request_without_the_key_is_rejected() {
    let gateway = start(&[]);
    for request in [Request::from(ask("Hi")), responses(json!({ "model": "codex-5", "input": "Hi" }))] {
        let reply = gateway.server.fetch(request);
        assert_eq!(reply.status(), 401);
        assert!(reply.header("www-authenticate").unwrap().contains("Bearer"));
        let error = json!({ "message": "unauthorized", "type": "authentication_error", "code": "invalid_api_key" });
        assert_eq!(reply.json()["error"], error);
    }
    for (header, value) in [
        ("authorization", format!("bearer {KEY}")),
        ("x-api-key", KEY.to_owned()),
        ("api-key", KEY.to_owned()),
        ("x-goog-api-key", KEY.to_owned()),
    ] {
        let reply = gateway.client().fetch(Request::new("HEAD", "/v1/chat/completions").header(header, &value));
        assert_eq!(reply.status(), 200, "{header}");
        let id = reply.header("x-request-id").unwrap();
        let log = gateway.server.wait_for_log(id);
        let line = log.lines().find(|line| line.contains(id)).unwrap();
        assert!(line.contains("auth=\"present\"") && !line.contains(KEY), "{line}");
    }
}

/// Lines: responses-flag
#[test]
fn responses_can_be_switched_off() {
    let gateway = ready(&[("PROXY_ENABLE_RESPONSES", "false")]);
    let request = responses(json!({ "model": "codex-5", "input": "Hi" }));
    assert_eq!(gateway.server.fetch(with_key(request)).status(), 404);
    assert_eq!(gateway.client().fetch(with_key(Request::new("HEAD", "/v1/responses"))).status(), 404);
}

/// Lines: models models-dev models-protected
#[test]
fn models_are_listed_by_environment() {
    let ids = |gateway: &super::DropIn| -> Vec<String> {
        let list = gateway.get("/v1/models").1;
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    };
    let gateway = start(&[("PROXY_PROTECT_MODELS", "false")]);
    let reply = gateway.server.fetch(Request::get("/v1/models"));
    assert_eq!((reply.status(), reply.header("cache-control")), (200, Some("public, max-age=60")));
    let first = json!({ "id": "codex-5", "object": "model", "owned_by": "codex", "created": 0 });
    assert_eq!((&reply.json()["object"], &reply.json()["data"][0]), (&json!("list"), &first));
    let all = "codex-5 codex-5-low codex-5-medium codex-5-high gpt-5.2-codex-L gpt-5.2-codex-M gpt-5.2-codex-H \
               gpt-5.2-codex-XH gpt-5.2-LOCAL";
    assert_eq!(ids(&gateway).join(" "), all);
    let with_slash = gateway.server.fetch(Request::get("/v1/models/"));
    assert_eq!((with_slash.status(), with_slash.json()), (200, reply.json()));
    assert_eq!(gateway.client().fetch(Request::new("HEAD", "/v1/models")).status(), 200);
    let options = gateway.server.fetch(Request::new("OPTIONS", "/v1/models"));
    assert_eq!(options.status(), 204);

    let protected = start(&[("PROXY_PROTECT_MODELS", "true"), ("PROXY_ENV", "dev")]);
    let refused = protected.server.fetch(Request::get("/v1/models"));
    assert_eq!(refused.status(), 401);
    assert!(refused.header("www-authenticate").is_some());
    assert_eq!(protected.client().fetch(Request::new("HEAD", "/v1/models")).status(), 401);
    let listed = ids(&protected);
    assert_eq!((listed.len(), &*listed[0], &*listed[15]), (16, "codev-5", "gpt-5.2-LOCAL"));
}

/// Lines: models-effort
#[test]
fn the_name_of_a_model_implies_its_effort() {
    let gateway = ready(&[]);
    assert_eq!(gateway.chat(ask("Hi").with("model", "gpt-5.2-CODEX-xh")).0, 200);
    let turn = &gateway.received("sendUserTurn")[0];
    assert_eq!((&turn["model"], &turn["effort"]), (&json!("gpt-5.2"), &json!("xhigh")));
}

/// Lines: headers
#[test]
fn every_response_has_the_headers_of_the_proxy() {
    let gateway = ready(&[]);
    let client_id = "client-1";
    let ask = ask("Hi").header("x-request-id", client_id);
    let requests = [
        (Request::from(ask.clone()), Some("obsidian-xml"), true),
        (Request::from(ask.clone().streamed()), Some("obsidian-xml"), true),
        (Request::from(ask.with("model", "no-such-model")), Some("obsidian-xml"), true),
        (responses(json!({ "model": "codex-5", "input": "Hi" })), Some("openai-json"), true),
        (Request::get("/healthz").header("x-request-id", client_id), None, false),
    ];
    let mut ids = Vec::new();
    for (request, mode, has_trace) in requests {
        let reply = gateway.server.fetch(with_key(request));
        let id = reply.header("x-request-id").unwrap().to_owned();
        assert!(id != client_id && !ids.contains(&id), "{id}");
        assert_eq!(reply.header("x-proxy-trace-id"), has_trace.then_some(&*id));
        assert_eq!(reply.header("x-proxy-output-mode"), mode);
        let stop = has_trace.then_some("burst");
        assert_eq!(reply.header("x-codex-stop-after-tools-mode"), stop);
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        ids.push(id);
    }
}

/// Lines: copilot
#[test]
fn copilot_gets_its_calls_as_text() {
    let mode = |gateway: &super::DropIn, request: Request| {
        let reply = gateway.server.fetch(with_key(request));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        assert!(reply.header("x-proxy-trace-id").is_some());
        reply.header("x-proxy-output-mode").unwrap().to_owned()
    };
    let gateway = ready(&[("PROXY_OUTPUT_MODE", "openai-json"), ("PROXY_COPILOT_AUTO_DETECT", "true")]);
    assert_eq!(mode(&gateway, ask("Hi").into()), "openai-json");
    for copilot in [
        ask("<recent_conversations>none</recent_conversations> Hi"),
        ask("<saved_memories>none</saved_memories> Hi"),
        ask("Hi").header("x-copilot-trace-id", "1"),
        ask("Hi").header("http-referer", "https://obsidiancopilot.com").header("x-title", "Obsidian Copilot"),
    ] {
        assert_eq!(mode(&gateway, copilot.clone().into()), "obsidian-xml");
        assert_eq!(mode(&gateway, copilot.header("x-proxy-output-mode", "openai-json").into()), "openai-json");
    }
    let input = |agent: &str| responses(json!({ "model": "codex-5", "input": "Hi" })).header("user-agent", agent);
    assert_eq!(mode(&gateway, input("un/JS 6.5.0")), "openai-json", "only the high tier counts");

    let gateway = ready(&[("FAKE_MODE", "tools"), ("PROXY_STOP_AFTER_TOOLS_MODE", "first")]);
    assert_eq!(mode(&gateway, input("curl/8")), "openai-json");
    assert_eq!(mode(&gateway, input("un/JS 6.5.0")), "obsidian-xml");
    assert_eq!(mode(&gateway, input("curl/8").header("x-trace-id", "1")), "obsidian-xml");
    let item = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let messages = [item("system", "Be brief."), item("user", "Hi"), item("assistant", "Hello"), item("user", "Look")];
    let request = json!({ "model": "gpt-5.2-codev-L", "input": messages, "max_output_tokens": 100, "text": {},
                          "stream": true });
    let request = responses(request).header("user-agent", "obsidian/1.9.7 Electron/37.2.4");
    let reply = gateway.server.fetch(with_key(request));
    assert_eq!(reply.header("x-proxy-output-mode"), Some("obsidian-xml"));
    let events: Vec<Value> =
        reply.sse_messages().iter().filter_map(|event| serde_json::from_str(event.text()).ok()).collect();
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert!(text.contains("<use_tool>") && text.contains("</use_tool>"), "{text}");
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    for kind in ["response.created", "response.output_item.added", "response.completed"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

/// Lines: host
#[test]
fn the_host_is_local_unless_it_is_set() {
    let gateway = start(&[("PROXY_HOST", "0.0.0.0")]);
    assert!(gateway.server.banner.contains("0.0.0.0:"), "{}", gateway.server.banner);
    eventually("it answers", || (gateway.get("/healthz").0 == 200).then_some(()));
    assert!(!gateway.server.banner.contains(KEY));
}
