//! The response "Hello", streamed in two deltas, in the format of each backend.

use crate::support::{MockResponse, repo};
use serde_json::{Value, json};

pub struct HelloStream {
    /// The data of the stream's events.
    pub events: Vec<String>,
    /// The data that ends a stream.
    pub end: Option<&'static str>,
    /// The same response as one JSON body.
    pub body: String,
    /// An error of the backend, and its code as the client receives it.
    pub error: String,
    pub error_code: Option<&'static str>,
    /// The status of an error in a 200 response: the status that it contains, or 502.
    pub error_status: u16,
}

pub const ERROR_MESSAGE: &str = "no, because";

impl HelloStream {
    pub fn of(name: &'static str) -> HelloStream {
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
        match name {
            "openai-chat" => HelloStream {
                events: recorded(name),
                end: Some("[DONE]"),
                body: json!({
                    "id": "chatcmpl-up", "object": "chat.completion", "created": 1_700_000_000, "model": "up-model",
                    "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }],
                    "usage": usage,
                })
                .to_string(),
                error: json!({ "error": { "message": ERROR_MESSAGE, "type": "x", "param": null, "code": "nope", "status": 503 } }).to_string(),
                error_code: Some("nope"),
                error_status: 503,
            },
            "openai-responses" => HelloStream {
                events: recorded(name),
                end: Some("[DONE]"),
                body: response(&recorded(name)),
                error: json!({ "error": { "message": ERROR_MESSAGE, "type": "x", "param": null, "code": "nope" } }).to_string(),
                error_code: Some("nope"),
                error_status: 502,
            },
            "anthropic-messages" => HelloStream {
                events: recorded(name),
                end: None,
                body: json!({
                    "id": "msg_up", "type": "message", "role": "assistant", "model": "up-model",
                    "content": [{ "type": "text", "text": "Hello" }],
                    "stop_reason": "end_turn", "usage": { "input_tokens": 3, "output_tokens": 2 },
                })
                .to_string(),
                error: json!({ "type": "error", "error": { "type": "overloaded_error", "message": ERROR_MESSAGE } }).to_string(),
                error_code: Some("overloaded_error"),
                error_status: 529,
            },
            "gemini-generate" => {
                let candidate = |text: &str, rest: Value| {
                    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } });
                    candidate.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
                    let usage = json!({ "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 });
                    json!({ "candidates": [candidate], "modelVersion": "up-model", "responseId": "r", "usageMetadata": usage }).to_string()
                };
                HelloStream {
                    events: vec![candidate("Hel", json!({})), candidate("lo", json!({})), candidate("", json!({ "finishReason": "STOP" }))],
                    end: None,
                    body: candidate("Hello", json!({ "finishReason": "STOP" })),
                    error: json!({ "error": { "code": 503, "message": ERROR_MESSAGE, "status": "UNAVAILABLE" } }).to_string(),
                    error_code: Some("UNAVAILABLE"),
                    error_status: 503,
                }
            }
            other => panic!("no stream for the backend {other}"),
        }
    }

    /// The complete stream, with its end marker.
    pub fn stream(&self) -> MockResponse {
        self.ended(self.first(self.events.len()))
    }

    /// The stream up to and including "Hel".
    pub fn half(&self) -> MockResponse {
        self.first(self.text_start() + 1)
    }

    pub fn json(&self) -> MockResponse {
        MockResponse::json(200, &self.body)
    }

    pub fn first(&self, count: usize) -> MockResponse {
        MockResponse::sse(&self.events[..count].iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub fn ended(&self, answer: MockResponse) -> MockResponse {
        self.end.iter().fold(answer, |answer, end| answer.event(end))
    }

    /// The index of the event with "Hel".
    pub fn text_start(&self) -> usize {
        self.events.iter().position(|event| event.contains("\"Hel\"")).unwrap()
    }

    /// The bytes of the complete stream.
    pub fn text(&self) -> String {
        let events = self.events.iter().map(String::as_str).chain(self.end);
        events.map(|data| format!("data: {data}\n\n")).collect()
    }
}

fn recorded(backend: &str) -> Vec<String> {
    let lines = repo(&format!("tests/transcripts/{backend}/matrix-text/events.jsonl"));
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line.get("raw").map(Value::to_string)).collect()
}

/// The complete response, which the last event contains.
fn response(events: &[String]) -> String {
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    last["response"].to_string()
}
