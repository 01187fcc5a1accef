//! The converter's six unit tests, seen from outside: a client that wants JSON, a backend that sends events.

use super::support::backend_events::{
    call, completed, created, event, events, item_done, message, reasoning, text_delta,
};
use super::support::{Answer, Reply, asking, holds};
use super::{codex_proxy, openai};
use serde_json::{Value, json};

/// The body, without what is new in every answer; that is looked at first.
pub fn settled(reply: &Reply, time: &str) -> Value {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let mut body = reply.json();
    assert!(body["id"].as_str().is_some_and(|id| id.len() > 16 && id.starts_with("resp_")), "a bad id: {body}");
    assert!(body[time].as_i64().is_some_and(|seconds| seconds > 1_750_000_000), "a bad time: {body}");
    (body["id"], body[time]) = (json!("ID"), json!(0));
    for item in body["output"].as_array_mut().unwrap() {
        assert!(item["id"].as_str().is_some_and(|id| id.len() > 4), "a bad id: {item}");
        item["id"] = json!("ITEM");
    }
    body
}

/// The whole body of profile `codex-proxy`.
pub fn proxied(status: &str, output: &Value, usage: &Value) -> Value {
    json!({ "id": "ID", "object": "response", "created": 0, "status": status, "model": "up-model", "output": output, "usage": usage })
}

pub fn said(text: &str) -> Value {
    json!({ "id": "ITEM", "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

pub fn official(text: &str, status: &str) -> Value {
    let part = json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
    json!({ "id": "ITEM", "type": "message", "status": status, "role": "assistant", "content": [part] })
}

pub fn counted() -> Value {
    json!({ "input_tokens": 11, "output_tokens": 4, "total_tokens": 15 })
}

pub fn zeros() -> Value {
    json!({ "input_tokens": 0, "output_tokens": 0, "total_tokens": 0 })
}

#[test]
fn ac_003_a_simple_message_becomes_one_body() {
    let stream = events(&[
        created(),
        text_delta("Good "),
        text_delta("day."),
        item_done(0, &message("msg_up", "Good day.")),
        completed(),
    ]);
    let reply = codex_proxy().ask("simple", Answer::sse_raw(&stream), asking("responses", "simple", false));
    assert_eq!(settled(&reply, "created"), proxied("completed", &json!([said("Good day.")]), &counted()));

    let reply = openai().ask("simple", Answer::sse_raw(&stream), asking("responses", "simple", false));
    let body = settled(&reply, "created_at");
    assert_eq!(body["output"], json!([official("Good day.", "completed")]));
    let usage = json!({ "input_tokens": 11, "input_tokens_details": { "cached_tokens": 2, "cache_write_tokens": 0 }, "output_tokens": 4, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15 });
    assert_eq!(body["usage"], usage);
    holds(
        &json!({ "object": "response", "status": "completed", "model": "up-model", "error": null, "incomplete_details": null }),
        &body,
    );
}

#[test]
fn ac_003_reasoning_becomes_an_item_before_the_message() {
    let stream = events(&[
        created(),
        item_done(0, &reasoning("rs_up", "Weighing it.")),
        item_done(1, &message("msg_up", "Yes.")),
        completed(),
    ]);
    let reply = openai().ask("reasoning", Answer::sse_raw(&stream), asking("responses", "reasoning", false));
    let thought = json!({ "id": "ITEM", "type": "reasoning", "status": "completed", "summary": [{ "type": "summary_text", "text": "Weighing it." }] });
    let body = settled(&reply, "created_at");
    assert_eq!(body["output"], json!([thought, official("Yes.", "completed")]));

    // This profile shows no reasoning, in bodies as in streams.
    let reply = codex_proxy().ask("reasoning", Answer::sse_raw(&stream), asking("responses", "reasoning", false));
    assert_eq!(settled(&reply, "created"), proxied("completed", &json!([said("Yes.")]), &counted()));
}

#[test]
fn ac_003_tool_calls_become_items_with_whole_arguments() {
    let stream = events(&[
        created(),
        item_done(0, &call("fc_up1", "call_1", "look", r#"{"at":"sky"}"#)),
        item_done(1, &call("fc_up2", "call_2", "wait", "{}")),
        completed(),
    ]);
    let reply = openai().ask("calls", Answer::sse_raw(&stream), asking("responses", "calls", false));
    let item = |call_id: &str, name: &str, arguments: &str| json!({ "id": "ITEM", "type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": arguments });
    let calls = json!([item("call_1", "look", r#"{"at":"sky"}"#), item("call_2", "wait", "{}")]);
    assert_eq!(settled(&reply, "created_at")["output"], calls);

    // The message comes first, although it is empty; a call has one id.
    let reply = codex_proxy().ask("calls", Answer::sse_raw(&stream), asking("responses", "calls", false));
    assert_eq!(reply.json()["output"][1]["id"], "call_1");
    assert_eq!(reply.json()["output"][2]["id"], "call_2");
    let item = |call_id: &str, name: &str, arguments: &str| json!({ "id": "ITEM", "call_id": call_id, "type": "function_call", "name": name, "arguments": arguments });
    let output = json!([said(""), item("call_1", "look", r#"{"at":"sky"}"#), item("call_2", "wait", "{}")]);
    assert_eq!(settled(&reply, "created"), proxied("completed", &output, &counted()));
}

#[test]
fn ac_003_calls_that_are_streamed_in_pieces_are_joined() {
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "id": "fc_up", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "" } });
    let piece = |text: &str| json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_up", "output_index": 0, "delta": text });
    let stream = events(&[created(), added, piece("{\"at\":"), piece("\"sky\"}"), completed()]);
    let reply = openai().ask("pieces", Answer::sse_raw(&stream).split(3), asking("responses", "pieces", false));
    holds(
        &json!([{ "call_id": "call_1", "name": "look", "arguments": "{\"at\":\"sky\"}" }]),
        &settled(&reply, "created_at")["output"],
    );
}

#[test]
fn ac_003_an_empty_stream_is_completed_without_output() {
    let reply = codex_proxy().ask("nothing", Answer::sse(&[]), asking("responses", "nothing", false));
    let mut expected = proxied("completed", &json!([]), &zeros());
    expected["model"] = json!("nothing");
    assert_eq!(settled(&reply, "created"), expected);

    let reply = openai().ask("nothing", Answer::sse(&[]), asking("responses", "nothing", false));
    assert_eq!(reply.status(), 502);
    holds(
        &json!({ "error": { "message": "the backend ended without an answer", "type": "server_error" } }),
        &reply.json(),
    );
}

#[test]
fn ac_003_a_partial_stream_is_failed_with_what_came() {
    let stream = events(&[created(), text_delta("Half of "), text_delta("it")]);
    for (model, answer) in [("partial", Answer::sse_raw(&stream)), ("lost", Answer::sse_raw(&stream).cut())] {
        let reply = codex_proxy().ask(model, answer.clone(), asking("responses", model, false));
        assert_eq!(settled(&reply, "created"), proxied("failed", &json!([said("Half of it")]), &zeros()));

        let reply = openai().ask(model, answer, asking("responses", model, false));
        let body = settled(&reply, "created_at");
        assert_eq!(body["output"], json!([official("Half of it", "incomplete")]));
        holds(&json!({ "status": "failed", "error": { "code": "server_error" }, "usage": null }), &body);
    }
}

#[test]
fn ac_003_malformed_events_are_skipped_and_the_rest_is_read() {
    let mut stream = event(&created());
    stream += "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"lo\n\n";
    stream += "data: not json\n\ndata: 7\n\ndata: [1]\n\nevent: response.output_text.delta\n\ndata:\n\n: a comment\n\n";
    stream += &events(&[item_done(0, &message("msg_up", "Still here.")), completed()]);
    let reply = codex_proxy().ask("malformed", Answer::sse_raw(&stream), asking("responses", "malformed", false));
    assert_eq!(settled(&reply, "created"), proxied("completed", &json!([said("Still here.")]), &counted()));
    let reply = openai().ask("malformed", Answer::sse_raw(&stream), asking("responses", "malformed", false));
    assert_eq!(settled(&reply, "created_at")["output"], json!([official("Still here.", "completed")]));
}
