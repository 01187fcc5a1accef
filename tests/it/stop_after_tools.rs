//! `stop_after_tools: burst`: a response ends when no other tool call follows, and the backend's turn is cancelled.

use crate::support::{MockBackend, MockResponse, Request, Server, TestDir, eventually, serve};
use serde_json::json;

fn call(index: usize) -> String {
    let function = json!({ "name": "f", "arguments": "{\"a\":1}" });
    let call = json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function });
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }).to_string()
}

/// A backend that sends two calls and then nothing.
fn start(policies: &str) -> (MockBackend, Server) {
    let backend = MockBackend::start(|_| {
        MockResponse::sse_raw([call(0), call(1)].iter().map(|data| format!("data: {data}\n\n")).collect::<String>())
            .stall()
    });
    let dir = TestDir::empty();
    dir.write("layer/profiles/stopping.yaml", &format!("profile: stopping\npolicies: {{ {policies} }}\n"));
    let at = format!("openai-chat={}", backend.url());
    let gateway = serve().args(["--backend", &at, "--profile", "stopping"]).add(dir).start();
    (backend, gateway)
}

fn request(stream: bool) -> Request {
    let body = json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] });
    Request::post(body.to_string())
}

#[test]
fn a_burst_of_calls_ends_the_response_and_cancels_the_backend() {
    let (backend, gateway) = start("stop_after_tools: burst");
    let frames = gateway.fetch(request(true)).frames();
    let finishes = frames.iter().filter(|frame| frame.data.contains("\"finish_reason\":\"tool_calls\"")).count();
    assert_eq!((finishes, frames.last().unwrap().data.as_str()), (1, "[DONE]"));
    assert!(frames.iter().any(|frame| frame.data.contains("call_1")), "both calls are sent");
    let body = gateway.fetch(request(false)).json();
    assert_eq!(body["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 2);
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
    eventually("the backend's turns are cancelled", || (backend.disconnects().len() == 2).then_some(()));
}

#[test]
fn the_first_call_ends_the_response() {
    let (backend, gateway) = start("stop_after_tools: first, output_mode: { chat: obsidian-xml }");
    let text = gateway.fetch(request(true)).text();
    assert!(text.contains("<use_tool>") && !text.contains("call_1"), "{text}");
    assert!(text.trim_end().ends_with("[DONE]"), "{text}");
    eventually("the backend's turn is cancelled", || (backend.disconnects().len() == 1).then_some(()));
}

/// A gateway with these limits, and the backend that sends two calls.
fn start_with_limits(limits: &str) -> (MockBackend, Server) {
    let backend = MockBackend::start(|_| {
        let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }).to_string();
        let events = [call(0), call(1), finish, "[DONE]".to_owned()];
        MockResponse::sse_raw(events.iter().map(|data| format!("data: {data}\n\n")).collect::<String>())
    });
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &format!("limits: {{ {limits} }}\n"));
    let at = format!("openai-chat={}", backend.url());
    let gateway = serve().args(["--backend", &at]).add(dir).start();
    (backend, gateway)
}

#[test]
fn the_number_of_calls_is_limited() {
    let (_backend, gateway) = start_with_limits("tool_calls: 1");
    let body = gateway.fetch(request(false)).json();
    assert_eq!(body["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
    let text = gateway.fetch(request(true)).text();
    assert!(!text.contains("call_1") && text.trim_end().ends_with("[DONE]"), "{text}");
    let (_backend, gateway) = start_with_limits("tool_calls: 2");
    let body = gateway.fetch(request(false)).json();
    assert_eq!(body["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 2);
}

#[test]
fn the_arguments_of_a_call_are_limited() {
    let (_backend, gateway) = start_with_limits("argument_bytes: 6");
    let reply = gateway.fetch(request(false));
    assert_eq!(reply.status(), 502, "{}", reply.text());
    assert!(reply.text().contains("arguments"), "{}", reply.text());
    let (_backend, gateway) = start_with_limits("argument_bytes: 7");
    assert_eq!(gateway.fetch(request(false)).status(), 200);
}
