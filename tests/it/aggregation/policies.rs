//! The aggregation policies, each on its own route, and the size limit of aggregated responses.

use crate::support::backend_events::{chat_stream, completed, created, data, event, events, text_delta, word};
use crate::support::sse::names;
use crate::support::{MockResponse, Request, TestDir, TestGateway, assert_contains, dialect_request, edited, repo};
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

const PROFILES: [(&str, &str); 5] = [
    ("strict", "aggregate.on_malformed: fail"),
    ("incomplete", "aggregate.on_partial: incomplete"),
    ("error", "aggregate.on_partial: error"),
    ("failed", "aggregate.on_partial: { responses: failed }, aggregate.on_empty: { responses: failed }"),
    ("plain", "aggregate.on_malformed: skip"),
];

/// A gateway with the routes `/PROFILE/v1/responses` and `/PROFILE/v1/chat/completions` for each profile.
fn routes(kind: &str) -> TestGateway {
    let dir = TestDir::empty();
    let mut routes = "routes:\n".to_owned();
    for (name, policies) in PROFILES {
        dir.write(&format!("layer/profiles/{name}.yaml"), &format!("profile: {name}\npolicies: {{ {policies} }}\n"));
        for (dialect, path) in [("chat", "chat/completions"), ("responses", "responses")] {
            routes += &format!("  - {{ endpoint: POST /{name}/v1/{path}, dialect: {dialect}, profile: {name} }}\n");
        }
    }
    let gateway = edited(&repo("mappings/gateway.yaml"), "routes:\n", &routes);
    let gateway = edited(&gateway, "answer_bytes: 16MiB", "answer_bytes: 4KiB");
    let gateway = edited(&gateway, "first_event: 300s\n  idle: 300s", "first_event: 10s\n  idle: 300ms");
    dir.write("layer/gateway.yaml", &gateway);
    TestGateway::shared_with_route_profiles(kind, dir)
}

fn responses_backend() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> = LazyLock::new(|| routes("openai-responses"));
    &SHARED
}

fn chat_backend() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> = LazyLock::new(|| routes("openai-chat"));
    &SHARED
}

fn request_on(profile: &str, dialect: &str, model: &str, stream: bool) -> Request {
    let path = if dialect == "chat" { "chat/completions" } else { "responses" };
    dialect_request(dialect, model, stream).at(&format!("/{profile}/v1/{path}"))
}

/// A partial response from both kinds of backend.
fn partial_responses(model: &str) -> [(&'static TestGateway, &'static str); 2] {
    let half = MockResponse::sse_raw(events(&[created(), text_delta("Half")]));
    responses_backend().set_response(model, half);
    chat_backend().set_response(model, MockResponse::sse_raw(data(&word("Half"))));
    [(responses_backend(), "a Responses backend"), (chat_backend(), "a Chat backend")]
}

#[test]
fn partial_incomplete_gives_an_incomplete_response() {
    for (gateway, of) in partial_responses("p-incomplete") {
        let body = gateway.server.fetch(request_on("incomplete", "responses", "p-incomplete", false)).json();
        let cut = json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" }, "error": null, "output": [{ "status": "incomplete", "content": [{ "text": "Half" }] }] });
        assert_contains(&cut, &body);
        let reply = gateway.server.fetch(request_on("incomplete", "chat", "p-incomplete", false));
        assert_eq!(reply.status(), 200, "{of}");
        assert_contains(
            &json!({ "choices": [{ "message": { "content": "Half" }, "finish_reason": "length" }] }),
            &reply.json(),
        );
        // The client gets a truncated response; the log has the reason.
        let id = reply.header("x-request-id").unwrap();
        let log = gateway.server.wait_for_log(&format!("response converted id=\"{id}\""));
        let of_it = |word: &str| log.lines().filter(|l| l.contains(id) && l.contains(word)).count();
        assert_eq!(of_it("a turn was truncated"), 1, "{log}");
        assert_eq!(of_it("kind=\"truncated\""), 1, "{log}");
        // In the line of the turn, and in the one of the conversion.
        assert_eq!(of_it("outcome=\"partial\""), 2, "{log}");
    }
}

#[test]
fn partial_error_gives_an_http_error() {
    for (gateway, of) in partial_responses("p-error") {
        for dialect in ["responses", "chat"] {
            let reply = gateway.server.fetch(request_on("error", dialect, "p-error", false));
            assert_eq!(reply.status(), 502, "{of} {dialect}");
            let error = json!({ "message": "the backend's response ended before it was complete", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{of} {dialect}");
        }
    }
}

#[test]
fn partial_failed_gives_a_failed_body_where_the_dialect_has_one() {
    for (gateway, of) in partial_responses("p-failed") {
        let body = gateway.server.fetch(request_on("failed", "responses", "p-failed", false)).json();
        assert_contains(
            &json!({ "status": "failed", "error": { "code": "server_error", "message": "the backend's response ended before it was complete" }, "output": [{ "status": "incomplete", "content": [{ "text": "Half" }] }] }),
            &body,
        );
        assert_eq!(gateway.server.fetch(request_on("failed", "chat", "p-failed", false)).status(), 502, "{of}");
    }
}

#[test]
fn an_idle_backend_is_handled_by_the_same_policies() {
    let gateway = responses_backend();
    gateway.set_response("p-silent", MockResponse::sse_raw(events(&[created(), text_delta("Half")])).stall());
    let fetch = |profile: &str, dialect: &str| gateway.server.fetch(request_on(profile, dialect, "p-silent", false));
    assert_eq!(fetch("incomplete", "responses").json()["status"], "incomplete");
    assert_eq!(fetch("incomplete", "chat").json()["choices"][0]["finish_reason"], "length");
    assert_eq!(fetch("failed", "responses").json()["status"], "failed");
    assert_eq!(fetch("error", "responses").status(), 504);
    assert_eq!(fetch("error", "chat").status(), 504);
}

#[test]
fn empty_failed_gives_a_failed_body() {
    responses_backend().set_response("p-empty", MockResponse::sse(&[]));
    let body = responses_backend().server.fetch(request_on("failed", "responses", "p-empty", false)).json();
    assert_contains(
        &json!({ "status": "failed", "error": { "message": "the backend ended without an answer" }, "output": [], "usage": null }),
        &body,
    );
}

#[test]
fn malformed_fail_ends_the_response() {
    let before = "data: {oops\n\n".to_owned() + &events(&[created(), text_delta("Late"), completed()]);
    let between =
        events(&[created(), text_delta("Half")]) + "data: {oops\n\n" + &events(&[text_delta("Late"), completed()]);
    let gateway = responses_backend();
    gateway.set_response("p-before", MockResponse::sse_raw(before));
    gateway.set_response("p-between", MockResponse::sse_raw(between));
    let fetch =
        |dialect: &str, model: &str, stream: bool| gateway.server.fetch(request_on("strict", dialect, model, stream));
    let why = "an event of the backend cannot be parsed: ";
    for (dialect, stream) in [("responses", false), ("responses", true), ("chat", false), ("chat", true)] {
        let reply = fetch(dialect, "p-before", stream);
        assert_eq!(reply.status(), 502, "{dialect} {stream}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().starts_with(why), "{}", reply.text());
    }
    let body = fetch("responses", "p-between", false).json();
    assert_contains(&json!({ "status": "failed", "output": [{ "content": [{ "text": "Half" }] }] }), &body);
    assert!(body["error"]["message"].as_str().unwrap().starts_with(why), "{body}");
    assert_eq!(fetch("chat", "p-between", false).status(), 502);
    let messages = fetch("chat", "p-between", true).sse_messages();
    assert_eq!(names(&messages), ["chunk", "chunk", "error"]);
    let messages = fetch("responses", "p-between", true).sse_messages();
    assert_eq!(names(&messages)[names(&messages).len() - 2..], ["response.failed", "[DONE]"]);
    // The other profiles skip the malformed event.
    let reply = gateway.server.fetch(request_on("plain", "chat", "p-between", false));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "HalfLate");
}

#[test]
fn an_aggregated_response_has_a_size_limit() {
    let words: Vec<Value> = (0..40).map(|_| text_delta(&"x".repeat(100))).collect();
    let all = event(&created()) + &events(&words) + &event(&completed());
    let gateway = responses_backend();
    gateway.set_response("p-large", MockResponse::sse_raw(&all).split(512).pause_between(Duration::from_millis(1)));
    let why = "the backend's response is larger than 4096 bytes";
    let reply = gateway.server.fetch(request_on("plain", "chat", "p-large", false));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (502, &json!(why)));
    let body = gateway.server.fetch(request_on("plain", "responses", "p-large", false)).json();
    assert_contains(&json!({ "status": "failed", "error": { "message": why } }), &body);
    let kept = body["output"][0]["content"][0]["text"].as_str().unwrap().len();
    assert!((100..2000).contains(&kept), "{kept}");
    // A stream is not buffered, so its length is not limited.
    let messages = gateway.server.fetch(request_on("plain", "chat", "p-large", true)).sse_messages();
    let length: usize = messages[..messages.len() - 1]
        .iter()
        .map(|t| t.json()["choices"][0]["delta"]["content"].as_str().map_or(0, str::len))
        .sum();
    assert_eq!(length, 4000);
    // The same for a JSON body, and for the other kind of backend.
    let long = "x".repeat(5000);
    gateway.set_response(
        "p-json",
        MockResponse::json(
            200,
            &crate::support::backend_events::response(&json!([crate::support::backend_events::message("m", &long)]))
                .to_string(),
        ),
    );
    let reply = gateway.server.fetch(request_on("plain", "responses", "p-json", false));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (502, &json!(why)));
    chat_backend().set_response("p-large", MockResponse::sse_raw(chat_stream(&[&long])));
    assert_eq!(chat_backend().server.fetch(request_on("plain", "chat", "p-large", false)).status(), 502);
}
