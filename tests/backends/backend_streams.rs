//! The one story of these tests, "Hello" in two pieces, as each backend tells it.

use crate::support::{Answer, repo};
use serde_json::{Value, json};

pub struct Spoken {
    /// As a stream, event by event.
    pub events: Vec<String>,
    /// The data that ends a stream.
    pub end: Option<&'static str>,
    /// As one JSON answer.
    pub whole: String,
    /// A no, and the code that a client is told.
    pub no: String,
    pub no_code: Option<&'static str>,
    /// What an error with HTTP 200 counts as: the status that stands in it, or 502.
    pub no_status: u16,
}

pub const WHY: &str = "no, because";

impl Spoken {
    pub fn by(name: &'static str) -> Spoken {
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
        match name {
            "openai-chat" => Spoken {
                events: recorded(name),
                end: Some("[DONE]"),
                whole: json!({
                    "id": "chatcmpl-up", "object": "chat.completion", "created": 1_700_000_000, "model": "up-model",
                    "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }],
                    "usage": usage,
                })
                .to_string(),
                no: json!({ "error": { "message": WHY, "type": "x", "param": null, "code": "nope", "status": 503 } }).to_string(),
                no_code: Some("nope"),
                no_status: 503,
            },
            "openai-responses" => Spoken {
                events: recorded(name),
                end: Some("[DONE]"),
                whole: response(&recorded(name)),
                no: json!({ "error": { "message": WHY, "type": "x", "param": null, "code": "nope" } }).to_string(),
                no_code: Some("nope"),
                no_status: 502,
            },
            "anthropic-messages" => Spoken {
                events: recorded(name),
                end: None,
                whole: json!({
                    "id": "msg_up", "type": "message", "role": "assistant", "model": "up-model",
                    "content": [{ "type": "text", "text": "Hello" }],
                    "stop_reason": "end_turn", "usage": { "input_tokens": 3, "output_tokens": 2 },
                })
                .to_string(),
                no: json!({ "type": "error", "error": { "type": "overloaded_error", "message": WHY } }).to_string(),
                no_code: Some("overloaded_error"),
                no_status: 529,
            },
            "gemini-generate" => {
                let told = |text: &str, rest: Value| {
                    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } });
                    candidate.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
                    let usage = json!({ "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 });
                    json!({ "candidates": [candidate], "modelVersion": "up-model", "responseId": "r", "usageMetadata": usage }).to_string()
                };
                Spoken {
                    events: vec![told("Hel", json!({})), told("lo", json!({})), told("", json!({ "finishReason": "STOP" }))],
                    end: None,
                    whole: told("Hello", json!({ "finishReason": "STOP" })),
                    no: json!({ "error": { "code": 503, "message": WHY, "status": "UNAVAILABLE" } }).to_string(),
                    no_code: Some("UNAVAILABLE"),
                    no_status: 503,
                }
            }
            other => panic!("nobody told how {other} tells it"),
        }
    }

    /// The whole stream, with its end.
    pub fn stream(&self) -> Answer {
        self.ended(self.first(self.events.len()))
    }

    /// The stream until "Hel" was said.
    pub fn half(&self) -> Answer {
        self.first(self.begun() + 1)
    }

    pub fn json(&self) -> Answer {
        Answer::json(200, &self.whole)
    }

    pub fn first(&self, count: usize) -> Answer {
        Answer::sse(&self.events[..count].iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub fn ended(&self, answer: Answer) -> Answer {
        self.end.iter().fold(answer, |answer, end| answer.event(end))
    }

    /// The place of the event that says "Hel".
    pub fn begun(&self) -> usize {
        self.events.iter().position(|event| event.contains("\"Hel\"")).unwrap()
    }

    /// The bytes of the whole stream.
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

/// The answer that the last event repeats.
fn response(events: &[String]) -> String {
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    last["response"].to_string()
}
