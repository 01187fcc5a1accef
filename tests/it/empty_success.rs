//! What a client would take for an empty success is an error: a finish for calls that were not made, and calls that the
//! dialect cannot represent.

use crate::support::{MockResponse, Reply, TestDir, TestGateway, dialect_request};
use serde_json::{Value, json};
use std::sync::LazyLock;

static GATEWAY: LazyLock<TestGateway> =
    LazyLock::new(|| TestGateway::shared("openai-chat", "openai", TestDir::empty()));
static FAIL: LazyLock<TestGateway> = LazyLock::new(|| {
    let dir = TestDir::empty();
    dir.write("layer/profiles/strict.yaml", "profile: strict\npolicies: { finish_without_calls: fail }\n");
    TestGateway::shared("openai-chat", "strict", dir)
});

const NO_CALL: &str = "the backend finished with `tool_calls` but made no call";

fn answer(delta: &Value) -> MockResponse {
    let event = |delta: &Value, finish: Value| {
        json!({ "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }).to_string()
    };
    MockResponse::sse(&[&event(delta, Value::Null), &event(&json!({}), json!("tool_calls")), "[DONE]"])
}

fn fetch(gateway: &TestGateway, dialect: &str, name: &str, stream: bool, delta: &Value) -> Reply {
    let model = format!("{name}-{dialect}-{stream}");
    gateway.fetch(&model, answer(delta), dialect_request(dialect, &model, stream))
}

/// The message of the error, in the dialect's form.
fn message(reply: &Reply, stream: bool) -> String {
    if !stream || reply.status() != 200 {
        return reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    }
    let text = reply.text();
    let mut events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let error = events.next_back().map(|event| match &event["response"]["error"] {
        Value::Null => event["error"].clone(),
        error => error.clone(),
    });
    error.and_then(|error| Some(error["message"].as_str()?.to_owned())).unwrap_or(text)
}

#[test]
fn a_finish_for_calls_that_were_not_made_is_an_error_without_text() {
    for dialect in ["chat", "responses", "completions"] {
        for stream in [false, true] {
            let reply = fetch(&GATEWAY, dialect, "nothing", stream, &json!({ "role": "assistant" }));
            assert_eq!(message(&reply, stream), NO_CALL, "{dialect} stream={stream}: {}", reply.text());
        }
    }
}

#[test]
fn a_finish_for_calls_that_were_not_made_is_a_stop_after_text() {
    let text = json!({ "content": "Hello" });
    let reply = fetch(&GATEWAY, "chat", "text", false, &text).json();
    assert_eq!(reply["choices"][0]["message"]["content"], "Hello");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    let stream = fetch(&GATEWAY, "chat", "text", true, &text).text();
    assert!(stream.contains("\"finish_reason\":\"stop\"") && stream.ends_with("data: [DONE]\n\n"), "{stream}");
}

#[test]
fn by_policy_it_is_an_error_after_text_too() {
    for stream in [false, true] {
        let reply = fetch(&FAIL, "chat", "text", stream, &json!({ "content": "Hello" }));
        assert_eq!(message(&reply, stream), NO_CALL, "{}", reply.text());
    }
}

#[test]
fn a_call_that_the_dialect_cannot_represent_is_an_error_that_names_it() {
    let call =
        json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "get_weather", "arguments": "{}" } }] });
    for stream in [false, true] {
        let reply = fetch(&GATEWAY, "completions", "call", stream, &call);
        let expected = "the model called `get_weather` instead of answering with text; this API has no tool calls";
        assert_eq!(message(&reply, stream), expected, "stream={stream}: {}", reply.text());
        assert!(reply.text().contains("unsupported_tool_call"), "{}", reply.text());
    }
    // With text there is an answer.
    let both = json!({ "content": "It rains.", "tool_calls": call["tool_calls"] });
    let reply = fetch(&GATEWAY, "completions", "both", false, &both);
    assert_eq!(reply.json()["choices"][0]["text"], "It rains.");
    // Other dialects return the call.
    let reply = fetch(&GATEWAY, "chat", "call", false, &call).json();
    assert_eq!(reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "get_weather");
}
