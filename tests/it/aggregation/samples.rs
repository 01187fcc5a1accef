//! Aggregation of sample streams with `ids: backend`: ids, time, status, items and usage of the body are those of the
//! backend.

use crate::support::backend_events::{call, completed, created, event, events, item_done, message, reasoning};
use crate::support::{MockResponse, TestDir, TestGateway, assert_contains, dialect_request};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The profile `openai` with ids of the backend, completed empty responses, and zeros for unreported usage.
fn backend_ids() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> = LazyLock::new(|| {
        let dir = TestDir::empty();
        let policies = "{ ids: backend, aggregate.on_empty: completed, usage: zeros }";
        dir.write("layer/profiles/samples.yaml", &format!("profile: samples\npolicies: {policies}\n"));
        TestGateway::shared("openai-responses", "samples", dir)
    });
    &SHARED
}

/// The aggregated body of a stream.
fn body_of(model: &str, stream: &str) -> Value {
    // Also sent byte by byte: the result must not depend on chunk borders.
    let whole = backend_ids().fetch(model, MockResponse::sse_raw(stream), dialect_request("responses", model, false));
    assert_eq!(whole.status(), 200, "{}", whole.text());
    let split_model = format!("{model}-torn");
    let again = backend_ids().fetch(
        &split_model,
        MockResponse::sse_raw(stream).split(1),
        dialect_request("responses", &split_model, false),
    );
    for key in ["status", "output", "usage"] {
        let known = |body: Value| serde_json::to_string(&body[key]).unwrap().len();
        assert_eq!(known(whole.json()), known(again.json()), "{key}");
    }
    whole.json()
}

fn expected(status: &str, output: &Value, usage: &Value) -> Value {
    json!({ "id": "resp_up1", "object": "response", "created_at": 1_750_000_000, "status": status, "output": output, "usage": usage })
}

fn reported_usage() -> Value {
    json!({ "input_tokens": 11, "output_tokens": 4, "total_tokens": 15 })
}

fn zero_usage() -> Value {
    json!({ "input_tokens": 0, "output_tokens": 0, "total_tokens": 0 })
}

#[test]
fn sample_crlf() {
    let stream = events(&[created(), item_done(0, &message("msg_a", "wide lines")), completed()]).replace('\n', "\r\n");
    assert_contains(
        &expected("completed", &json!([message("msg_a", "wide lines")]), &reported_usage()),
        &body_of("crlf", &stream),
    );
}

#[test]
fn sample_empty() {
    let body = body_of("empty", "");
    assert_contains(
        &json!({ "object": "response", "status": "completed", "output": [], "usage": zero_usage() }),
        &body,
    );
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("resp_") && id.len() > 16), "{body}");
    assert!(body["created_at"].as_i64().is_some_and(|seconds| seconds > 1_750_000_000), "{body}");
}

#[test]
fn sample_failed() {
    let failed = json!({ "type": "response.failed", "response": { "id": "resp_up1", "status": "failed", "error": { "code": "c", "message": "it broke" } } });
    let stream = events(&[created(), item_done(0, &message("msg_a", "so far")), failed]);
    let body = body_of("failed", &stream);
    assert_contains(&expected("failed", &json!([message("msg_a", "so far")]), &zero_usage()), &body);
    assert_eq!(body["error"]["message"], "it broke");
}

#[test]
fn sample_full() {
    let items = [reasoning("rs_a", "hm"), message("msg_b", "there"), call("fc_c", "call_5", "go", "{\"to\":2}")];
    let mut all = vec![created()];
    all.extend(items.iter().enumerate().map(|(index, item)| item_done(index, item)));
    all.push(completed());
    let stream = events(&all) + "event: done\ndata: [DONE]\n\n";
    assert_contains(&expected("completed", &json!(items), &reported_usage()), &body_of("full", &stream));
}

#[test]
fn sample_incomplete() {
    let incomplete = json!({ "type": "response.incomplete", "response": { "id": "resp_up1", "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } } });
    let stream = events(&[created(), item_done(0, &message("msg_a", "too lo")), incomplete]);
    let body = body_of("incomplete", &stream);
    assert_contains(&expected("incomplete", &json!([message("msg_a", "too lo")]), &zero_usage()), &body);
    assert_eq!(body["incomplete_details"], json!({ "reason": "max_output_tokens" }));
}

#[test]
fn sample_index_gap() {
    let item = call("fc_c", "call_5", "go", "{\"to\":2}");
    let stream = events(&[created(), item_done(2, &item), completed()]);
    assert_contains(&expected("completed", &json!([item]), &reported_usage()), &body_of("gap", &stream));
}

#[test]
fn sample_malformed_event() {
    let mut stream = event(&created()) + "event: response.output_item.done\ndata: {broken\n\n";
    stream += &events(&[item_done(0, &message("msg_a", "whole")), completed()]);
    assert_contains(
        &expected("completed", &json!([message("msg_a", "whole")]), &reported_usage()),
        &body_of("malformed", &stream),
    );
}

#[test]
fn sample_no_event_line() {
    let stream = "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3}}}\n\n";
    let body = body_of("no-event-line", stream);
    assert_contains(
        &json!({ "object": "response", "status": "completed", "output": [], "usage": { "input_tokens": 3 } }),
        &body,
    );
}

#[test]
fn sample_no_event_line_anywhere() {
    let all = [created(), item_done(0, &message("msg_a", "unnamed")), completed()];
    let stream: String = all.iter().map(|data| format!("data: {data}\n\n")).collect();
    assert_contains(
        &expected("completed", &json!([message("msg_a", "unnamed")]), &reported_usage()),
        &body_of("unnamed", &stream),
    );
}

#[test]
fn sample_no_trailing_blank() {
    let stream = events(&[created(), item_done(0, &message("msg_a", "to the end")), completed()]);
    let stream = stream.trim_end();
    assert_contains(
        &expected("completed", &json!([message("msg_a", "to the end")]), &reported_usage()),
        &body_of("no-blank", stream),
    );
}

#[test]
fn sample_only_text_deltas() {
    let delta = json!({ "type": "response.output_text.delta", "delta": "bare", "output_index": 0 });
    let stream = events(&[created(), delta, completed()]);
    let message =
        json!([{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "bare" }] }]);
    assert_contains(&expected("completed", &message, &reported_usage()), &body_of("deltas", &stream));
}

#[test]
fn sample_partial_no_terminal() {
    let stream = events(&[created(), item_done(0, &message("msg_a", "a part"))]);
    assert_contains(
        &expected("failed", &json!([message("msg_a", "a part")]), &zero_usage()),
        &body_of("partial", &stream),
    );
}
