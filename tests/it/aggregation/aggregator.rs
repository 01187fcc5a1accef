//! Aggregating a stream into a body: the client requests JSON, the backend streams.

use super::{codex_proxy, openai};
use crate::support::backend_events::{
    call, completed, created, event, events, item_done, message, reasoning, text_delta,
};
use crate::support::{MockResponse, Reply, assert_contains, dialect_request};
use serde_json::{Value, json};

/// Checks the ids and times of a body and replaces them by fixed values.
pub fn normalized_body(reply: &Reply, time: &str) -> Value {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let mut body = reply.json();
    assert!(body["id"].as_str().is_some_and(|id| id.len() > 16 && id.starts_with("resp_")), "a bad id: {body}");
    assert!(body[time].as_i64().is_some_and(|seconds| seconds > 1_750_000_000), "a bad time: {body}");
    (body["id"], body[time]) = (json!("ID"), json!(0));
    if time == "created" {
        // The name that the client requested.
        assert!(body["model"].as_str().is_some_and(|model| model != "up-model"), "{body}");
        body["model"] = json!("MODEL");
    }
    for item in body["output"].as_array_mut().unwrap() {
        assert!(item["id"].as_str().is_some_and(|id| id.len() > 4), "a bad id: {item}");
        item["id"] = json!("ITEM");
    }
    body
}

/// A complete body of the profile `codex-proxy`.
pub fn proxied_body(status: &str, output: &Value, usage: &Value) -> Value {
    json!({ "id": "ID", "object": "response", "created": 0, "status": status, "model": "MODEL", "output": output, "usage": usage })
}

/// One for which the backend reported no usage: the profile invents none.
pub fn proxied_body_without_usage(status: &str, output: &Value) -> Value {
    let mut body = proxied_body(status, output, &Value::Null);
    body.as_object_mut().unwrap().remove("usage");
    body
}

pub fn proxied_message(text: &str) -> Value {
    json!({ "id": "ITEM", "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

pub fn openai_message(text: &str, status: &str) -> Value {
    let part = json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
    json!({ "id": "ITEM", "type": "message", "status": status, "role": "assistant", "content": [part] })
}

pub fn reported_usage() -> Value {
    json!({ "input_tokens": 11, "output_tokens": 4, "total_tokens": 15 })
}

#[test]
fn a_simple_message_becomes_one_body() {
    let stream = events(&[
        created(),
        text_delta("Good "),
        text_delta("day."),
        item_done(0, &message("msg_up", "Good day.")),
        completed(),
    ]);
    let reply =
        codex_proxy().fetch("simple", MockResponse::sse_raw(&stream), dialect_request("responses", "simple", false));
    assert_eq!(
        normalized_body(&reply, "created"),
        proxied_body("completed", &json!([proxied_message("Good day.")]), &reported_usage())
    );

    let reply = openai().fetch("simple", MockResponse::sse_raw(&stream), dialect_request("responses", "simple", false));
    let body = normalized_body(&reply, "created_at");
    assert_eq!(body["output"], json!([openai_message("Good day.", "completed")]));
    let usage = json!({ "input_tokens": 11, "input_tokens_details": { "cached_tokens": 2, "cache_write_tokens": 0 }, "output_tokens": 4, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15 });
    assert_eq!(body["usage"], usage);
    assert_contains(
        &json!({ "object": "response", "status": "completed", "model": "up-model", "error": null, "incomplete_details": null }),
        &body,
    );
}

#[test]
fn reasoning_becomes_an_item_before_the_message() {
    let stream = events(&[
        created(),
        item_done(0, &reasoning("rs_up", "Weighing it.")),
        item_done(1, &message("msg_up", "Yes.")),
        completed(),
    ]);
    let reply =
        openai().fetch("reasoning", MockResponse::sse_raw(&stream), dialect_request("responses", "reasoning", false));
    let thought = json!({ "id": "ITEM", "type": "reasoning", "status": "completed", "summary": [{ "type": "summary_text", "text": "Weighing it." }] });
    let body = normalized_body(&reply, "created_at");
    assert_eq!(body["output"], json!([thought, openai_message("Yes.", "completed")]));

    // This profile drops reasoning, in bodies and in streams.
    let reply = codex_proxy().fetch(
        "reasoning",
        MockResponse::sse_raw(&stream),
        dialect_request("responses", "reasoning", false),
    );
    assert_eq!(
        normalized_body(&reply, "created"),
        proxied_body("completed", &json!([proxied_message("Yes.")]), &reported_usage())
    );
}

#[test]
fn tool_calls_become_items_with_complete_arguments() {
    let stream = events(&[
        created(),
        item_done(0, &call("fc_up1", "call_1", "look", r#"{"at":"sky"}"#)),
        item_done(1, &call("fc_up2", "call_2", "wait", "{}")),
        completed(),
    ]);
    let reply = openai().fetch("calls", MockResponse::sse_raw(&stream), dialect_request("responses", "calls", false));
    let item = |call_id: &str, name: &str, arguments: &str| json!({ "id": "ITEM", "type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": arguments });
    let calls = json!([item("call_1", "look", r#"{"at":"sky"}"#), item("call_2", "wait", "{}")]);
    assert_eq!(normalized_body(&reply, "created_at")["output"], calls);

    // The message is first, even if it is empty; the ids of a call are the same.
    let reply =
        codex_proxy().fetch("calls", MockResponse::sse_raw(&stream), dialect_request("responses", "calls", false));
    assert_eq!(reply.json()["output"][1]["id"], "call_1");
    assert_eq!(reply.json()["output"][2]["id"], "call_2");
    let item = |call_id: &str, name: &str, arguments: &str| json!({ "id": "ITEM", "call_id": call_id, "type": "function_call", "name": name, "arguments": arguments });
    let output = json!([proxied_message(""), item("call_1", "look", r#"{"at":"sky"}"#), item("call_2", "wait", "{}")]);
    assert_eq!(normalized_body(&reply, "created"), proxied_body("completed", &output, &reported_usage()));
}

#[test]
fn tool_call_deltas_are_joined() {
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "id": "fc_up", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "" } });
    let delta = |text: &str| json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_up", "output_index": 0, "delta": text });
    let stream = events(&[created(), added, delta("{\"at\":"), delta("\"sky\"}"), completed()]);
    let reply = openai().fetch(
        "deltas",
        MockResponse::sse_raw(&stream).split(3),
        dialect_request("responses", "deltas", false),
    );
    assert_contains(
        &json!([{ "call_id": "call_1", "name": "look", "arguments": "{\"at\":\"sky\"}" }]),
        &normalized_body(&reply, "created_at")["output"],
    );
}

#[test]
fn an_empty_stream_is_completed_without_output() {
    let reply = codex_proxy().fetch("nothing", MockResponse::sse(&[]), dialect_request("responses", "nothing", false));
    let expected = proxied_body_without_usage("completed", &json!([]));
    assert_eq!(normalized_body(&reply, "created"), expected);

    let reply = openai().fetch("nothing", MockResponse::sse(&[]), dialect_request("responses", "nothing", false));
    assert_eq!(reply.status(), 502);
    assert_contains(
        &json!({ "error": { "message": "the backend ended without an answer", "type": "server_error" } }),
        &reply.json(),
    );
}

#[test]
fn a_partial_stream_is_failed_with_the_received_output() {
    let stream = events(&[created(), text_delta("Half of "), text_delta("it")]);
    for (model, answer) in
        [("partial", MockResponse::sse_raw(&stream)), ("lost", MockResponse::sse_raw(&stream).disconnect())]
    {
        let reply = codex_proxy().fetch(model, answer.clone(), dialect_request("responses", model, false));
        assert_eq!(
            normalized_body(&reply, "created"),
            proxied_body_without_usage("failed", &json!([proxied_message("Half of it")]))
        );

        let reply = openai().fetch(model, answer, dialect_request("responses", model, false));
        let body = normalized_body(&reply, "created_at");
        assert_eq!(body["output"], json!([openai_message("Half of it", "incomplete")]));
        assert_contains(&json!({ "status": "failed", "error": { "code": "server_error" }, "usage": null }), &body);
    }
}

#[test]
fn malformed_events_are_skipped_and_the_rest_is_read() {
    let mut stream = event(&created());
    stream += "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"lo\n\n";
    stream += "data: not json\n\ndata: 7\n\ndata: [1]\n\nevent: response.output_text.delta\n\ndata:\n\n: a comment\n\n";
    stream += &events(&[item_done(0, &message("msg_up", "Still here.")), completed()]);
    let reply = codex_proxy().fetch(
        "malformed",
        MockResponse::sse_raw(&stream),
        dialect_request("responses", "malformed", false),
    );
    assert_eq!(
        normalized_body(&reply, "created"),
        proxied_body("completed", &json!([proxied_message("Still here.")]), &reported_usage())
    );
    let reply =
        openai().fetch("malformed", MockResponse::sse_raw(&stream), dialect_request("responses", "malformed", false));
    assert_eq!(normalized_body(&reply, "created_at")["output"], json!([openai_message("Still here.", "completed")]));
}
