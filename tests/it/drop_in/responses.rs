//! The Responses API of the proxy, format 1.

use super::{ready, responses, with_key};
use serde_json::{Value, json};

fn body(variables: &[(&str, &str)], mut request: Value) -> Value {
    request["model"] = json!("codex-5");
    let mut body = ready(variables).server.fetch(with_key(responses(request))).json();
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("resp_")), "{body}");
    body.as_object_mut().unwrap().remove("id");
    body
}

fn events(variables: &[(&str, &str)], mut request: Value) -> Vec<Value> {
    (request["model"], request["stream"]) = (json!("codex-5"), json!(true));
    let reply = ready(variables).server.fetch(with_key(responses(request)));
    let messages = reply.sse_messages().into_iter().filter(|message| message.name() != "comment");
    messages.filter_map(|message| serde_json::from_str(message.text()).ok()).collect()
}

/// Lines: responses-body
#[test]
fn a_body_has_the_members_of_the_proxy() {
    let expected = json!({
        "status": "completed", "model": "codex-5",
        "output": [{ "id": "msg_output_0", "type": "message", "role": "assistant",
                     "content": [{ "type": "output_text", "text": "Hello from the worker." }] }],
        "usage": { "input_tokens": 8, "output_tokens": 6, "total_tokens": 14 }
    });
    assert_eq!(body(&[], json!({ "input": "Hi" })), expected);
}

#[test]
fn each_choice_is_a_message_of_the_output() {
    let answer = body(&[], json!({ "input": "Hi", "n": 2 }));
    let messages = answer["output"].as_array().unwrap();
    let ids: Vec<&Value> = messages.iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, ["msg_output_0", "msg_output_1"]);
    assert_eq!(messages[0]["content"][0]["text"], "Hello from the worker.");
    let events = events(&[], json!({ "input": "Hi", "n": 2 }));
    let done = events.iter().filter(|event| event["type"] == "response.output_text.done");
    assert_eq!(done.collect::<Vec<_>>(), [&json!({ "type": "response.output_text.done" })]);
    assert_eq!(events.last().unwrap()["response"]["output"].as_array().unwrap().len(), 2);
}

/// Lines: responses-tool
#[test]
fn text_before_a_call_is_kept() {
    let body = body(&[("FAKE_MODE", "tools"), ("FAKE_TEXT", "Let me look.")], json!({ "input": "Hi" }));
    let content = &body["output"][0]["content"];
    assert_eq!(content[0], json!({ "type": "output_text", "text": "Let me look." }));
    assert_eq!((&content[1]["type"], content.as_array().unwrap().len()), (&json!("tool_use"), 2));
}

/// Lines: responses-previous
#[test]
fn the_id_of_the_previous_response_is_echoed() {
    let body = body(&[], json!({ "input": "Hi", "previous_response_id": "resp_before" }));
    assert_eq!((&body["previous_response_id"], &body["status"]), (&json!("resp_before"), &json!("completed")));
}

/// Lines: responses-textual
#[test]
fn a_block_in_the_text_is_a_call_that_ends_the_response() {
    let settings = [
        ("FAKE_MODE", "textual_tail"),
        ("PROXY_STOP_AFTER_TOOLS", "true"),
        ("PROXY_STOP_AFTER_TOOLS_MODE", "first"),
        ("PROXY_RESPONSES_OUTPUT_MODE", "obsidian-xml"),
    ];
    let events = events(&settings, json!({ "input": "Hi" }));
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["type"] == kind).collect() };
    let text: String = of("response.output_text.delta").iter().map(|event| event["delta"].as_str().unwrap()).collect();
    assert!(text.contains("<use_tool>") && !text.contains("AFTER_TOOL_TEXT"), "{text}");
    let completed = of("response.completed")[0].to_string();
    assert!(completed.contains("<use_tool>") && !completed.contains("AFTER_TOOL_TEXT"), "{completed}");
}

/// Lines: responses-tool
#[test]
fn a_call_is_content_of_the_message() {
    let body =
        body(&[("FAKE_MODE", "tools"), ("PROXY_RESPONSES_OUTPUT_MODE", "openai-json")], json!({ "input": "Hi" }));
    let call = json!({ "type": "tool_use", "id": "tool_fake_1", "name": "lookup_user", "input": { "id": "42" } });
    let message = json!({ "id": "msg_output_0", "type": "message", "role": "assistant", "content": [call] });
    assert_eq!(body["output"], json!([message]));
    assert_eq!(body["usage"], json!({ "input_tokens": 8, "output_tokens": 16, "total_tokens": 24 }));
}

/// Lines: responses-stream
#[test]
fn a_stream_has_the_events_of_the_proxy() {
    let events = events(&[], json!({ "input": "Hi" }));
    let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let expected =
        ["response.created", "response.output_text.delta", "response.output_text.done", "response.completed"];
    assert_eq!(types, expected);
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert_eq!(events[1], json!({ "type": types[1], "delta": "Hello from the worker.", "output_index": 0 }));
    assert_eq!(events[2], json!({ "type": types[2] }));
    assert_eq!(events[3]["response"]["output"][0]["content"][0]["text"], "Hello from the worker.");
}

/// Lines: responses-stream-tool
#[test]
fn the_deltas_of_a_call_are_increments() {
    let settings = [("FAKE_MODE", "tools"), ("PROXY_RESPONSES_OUTPUT_MODE", "openai-json")];
    let events = events(&settings, json!({ "input": "Hi", "stream_options": { "include_usage": true } }));
    let response_id = events[0]["response"]["id"].clone();
    let event = |name: &str, members: Value| {
        let mut event = json!({ "type": format!("response.{name}") });
        event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        event
    };
    let of_call = |name: &str, members: Value| {
        let mut event = event(name, members);
        event["response_id"] = response_id.clone();
        event["output_index"] = json!(0);
        event
    };
    let delta =
        |text: &str| of_call("function_call_arguments.delta", json!({ "item_id": "tool_fake_1", "delta": text }));
    let arguments = r#"{"id":"42"}"#;
    let item = json!({ "id": "tool_fake_1", "type": "function_call", "name": "lookup_user" });
    let (mut added, mut done) = (item.clone(), item);
    added["status"] = json!("in_progress");
    (done["arguments"], done["status"]) = (json!(arguments), json!("completed"));
    let whole = json!({ "item_id": "tool_fake_1", "arguments": arguments });
    let call = json!({ "type": "tool_use", "id": "tool_fake_1", "name": "lookup_user", "input": { "id": "42" } });
    let message = json!({ "id": "msg_output_0", "type": "message", "role": "assistant", "content": [call] });
    let response = json!({ "id": response_id, "status": "completed", "model": "codex-5", "output": [message],
                           "usage": { "input_tokens": 8, "output_tokens": 16, "total_tokens": 24 } });
    let expected = [
        event("created", json!({ "response": { "id": response_id, "status": "in_progress" } })),
        of_call("output_item.added", json!({ "item": added })),
        delta(r#"{"id":""#),
        delta("42"),
        delta(r#""}"#),
        event("output_text.done", json!({})),
        of_call("function_call_arguments.done", whole),
        of_call("output_item.done", json!({ "item": done })),
        event("completed", json!({ "response": response })),
    ];
    assert_eq!(events, expected);
}
