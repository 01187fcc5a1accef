//! Events and bodies of upstream backends: Responses and Chat, streamed and as one body.

use serde_json::{Value, json};

/// An SSE event of a Responses backend: its name is also the `type` of its data.
pub fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

pub fn events<'v>(all: impl IntoIterator<Item = &'v Value>) -> String {
    all.into_iter().map(event).collect()
}

pub fn created() -> Value {
    json!({ "type": "response.created", "response": { "id": "resp_up1", "object": "response", "created_at": 1_750_000_000, "status": "in_progress", "model": "up-model", "output": [] } })
}

pub fn item_done(index: usize, item: &Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

pub fn text_delta(text: &str) -> Value {
    json!({ "type": "response.output_text.delta", "item_id": "msg_up", "output_index": 0, "content_index": 0, "delta": text })
}

pub fn message(id: &str, text: &str) -> Value {
    json!({ "id": id, "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

pub fn reasoning(id: &str, text: &str) -> Value {
    json!({ "id": id, "type": "reasoning", "summary": [{ "type": "summary_text", "text": text }] })
}

pub fn call(id: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments })
}

pub fn usage() -> Value {
    json!({ "input_tokens": 11, "output_tokens": 4, "total_tokens": 15, "input_tokens_details": { "cached_tokens": 2 } })
}

pub fn completed() -> Value {
    json!({ "type": "response.completed", "response": { "id": "resp_up1", "status": "completed", "usage": usage() } })
}

/// A complete body of a Responses backend.
pub fn response(output: &Value) -> Value {
    json!({ "id": "resp_up1", "object": "response", "created_at": 1_750_000_000, "status": "completed", "model": "up-model", "output": output, "usage": usage() })
}

/// An SSE event of a Chat backend: data only.
pub fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

pub fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({ "id": "chatcmpl-up1", "object": "chat.completion.chunk", "created": 1_750_000_000, "model": "up-model", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

pub fn word(text: &str) -> Value {
    chunk(&json!({ "content": text }), &Value::Null)
}

pub fn chat_usage() -> Value {
    json!({ "prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15 })
}

/// A complete Chat stream with these words, usage and `[DONE]`.
pub fn chat_stream(words: &[&str]) -> String {
    let mut chunks = vec![chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null)];
    chunks.extend(words.iter().map(|text| word(text)));
    chunks.push(chunk(&json!({}), &json!("stop")));
    let mut last = chunk(&json!({}), &Value::Null);
    last["choices"] = json!([]);
    last["usage"] = chat_usage();
    chunks.push(last);
    chunks.iter().map(data).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// A complete body of a Chat backend.
pub fn completion(message: &Value, finish: &str) -> Value {
    json!({ "id": "chatcmpl-up1", "object": "chat.completion", "created": 1_750_000_000, "model": "up-model", "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "usage": chat_usage() })
}
