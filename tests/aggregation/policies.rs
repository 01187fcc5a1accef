//! `stream2json.*` by name, each on a route of its own; and the limit of what is kept.

use super::support::backend_events::{chat_stream, completed, created, data, event, events, text_delta, word};
use super::support::sse::names;
use super::support::{Answer, Behind, Disk, Request, asking, edited, holds, repo};
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

const PROFILES: [(&str, &str); 5] = [
    ("strict", "stream2json.on_malformed: fail"),
    ("cut", "stream2json.on_partial: incomplete"),
    ("refused", "stream2json.on_partial: error502"),
    ("told", "stream2json.on_partial: { responses: failed }, stream2json.on_empty: { responses: failed }"),
    ("plain", "stream2json.on_malformed: skip"),
];

/// `/PROFILE/v1/responses` and `/PROFILE/v1/chat/completions` for each of them.
fn routes(kind: &str) -> Behind {
    let disk = Disk::empty();
    let mut routes = "routes:\n".to_owned();
    for (name, policies) in PROFILES {
        disk.write(&format!("layer/profiles/{name}.yaml"), &format!("profile: {name}\npolicies: {{ {policies} }}\n"));
        for (dialect, path) in [("chat", "chat/completions"), ("responses", "responses")] {
            routes += &format!("  - {{ endpoint: POST /{name}/v1/{path}, dialect: {dialect}, profile: {name} }}\n");
        }
    }
    let gateway = edited(&repo("mappings/gateway.yaml"), "routes:\n", &routes);
    let gateway = edited(&gateway, "answer_bytes: 16MiB", "answer_bytes: 4KiB");
    let gateway = edited(&gateway, "first_event: 300s, idle: 300s", "first_event: 10s, idle: 300ms");
    disk.write("layer/gateway.yaml", &gateway);
    Behind::shared_as_mapped(kind, disk)
}

fn responses_backend() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| routes("openai-responses"));
    &SHARED
}

fn chat_backend() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| routes("openai-chat"));
    &SHARED
}

fn on(profile: &str, dialect: &str, model: &str, stream: bool) -> Request {
    let path = if dialect == "chat" { "chat/completions" } else { "responses" };
    asking(dialect, model, stream).at(&format!("/{profile}/v1/{path}"))
}

/// Half an answer, from both kinds of backend.
fn halves(model: &str) -> [(&'static Behind, &'static str); 2] {
    let half = Answer::sse_raw(events(&[created(), text_delta("Half")]));
    responses_backend().plays(model, half);
    chat_backend().plays(model, Answer::sse_raw(data(&word("Half"))));
    [(responses_backend(), "a Responses backend"), (chat_backend(), "a Chat backend")]
}

#[test]
fn ac_003_partial_incomplete_is_an_answer_that_was_cut() {
    for (behind, of) in halves("p-cut") {
        let body = behind.server.ask(on("cut", "responses", "p-cut", false)).json();
        let cut = json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" }, "error": null, "output": [{ "status": "incomplete", "content": [{ "text": "Half" }] }] });
        holds(&cut, &body);
        let reply = behind.server.ask(on("cut", "chat", "p-cut", false));
        assert_eq!(reply.status(), 200, "{of}");
        holds(&json!({ "choices": [{ "message": { "content": "Half" }, "finish_reason": "length" }] }), &reply.json());
        // A client is told of a cut; who runs the gateway, why.
        let id = reply.header("x-request-id").unwrap();
        let log = behind.server.wait_for_log(&format!("bridged id=\"{id}\""));
        let of_it = |word: &str| log.lines().filter(|l| l.contains(id) && l.contains(word)).count();
        assert_eq!(of_it("a turn was cut short"), 1, "{log}");
        assert_eq!(of_it("kind=\"truncated\""), 1, "{log}");
        assert_eq!(of_it("outcome=\"partial\""), 1, "{log}");
    }
}

#[test]
fn ac_003_partial_error502_is_an_error() {
    for (behind, of) in halves("p-refused") {
        for dialect in ["responses", "chat"] {
            let reply = behind.server.ask(on("refused", dialect, "p-refused", false));
            assert_eq!(reply.status(), 502, "{of} {dialect}");
            let error = json!({ "message": "the backend's answer ended in the middle", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{of} {dialect}");
        }
    }
}

#[test]
fn ac_003_partial_failed_is_said_in_the_body_where_the_body_can() {
    for (behind, of) in halves("p-told") {
        let body = behind.server.ask(on("told", "responses", "p-told", false)).json();
        holds(
            &json!({ "status": "failed", "error": { "code": "server_error", "message": "the backend's answer ended in the middle" }, "output": [{ "status": "incomplete", "content": [{ "text": "Half" }] }] }),
            &body,
        );
        assert_eq!(behind.server.ask(on("told", "chat", "p-told", false)).status(), 502, "{of}");
    }
}

#[test]
fn ac_003_a_silent_backend_is_partial_by_the_same_policies() {
    let behind = responses_backend();
    behind.plays("p-silent", Answer::sse_raw(events(&[created(), text_delta("Half")])).stall());
    let ask = |profile: &str, dialect: &str| behind.server.ask(on(profile, dialect, "p-silent", false));
    assert_eq!(ask("cut", "responses").json()["status"], "incomplete");
    assert_eq!(ask("cut", "chat").json()["choices"][0]["finish_reason"], "length");
    assert_eq!(ask("told", "responses").json()["status"], "failed");
    assert_eq!(ask("refused", "responses").status(), 504);
    assert_eq!(ask("refused", "chat").status(), 504);
}

#[test]
fn ac_003_empty_failed_is_a_body_that_says_so() {
    responses_backend().plays("p-empty", Answer::sse(&[]));
    let body = responses_backend().server.ask(on("told", "responses", "p-empty", false)).json();
    holds(
        &json!({ "status": "failed", "error": { "message": "the backend ended without an answer" }, "output": [], "usage": null }),
        &body,
    );
}

#[test]
fn ac_003_malformed_fail_ends_the_answer_where_it_is() {
    let before = "data: {oops\n\n".to_owned() + &events(&[created(), text_delta("Late"), completed()]);
    let between =
        events(&[created(), text_delta("Half")]) + "data: {oops\n\n" + &events(&[text_delta("Late"), completed()]);
    let behind = responses_backend();
    behind.plays("p-before", Answer::sse_raw(before));
    behind.plays("p-between", Answer::sse_raw(between));
    let ask = |dialect: &str, model: &str, stream: bool| behind.server.ask(on("strict", dialect, model, stream));
    let why = "a piece of the backend's answer cannot be read: ";
    for (dialect, stream) in [("responses", false), ("responses", true), ("chat", false), ("chat", true)] {
        let reply = ask(dialect, "p-before", stream);
        assert_eq!(reply.status(), 502, "{dialect} {stream}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().starts_with(why), "{}", reply.text());
    }
    let body = ask("responses", "p-between", false).json();
    holds(&json!({ "status": "failed", "output": [{ "content": [{ "text": "Half" }] }] }), &body);
    assert!(body["error"]["message"].as_str().unwrap().starts_with(why), "{body}");
    assert_eq!(ask("chat", "p-between", false).status(), 502);
    let told = ask("chat", "p-between", true).told();
    assert_eq!(names(&told), ["chunk", "chunk", "error"]);
    let told = ask("responses", "p-between", true).told();
    assert_eq!(names(&told)[names(&told).len() - 2..], ["response.failed", "[DONE]"]);
    // The others skip it.
    let reply = behind.server.ask(on("plain", "chat", "p-between", false));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "HalfLate");
}

#[test]
fn ac_003_an_answer_that_is_kept_has_a_limit() {
    let words: Vec<Value> = (0..40).map(|_| text_delta(&"x".repeat(100))).collect();
    let all = event(&created()) + &events(&words) + &event(&completed());
    let behind = responses_backend();
    behind.plays("p-large", Answer::sse_raw(&all).split(512).pace(Duration::from_millis(1)));
    let why = "the backend's answer is larger than 4096 bytes";
    let reply = behind.server.ask(on("plain", "chat", "p-large", false));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (502, &json!(why)));
    let body = behind.server.ask(on("plain", "responses", "p-large", false)).json();
    holds(&json!({ "status": "failed", "error": { "message": why } }), &body);
    let kept = body["output"][0]["content"][0]["text"].as_str().unwrap().len();
    assert!((100..2000).contains(&kept), "{kept}");
    // A stream is not kept, so it may be as long as it likes.
    let told = behind.server.ask(on("plain", "chat", "p-large", true)).told();
    let said: usize = told[..told.len() - 1]
        .iter()
        .map(|t| t.json()["choices"][0]["delta"]["content"].as_str().map_or(0, str::len))
        .sum();
    assert_eq!(said, 4000);
    // The same from one document, and from the other kind of backend.
    let long = "x".repeat(5000);
    behind.plays(
        "p-json",
        Answer::json(
            200,
            &super::support::backend_events::response(&json!([super::support::backend_events::message("m", &long)]))
                .to_string(),
        ),
    );
    let reply = behind.server.ask(on("plain", "responses", "p-json", false));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (502, &json!(why)));
    chat_backend().plays("p-large", Answer::sse_raw(chat_stream(&[&long])));
    assert_eq!(chat_backend().server.ask(on("plain", "chat", "p-large", false)).status(), 502);
}
