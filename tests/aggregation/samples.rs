//! The shapes of streams that the mission's converter was tried with, and what it demands of them: ids, time, status,
//! items and usage stand in the body as they came.

use super::support::backend_events::{call, completed, created, event, events, item_done, message, reasoning};
use super::support::{Answer, Behind, Disk, asking, holds};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The shapes of `openai`, with the mission's choices about ids and about what is not there.
fn mission() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| {
        let disk = Disk::empty();
        let policies = "{ ids: backend, stream2json.on_empty: completed, stream2json.usage: zeros }";
        disk.write("layer/profiles/mission.yaml", &format!("profile: mission\npolicies: {policies}\n"));
        Behind::shared("openai-responses", "mission", disk)
    });
    &SHARED
}

/// What the body of a JSON client holds.
fn body_of(model: &str, stream: &str) -> Value {
    // Also cut anywhere: the shape of a stream is not the shape of its packets.
    let whole = mission().ask(model, Answer::sse_raw(stream), asking("responses", model, false));
    assert_eq!(whole.status(), 200, "{}", whole.text());
    let torn = format!("{model}-torn");
    let again = mission().ask(&torn, Answer::sse_raw(stream).split(1), asking("responses", &torn, false));
    for key in ["status", "output", "usage"] {
        let known = |body: Value| serde_json::to_string(&body[key]).unwrap().len();
        assert_eq!(known(whole.json()), known(again.json()), "{key}");
    }
    whole.json()
}

fn expected(status: &str, output: &Value, usage: &Value) -> Value {
    json!({ "id": "resp_up1", "object": "response", "created_at": 1_750_000_000, "status": status, "output": output, "usage": usage })
}

fn counted() -> Value {
    json!({ "input_tokens": 11, "output_tokens": 4, "total_tokens": 15 })
}

fn zeros() -> Value {
    json!({ "input_tokens": 0, "output_tokens": 0, "total_tokens": 0 })
}

#[test]
fn ac_003_sample_crlf() {
    let stream = events(&[created(), item_done(0, &message("msg_a", "wide lines")), completed()]).replace('\n', "\r\n");
    holds(&expected("completed", &json!([message("msg_a", "wide lines")]), &counted()), &body_of("crlf", &stream));
}

#[test]
fn ac_003_sample_empty() {
    let body = body_of("empty", "");
    holds(&json!({ "object": "response", "status": "completed", "output": [], "usage": zeros() }), &body);
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("resp_") && id.len() > 16), "{body}");
    assert!(body["created_at"].as_i64().is_some_and(|seconds| seconds > 1_750_000_000), "{body}");
}

#[test]
fn ac_003_sample_failed() {
    let failed = json!({ "type": "response.failed", "response": { "id": "resp_up1", "status": "failed", "error": { "code": "c", "message": "it broke" } } });
    let stream = events(&[created(), item_done(0, &message("msg_a", "so far")), failed]);
    let body = body_of("failed", &stream);
    holds(&expected("failed", &json!([message("msg_a", "so far")]), &zeros()), &body);
    assert_eq!(body["error"]["message"], "it broke");
}

#[test]
fn ac_003_sample_full() {
    let items = [reasoning("rs_a", "hm"), message("msg_b", "there"), call("fc_c", "call_5", "go", "{\"to\":2}")];
    let mut all = vec![created()];
    all.extend(items.iter().enumerate().map(|(index, item)| item_done(index, item)));
    all.push(completed());
    let stream = events(&all) + "event: done\ndata: [DONE]\n\n";
    holds(&expected("completed", &json!(items), &counted()), &body_of("full", &stream));
}

#[test]
fn ac_003_sample_incomplete() {
    let incomplete = json!({ "type": "response.incomplete", "response": { "id": "resp_up1", "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } } });
    let stream = events(&[created(), item_done(0, &message("msg_a", "too lo")), incomplete]);
    let body = body_of("incomplete", &stream);
    holds(&expected("incomplete", &json!([message("msg_a", "too lo")]), &zeros()), &body);
    assert_eq!(body["incomplete_details"], json!({ "reason": "max_output_tokens" }));
}

#[test]
fn ac_003_sample_index_gap() {
    let item = call("fc_c", "call_5", "go", "{\"to\":2}");
    let stream = events(&[created(), item_done(2, &item), completed()]);
    holds(&expected("completed", &json!([item]), &counted()), &body_of("gap", &stream));
}

#[test]
fn ac_003_sample_malformed_event() {
    let mut stream = event(&created()) + "event: response.output_item.done\ndata: {broken\n\n";
    stream += &events(&[item_done(0, &message("msg_a", "whole")), completed()]);
    holds(&expected("completed", &json!([message("msg_a", "whole")]), &counted()), &body_of("malformed", &stream));
}

#[test]
fn ac_003_sample_no_event_line() {
    let stream = "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3}}}\n\n";
    let body = body_of("no-event-line", stream);
    holds(&json!({ "object": "response", "status": "completed", "output": [], "usage": { "input_tokens": 3 } }), &body);
}

#[test]
fn ac_003_sample_no_event_line_anywhere() {
    let all = [created(), item_done(0, &message("msg_a", "unnamed")), completed()];
    let stream: String = all.iter().map(|data| format!("data: {data}\n\n")).collect();
    holds(&expected("completed", &json!([message("msg_a", "unnamed")]), &counted()), &body_of("unnamed", &stream));
}

#[test]
fn ac_003_sample_no_trailing_blank() {
    let stream = events(&[created(), item_done(0, &message("msg_a", "to the end")), completed()]);
    let stream = stream.trim_end();
    holds(&expected("completed", &json!([message("msg_a", "to the end")]), &counted()), &body_of("no-blank", stream));
}

#[test]
fn ac_003_sample_only_text_deltas() {
    let delta = json!({ "type": "response.output_text.delta", "delta": "bare", "output_index": 0 });
    let stream = events(&[created(), delta, completed()]);
    let said =
        json!([{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "bare" }] }]);
    holds(&expected("completed", &said, &counted()), &body_of("deltas", &stream));
}

#[test]
fn ac_003_sample_partial_no_terminal() {
    let stream = events(&[created(), item_done(0, &message("msg_a", "a part"))]);
    holds(&expected("failed", &json!([message("msg_a", "a part")]), &zeros()), &body_of("partial", &stream));
}
