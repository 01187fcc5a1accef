//! A frame that breaks its schema only for some data cannot be found when a set is loaded. It is stopped when it happens: in
//! a stream, in a body, and in the failure itself.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use support::{Answer, Backend, Disk, Reply, Request, Server, serve};

/// Says what it was asked, in two pieces, the second of which is `boom`.
fn backend() -> Backend {
    let piece = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }).to_string();
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    let events = [piece("secret words"), piece("boom"), piece("after"), last, "[DONE]".to_owned()];
    Backend::start(move |_| Answer::sse(&events.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// A number where the schema wants a string, but only when the backend says a certain word.
fn gateway(backend: &Backend, validation: &str) -> (Server, Disk) {
    let disk = Disk::shipped();
    let chat = "mappings/dialects/chat.yaml";
    disk.edit(
        chat,
        "delta: { content: \"{{ text }}\" }",
        "delta: { content: \"{{ 5 if text == 'boom' else text }}\" }",
    );
    disk.edit(
        chat,
        "then: \"{{ choice.text }}\", else:",
        "then: \"{{ 5 if 'boom' in choice.text | default('') else choice.text }}\", else:",
    );
    let routes = "dialect: chat, profile: openai }";
    disk.edit("mappings/gateway.yaml", routes, &routes.replace(" }", &format!(", validation: {validation} }}")));
    let at = format!("openai-chat={}", backend.url());
    (serve().args(["--backend", &at]).in_folder(&disk.path("")).start(), disk)
}

fn ask(gateway: &Server, stream: bool) -> Reply {
    let body = json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] });
    gateway.ask(Request::post(body.to_string()))
}

fn metrics(gateway: &Server) -> String {
    gateway.ask(Request::get("/metrics")).text()
}

#[test]
fn strict_stops_the_stream_with_the_dialects_failure() {
    let backend = backend();
    let (gateway, _disk) = gateway(&backend, "strict");
    let frames: Vec<String> = ask(&gateway, true).frames().into_iter().map(|f| f.data).collect();
    let (last, told) = frames.split_last().unwrap();
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "schema_breach");
    assert_eq!(error["error"]["message"], "the frame `text` breaks its schema at /choices/0/delta/content (type)");
    assert_eq!(told.len(), 2, "the role and the first piece: {told:?}");
    assert!(!frames.iter().any(|f| f.contains("\"content\":5") || f.contains("after")), "{frames:?}");
    let log = gateway.wait_for_log("breach id=");
    let line = log.lines().find(|l| l.contains("breach id=")).unwrap();
    for known in
        ["frame=\"text\"", "pointer=\"/choices/0/delta/content\"", "keyword=\"type\"", "chat.yaml:", "generation=1"]
    {
        assert!(line.contains(known), "{known} in {line}");
    }
    assert!(!log.contains("secret words") && !log.contains("boom"), "{log}");
    let counted = "breaches_total{dialect=\"chat\",frame=\"text\",keyword=\"type\"} 1";
    assert!(metrics(&gateway).contains(counted), "{}", metrics(&gateway));
}

#[test]
fn strict_makes_an_error_of_the_body() {
    let backend = backend();
    let (gateway, _disk) = gateway(&backend, "strict");
    let reply = ask(&gateway, false);
    assert_eq!(reply.status(), 500);
    let error = &reply.json()["error"];
    assert_eq!((&error["code"], &error["type"]), (&json!("schema_breach"), &json!("server_error")));
    assert_eq!(error["message"], "the body of `chat` breaks its schema at /choices/0/message/content (type)");
    assert!(metrics(&gateway).contains("breaches_total{dialect=\"chat\",frame=\"body\",keyword=\"type\"} 1"));
}

#[test]
fn report_lets_it_leave_and_counts_it() {
    let backend = backend();
    let (gateway, _disk) = gateway(&backend, "report");
    let frames: Vec<String> = ask(&gateway, true).frames().into_iter().map(|f| f.data).collect();
    assert!(frames.iter().any(|f| f.contains("\"content\":5")), "{frames:?}");
    assert_eq!(frames.last().unwrap(), "[DONE]");
    assert_eq!(ask(&gateway, false).json()["choices"][0]["message"]["content"], 5);
    gateway.wait_for_log("reported=true");
    assert!(metrics(&gateway).contains("frame=\"text\",keyword=\"type\"} 1"));
}

#[test]
fn off_does_not_look() {
    let backend = backend();
    let (gateway, _disk) = gateway(&backend, "off");
    assert_eq!(ask(&gateway, false).json()["choices"][0]["message"]["content"], 5);
    assert!(!metrics(&gateway).contains("breaches_total{"));
}

/// What a set says of every answer is found when it is loaded: such a set is never served.
#[test]
fn a_type_that_is_always_wrong_is_refused_at_load() {
    let disk = Disk::shipped();
    let chat = "mappings/dialects/chat.yaml";
    disk.edit(chat, "delta: { content: \"{{ text }}\" }", "delta: { content: \"{{ choice.index }}\" }");
    let exit = support::Launch::new().args(["serve", "--listen", "127.0.0.1:0"]).in_folder(&disk.path("")).refused();
    assert_eq!(exit.code, Some(2));
    let told = "error[RF142]: the frame `text` never satisfies its schema: `choices[0].delta.content` must be ";
    assert!(exit.stderr.contains(told), "{}", exit.stderr);
    assert!(exit.stderr.contains("schemas/chat/chunk.json"), "{}", exit.stderr);
}

/// The failure itself may break its schema: then it is told bare, and never not at all.
#[test]
fn a_failure_that_breaks_its_schema_is_told_bare() {
    let cut = json!({ "choices": [{ "index": 0, "delta": { "content": "half" } }] }).to_string();
    let backend = Backend::start(move |_| Answer::sse(&[&cut]).cut());
    let disk = Disk::shipped();
    disk.edit(
        "mappings/dialects/chat.yaml",
        "error: { base: false, schema: error, data: { $use: openai_error } }",
        "error: { base: false, schema: error, data: { error: { message: \"{{ 5 if request.user == 'x' else fault.message }}\", type: t, param: null, code: null } } }",
    );
    let at = format!("openai-chat={}", backend.url());
    let gateway = serve().args(["--backend", &at]).in_folder(&disk.path("")).start();
    let body = json!({ "model": "m", "stream": true, "user": "x", "messages": [{ "role": "user", "content": "hi" }] });
    let frames = gateway.ask(Request::post(body.to_string())).frames();
    let last: Value = serde_json::from_str(&frames.last().unwrap().data).unwrap();
    assert_eq!(last["error"]["message"], "internal error");
}

#[test]
fn an_error_that_is_always_wrong_is_refused_at_load() {
    let disk = Disk::shipped();
    disk.edit("mappings/dialects/chat.yaml", "\nerrors: { $use: openai_error }", "\nerrors: { wrong: 1 }");
    let exit = support::Launch::new().args(["serve", "--listen", "127.0.0.1:0"]).in_folder(&disk.path("")).refused();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.contains("error[RF142]: the error of `chat` never satisfies its schema"), "{}", exit.stderr);
}

/// One that is wrong for some faults only is told in other words, and the status stays.
#[test]
fn an_error_that_breaks_its_schema_is_told_bare() {
    let disk = Disk::shipped();
    let own = "\nerrors: { error: { message: \"{{ 5 if fault.param == 'messages' else fault.message }}\", type: t, param: null, code: null } }";
    disk.edit("mappings/dialects/chat.yaml", "\nerrors: { $use: openai_error }", own);
    let gateway = serve().in_folder(&disk.path("")).start();
    let reply = gateway.ask(Request::post(r#"{"model":"demo"}"#));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (400, &json!("internal error")));
    let reply = gateway.ask(Request::post("{}"));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (400, &json!("`model` is required")));
}

/// What is told last is checked like everything else, and a client never hears silence instead of an end.
#[test]
fn a_breach_at_the_end_is_a_failure_and_not_a_silence() {
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "a" }, "finish_reason": "stop" }] });
    let counted =
        json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 777 } });
    let events = [piece.to_string(), counted.to_string(), "[DONE]".to_owned()];
    let backend = Backend::start(move |_| Answer::sse(&events.iter().map(String::as_str).collect::<Vec<_>>()));
    let disk = Disk::shipped();
    let total = "total_tokens: \"{{ usage.total }}\"";
    disk.edit(
        "mappings/dialects/chat.yaml",
        total,
        "total_tokens: \"{{ 'x' if usage.total == 777 else usage.total }}\"",
    );
    let at = format!("openai-chat={}", backend.url());
    let gateway = serve().args(["--backend", &at]).in_folder(&disk.path("")).start();
    let options = json!({ "include_usage": true });
    let body = json!({ "model": "m", "stream": true, "stream_options": options, "messages": [{ "role": "user", "content": "hi" }] });
    let frames: Vec<String> =
        gateway.ask(Request::post(body.to_string())).frames().into_iter().map(|f| f.data).collect();
    let last: Value = serde_json::from_str(frames.last().unwrap()).unwrap();
    assert_eq!(last["error"]["message"], "the frame `usage` breaks its schema at /usage/total_tokens (type)");
    assert!(!frames.iter().any(|f| f == "[DONE]"), "{frames:?}");
    assert_eq!(ask(&gateway, false).status(), 500);
}

#[test]
fn an_order_that_is_broken_at_the_end_is_found_before_it_serves() {
    let disk = Disk::shipped();
    disk.edit("mappings/dialects/chat.yaml", "turn.finish usage? turn.end", "usage? turn.finish turn.end");
    let refused = serve().in_folder(&disk.path("")).refused();
    assert_eq!(refused.code, Some(2));
    let said = refused.stderr;
    assert!(said.contains("error[RF141]") && said.contains("`usage` is out of order in its turn"), "{said}");
}
