//! A frame that violates its schema only for some data cannot be found at load. It is stopped at run time: in a stream,
//! in a body, and in the failure frame itself.

use crate::support::{MockBackend, MockResponse, Reply, Request, Server, TestDir, serve};
use serde_json::{Value, json};

/// Streams three texts, of which the second is `boom`.
fn backend() -> MockBackend {
    let text_event = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }).to_string();
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    let events = [text_event("secret words"), text_event("boom"), text_event("after"), last, "[DONE]".to_owned()];
    MockBackend::start(move |_| MockResponse::sse(&events.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Renders a number instead of a string, but only for the text `boom`.
fn gateway(backend: &MockBackend, validation: &str) -> (Server, TestDir) {
    let dir = TestDir::shipped();
    let chat = "mappings/dialects/chat.yaml";
    dir.edit(chat, "delta: { content: \"{{ text }}\" }", "delta: { content: \"{{ 5 if text == 'boom' else text }}\" }");
    dir.edit(
        chat,
        "then: \"{{ choice.text }}\"\n",
        "then: \"{{ 5 if 'boom' in choice.text | default('') else choice.text }}\"\n",
    );
    let routes = "dialect: chat, profile: openai }";
    dir.edit("mappings/gateway.yaml", routes, &routes.replace(" }", &format!(", validation: {validation} }}")));
    let at = format!("openai-chat={}", backend.url());
    (serve().args(["--backend", &at]).in_folder(&dir.path("")).start(), dir)
}

fn fetch(gateway: &Server, stream: bool) -> Reply {
    let body = json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] });
    gateway.fetch(Request::post(body.to_string()))
}

fn metrics(gateway: &Server) -> String {
    gateway.fetch(Request::get("/metrics")).text()
}

#[test]
fn strict_stops_the_stream_with_the_dialects_failure() {
    let backend = backend();
    let (gateway, _dir) = gateway(&backend, "strict");
    let frames: Vec<String> = fetch(&gateway, true).frames().into_iter().map(|f| f.data).collect();
    let (last, before) = frames.split_last().unwrap();
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "schema_violation");
    assert_eq!(error["error"]["message"], "the frame `text` violates its schema at /choices/0/delta/content (type)");
    assert_eq!(before.len(), 2, "the role and the first delta: {before:?}");
    assert!(!frames.iter().any(|f| f.contains("\"content\":5") || f.contains("after")), "{frames:?}");
    let log = gateway.wait_for_log("frame violation id=");
    let line = log.lines().find(|l| l.contains("frame violation id=")).unwrap();
    for known in
        ["frame=\"text\"", "pointer=\"/choices/0/delta/content\"", "keyword=\"type\"", "chat.yaml:", "generation=1"]
    {
        assert!(line.contains(known), "{known} in {line}");
    }
    assert!(!log.contains("secret words") && !log.contains("boom"), "{log}");
    let counter = "reframe_frame_violations_total{dialect=\"chat\",frame=\"text\",keyword=\"type\"} 1";
    assert!(metrics(&gateway).contains(counter), "{}", metrics(&gateway));
}

#[test]
fn strict_turns_the_body_into_an_error() {
    let backend = backend();
    let (gateway, _dir) = gateway(&backend, "strict");
    let reply = fetch(&gateway, false);
    assert_eq!(reply.status(), 500);
    let error = &reply.json()["error"];
    assert_eq!((&error["code"], &error["type"]), (&json!("schema_violation"), &json!("server_error")));
    assert_eq!(error["message"], "the body of `chat` violates its schema at /choices/0/message/content (type)");
    assert!(
        metrics(&gateway)
            .contains("reframe_frame_violations_total{dialect=\"chat\",frame=\"body\",keyword=\"type\"} 1")
    );
}

#[test]
fn report_sends_the_frame_and_counts_it() {
    let backend = backend();
    let (gateway, _dir) = gateway(&backend, "report");
    let frames: Vec<String> = fetch(&gateway, true).frames().into_iter().map(|f| f.data).collect();
    assert!(frames.iter().any(|f| f.contains("\"content\":5")), "{frames:?}");
    assert_eq!(frames.last().unwrap(), "[DONE]");
    assert_eq!(fetch(&gateway, false).json()["choices"][0]["message"]["content"], 5);
    gateway.wait_for_log("reported=true");
    assert!(metrics(&gateway).contains("frame=\"text\",keyword=\"type\"} 1"));
}

#[test]
fn off_does_not_validate() {
    let backend = backend();
    let (gateway, _dir) = gateway(&backend, "off");
    assert_eq!(fetch(&gateway, false).json()["choices"][0]["message"]["content"], 5);
    assert!(!metrics(&gateway).contains("reframe_frame_violations_total{"));
}

/// A violation that occurs in every response is found at load, so the set is never served.
#[test]
fn a_type_that_is_always_wrong_is_rejected_at_load() {
    let dir = TestDir::shipped();
    let chat = "mappings/dialects/chat.yaml";
    dir.edit(chat, "delta: { content: \"{{ text }}\" }", "delta: { content: \"{{ choice.index }}\" }");
    let exit = crate::support::Launch::new()
        .args(["serve", "--listen", "127.0.0.1:0"])
        .in_folder(&dir.path(""))
        .run_with_timeout();
    assert_eq!(exit.code, Some(2));
    let expected = "error[RF142]: the frame `text` never satisfies its schema: `choices[0].delta.content` must be ";
    assert!(exit.stderr.contains(expected), "{}", exit.stderr);
    assert!(exit.stderr.contains("schemas/chat/chunk.json"), "{}", exit.stderr);
}

/// A failure frame that violates its schema is replaced by a minimal one; it is never omitted.
#[test]
fn a_failure_frame_that_violates_its_schema_is_replaced_by_a_minimal_one() {
    let partial = json!({ "choices": [{ "index": 0, "delta": { "content": "half" } }] }).to_string();
    let backend = MockBackend::start(move |_| MockResponse::sse(&[&partial]).disconnect());
    let dir = TestDir::shipped();
    dir.edit(
        "mappings/dialects/chat.yaml",
        "error: { base: false, schema: error, data: { $use: openai_error } }",
        "error: { base: false, schema: error, data: { error: { message: \"{{ 5 if request.user == 'x' else fault.message }}\", type: t, param: null, code: null } } }",
    );
    let at = format!("openai-chat={}", backend.url());
    let gateway = serve().args(["--backend", &at]).in_folder(&dir.path("")).start();
    let body = json!({ "model": "m", "stream": true, "user": "x", "messages": [{ "role": "user", "content": "hi" }] });
    let frames = gateway.fetch(Request::post(body.to_string())).frames();
    let last: Value = serde_json::from_str(&frames.last().unwrap().data).unwrap();
    assert_eq!(last["error"]["message"], "internal error");
}

#[test]
fn an_error_that_is_always_wrong_is_rejected_at_load() {
    let dir = TestDir::shipped();
    dir.edit("mappings/dialects/chat.yaml", "\nerrors: { $use: openai_error }", "\nerrors: { wrong: 1 }");
    let exit = crate::support::Launch::new()
        .args(["serve", "--listen", "127.0.0.1:0"])
        .in_folder(&dir.path(""))
        .run_with_timeout();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.contains("error[RF142]: the error of `chat` never satisfies its schema"), "{}", exit.stderr);
}

/// The status stays the same.
#[test]
fn an_error_body_that_violates_its_schema_is_replaced_by_a_minimal_one() {
    let dir = TestDir::shipped();
    let own = "\nerrors: { error: { message: \"{{ 5 if fault.param == 'messages' else fault.message }}\", type: t, param: null, code: null } }";
    dir.edit("mappings/dialects/chat.yaml", "\nerrors: { $use: openai_error }", own);
    let gateway = serve().in_folder(&dir.path("")).start();
    let reply = gateway.fetch(Request::post(r#"{"model":"demo"}"#));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (400, &json!("internal error")));
    let reply = gateway.fetch(Request::post("{}"));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (400, &json!("`model` is required")));
}

/// The last frames are validated too, and a client always receives an end.
#[test]
fn a_violation_at_the_end_is_a_failure_and_not_a_silent_end() {
    let text_event = json!({ "choices": [{ "index": 0, "delta": { "content": "a" }, "finish_reason": "stop" }] });
    let usage_event =
        json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 777 } });
    let events = [text_event.to_string(), usage_event.to_string(), "[DONE]".to_owned()];
    let backend =
        MockBackend::start(move |_| MockResponse::sse(&events.iter().map(String::as_str).collect::<Vec<_>>()));
    let dir = TestDir::shipped();
    let total = "total_tokens: \"{{ usage.total }}\"";
    dir.edit(
        "mappings/dialects/chat.yaml",
        total,
        "total_tokens: \"{{ 'x' if usage.total == 777 else usage.total }}\"",
    );
    let at = format!("openai-chat={}", backend.url());
    let gateway = serve().args(["--backend", &at]).in_folder(&dir.path("")).start();
    let options = json!({ "include_usage": true });
    let body = json!({ "model": "m", "stream": true, "stream_options": options, "messages": [{ "role": "user", "content": "hi" }] });
    let frames: Vec<String> =
        gateway.fetch(Request::post(body.to_string())).frames().into_iter().map(|f| f.data).collect();
    let last: Value = serde_json::from_str(frames.last().unwrap()).unwrap();
    assert_eq!(last["error"]["message"], "the frame `usage` violates its schema at /usage/total_tokens (type)");
    assert!(!frames.iter().any(|f| f == "[DONE]"), "{frames:?}");
    assert_eq!(fetch(&gateway, false).status(), 500);
}

#[test]
fn an_order_violation_at_the_end_is_found_at_load() {
    let dir = TestDir::shipped();
    dir.edit("mappings/dialects/chat.yaml", "turn.finish usage? turn.end", "usage? turn.finish turn.end");
    let exit = serve().in_folder(&dir.path("")).run_with_timeout();
    assert_eq!(exit.code, Some(2));
    let output = exit.stderr;
    assert!(output.contains("error[RF141]") && output.contains("`usage` is out of order in its turn"), "{output}");
}
