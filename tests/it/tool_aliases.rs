//! Tool aliases: custom tools that are sent to the backend as functions, and a response format that is sent as a tool.
//! The response is converted back to what the client sent.

use crate::support::{MockBackend, MockResponse, Request, Server, serve};
use serde_json::{Value, json};

fn gateway_for(backend: &MockBackend, name: &str) -> Server {
    serve().args(["--backend", &format!("{name}={}", backend.url())]).start()
}

fn post(path: &str, body: &Value) -> Request {
    Request::post(body.to_string()).at(path)
}

const PATCH: &str = "*** Begin Patch\n\"quoted\" ünï\n*** End Patch";

/// A backend that calls the function `apply_patch` with one argument, streamed in three deltas.
fn calling_backend() -> MockBackend {
    MockBackend::start(|_| {
        let arguments = json!({ "input": PATCH }).to_string();
        let split_at = |at: usize| (0..=at).rev().find(|i| arguments.is_char_boundary(*i)).unwrap();
        let (one, two) = (split_at(7), split_at(25));
        let delta_event = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string();
        let call = |id: Option<&str>, arguments: &str| {
            let mut call = json!({ "index": 0, "function": { "arguments": arguments } });
            if let Some(id) = id {
                (call["id"], call["function"]["name"]) = (json!(id), json!("apply_patch"));
            }
            delta_event(json!({ "tool_calls": [call] }))
        };
        let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }).to_string();
        let events = [
            call(Some("call_1"), ""),
            call(None, &arguments[..one]),
            call(None, &arguments[one..two]),
            call(None, &arguments[two..]),
            last,
            "[DONE]".to_owned(),
        ];
        MockResponse::sse(&events.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

#[test]
fn a_custom_tool_is_sent_as_a_function_and_returned_as_a_custom_call() {
    let backend = calling_backend();
    let gateway = gateway_for(&backend, "openai-chat");
    let tools = json!([{ "type": "custom", "name": "apply_patch", "description": "Changes files." }]);
    let request = json!({ "model": "m", "input": "Fix it.", "tools": tools });
    let body = gateway.client().fetch(post("/v1/responses", &request)).json();
    let call = &body["output"][0];
    assert_eq!(
        (&call["type"], &call["name"], &call["call_id"], &call["input"], &call["status"]),
        (&json!("custom_tool_call"), &json!("apply_patch"), &json!("call_1"), &json!(PATCH), &json!("completed"))
    );
    let sent = backend.requests()[0].json();
    assert_eq!(sent["tools"][0]["type"], "function");
    assert_eq!(sent["tools"][0]["function"]["name"], "apply_patch");
    assert_eq!(sent["tools"][0]["function"]["description"], "Changes files.");
    assert_eq!(sent["tools"][0]["function"]["parameters"]["required"], json!(["input"]));
}

#[test]
fn a_wrapped_call_is_streamed_when_its_input_is_complete() {
    let backend = calling_backend();
    let gateway = gateway_for(&backend, "openai-chat");
    let tools = json!([{ "type": "custom", "custom": { "name": "apply_patch" } }]);
    let messages = json!([{ "role": "user", "content": "Fix it." }]);
    let request = json!({ "model": "m", "stream": true, "messages": messages, "tools": tools });
    let frames = gateway.client().fetch(post("/v1/chat/completions", &request)).frames();
    let (done, chunks) = frames.split_last().unwrap();
    assert_eq!(done.data, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|f| f.json()).collect();
    let calls: Vec<&Value> = chunks.iter().filter_map(|c| c["choices"][0]["delta"]["tool_calls"].get(0)).collect();
    assert_eq!(calls[0]["type"], "custom");
    assert_eq!(calls[0]["custom"]["name"], "apply_patch");
    let input: String = calls.iter().filter_map(|c| c["custom"]["input"].as_str()).collect();
    assert_eq!(input, PATCH);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

/// In a later turn the call and its result are sent as those of a function.
#[test]
fn the_history_of_a_custom_tool_is_sent_as_a_function() {
    let backend = MockBackend::start(|_| {
        MockResponse::json(
            200,
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}"#,
        )
    });
    let gateway = gateway_for(&backend, "openai-chat");
    let input = json!([
        { "role": "user", "content": "Fix it." },
        { "type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": PATCH },
        { "type": "custom_tool_call_output", "call_id": "call_1", "output": "ok" },
    ]);
    let tools = json!([{ "type": "custom", "name": "apply_patch" }]);
    let request = json!({ "model": "m", "input": input, "tools": tools });
    assert_eq!(
        gateway.client().fetch(post("/v1/responses", &request)).json()["output"][0]["content"][0]["text"],
        "Done."
    );
    let messages = backend.requests()[0].json()["messages"].clone();
    let call = &messages[1]["tool_calls"][0];
    assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("apply_patch")));
    assert_eq!(call["function"]["arguments"], json!({ "input": PATCH }).to_string());
    assert_eq!(messages[2], json!({ "role": "tool", "tool_call_id": "call_1", "content": "ok" }));
}

/// Structured output through a tool that the client did not send: the client gets JSON content, `stop`, and no call.
#[test]
fn a_response_format_sent_as_a_tool_is_returned_as_the_message() {
    let backend = MockBackend::start(|upstream| {
        let name = upstream.json()["tools"][0]["name"].as_str().unwrap().to_owned();
        let start = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "toolu_1", "name": name, "input": {} } });
        let delta_event = |text: &str| {
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": text } })
                .to_string()
        };
        let events = [
            json!({ "type": "message_start", "message": { "id": "m", "model": "claude", "usage": { "input_tokens": 5, "output_tokens": 1 } } }).to_string(),
            start.to_string(),
            delta_event("{\"city\":"),
            delta_event("\"Paris\"}"),
            json!({ "type": "content_block_stop", "index": 0 }).to_string(),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 7 } }).to_string(),
            json!({ "type": "message_stop" }).to_string(),
        ];
        MockResponse::sse(&events.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let gateway = gateway_for(&backend, "anthropic-messages");
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "place", "schema": schema, "strict": true } });
    let messages = json!([{ "role": "user", "content": "Where?" }]);
    let request = json!({ "model": "m", "messages": messages, "response_format": format });
    let body = gateway.client().fetch(post("/v1/chat/completions", &request)).json();
    let choice = &body["choices"][0];
    assert_eq!(choice["message"]["content"], "{\"city\":\"Paris\"}");
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"].get("tool_calls"), None);
    let sent = backend.requests()[0].json();
    assert_eq!(sent["tools"][0]["name"], "place");
    assert_eq!(sent["tools"][0]["input_schema"], schema);
    assert_eq!(sent["tool_choice"]["type"], "tool");
    assert_eq!(sent["tool_choice"]["name"], "place");
}

/// An image, or a call that the client would have to run, cannot be represented: an error, not an empty success.
#[test]
fn an_item_without_a_frame_is_not_an_empty_success() {
    let item = json!({ "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA" });
    let envelope =
        json!({ "id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": [item] });
    let backend = MockBackend::start(move |upstream| match upstream.json()["stream"] == json!(true) {
        true => {
            let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
            let completed = json!({ "type": "response.completed", "response": envelope });
            MockResponse::sse(&[&done.to_string(), &completed.to_string()])
        }
        false => MockResponse::json(200, &envelope.to_string()),
    });
    let gateway = gateway_for(&backend, "openai-responses");
    for stream in [false, true] {
        let tools = json!([{ "type": "image_generation" }]);
        let request = json!({ "model": "m", "input": "Draw.", "stream": stream, "tools": tools });
        let reply = gateway.client().fetch(post("/v1/responses", &request));
        assert_eq!((reply.status(), &reply.json()["error"]["code"]), (502, &json!("unsupported_item")), "{stream}");
    }
}
