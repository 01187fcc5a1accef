//! Something else in place of a list of calls is a fault, and never an answer without calls.

use crate::support::{MockResponse, TestDir, TestGateway, dialect_request};
use reframe::testing::domain::{Event, FaultKind, Tree};
use reframe::testing::engine::decode::decode_event;
use reframe::testing::mapping::{Plan, load};
use reframe::testing::reload::embedded;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn shipped() -> Plan {
    load(&embedded::files()).plan.unwrap()
}

/// What may be in place of a list.
fn not_a_list() -> [Value; 6] {
    let call = json!({ "index": 0, "id": "call_1", "function": { "name": "f", "arguments": "{}" } });
    [json!({}), json!("[]"), json!(""), json!(7), json!(true), call]
}

/// The places of lists with calls in what a backend sends.
fn places(backend: &str, list: &Value) -> Vec<Value> {
    match backend {
        "openai-chat" | "azure-openai" | "deepseek" => ["delta", "message"]
            .map(|member| {
                let content = json!({ "content": "Hello", "tool_calls": list });
                json!({ "choices": [{ "index": 0, member: content, "finish_reason": null }] })
            })
            .to_vec(),
        "openai-responses" => vec![
            json!({ "type": "response.completed", "response": { "status": "completed", "output": list } }),
            json!({ "object": "response", "status": "completed", "output": list }),
        ],
        "anthropic-messages" => vec![json!({ "type": "message", "role": "assistant", "content": list })],
        "gemini-generate" => vec![
            json!({ "candidates": list }),
            json!({ "candidates": [{ "content": { "role": "model", "parts": list } }] }),
        ],
        "codex-legacy" => vec![
            json!({ "method": "agent_message_delta", "params": { "delta": { "content": "Hello", "tool_calls": list } } }),
            json!({ "method": "agent_message", "params": { "message": { "content": "Hello", "tool_calls": list } } }),
        ],
        // A call is an event of its own.
        "codex-app-server" | "replay" => Vec::new(),
        other => panic!("where has the backend {other} its calls?"),
    }
}

#[test]
fn every_shipped_backend_reports_something_else_in_place_of_its_calls() {
    let plan = shipped();
    let mut silent = BTreeSet::new();
    let mut checked = 0;
    for backend in &plan.backends {
        for list in not_a_list() {
            for raw in places(&backend.name, &list) {
                let decoded = decode_event(backend, &Tree::from_value(&raw), &Tree::Null);
                let is_fault = |event: &Event| match event {
                    Event::Fault { fault, is_final } => {
                        *is_final && fault.kind == FaultKind::Malformed && fault.message.contains("must be an array")
                    }
                    _ => false,
                };
                if !decoded.events.iter().any(|(event, _)| is_fault(event)) {
                    silent.insert(format!("{}: {raw}", backend.name));
                }
                checked += 1;
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    assert!(checked > 60, "{checked}");
}

#[test]
fn a_list_and_its_absence_are_no_faults() {
    for backend in &shipped().backends {
        for list in [json!([]), Value::Null] {
            for raw in places(&backend.name, &list) {
                let decoded = decode_event(backend, &Tree::from_value(&raw), &Tree::Null);
                let faults = decoded.events.iter().filter(|(event, _)| matches!(event, Event::Fault { .. }));
                assert_eq!(faults.count(), 0, "{}: {raw}", backend.name);
            }
        }
    }
}

#[test]
fn the_client_gets_an_error_and_not_an_answer_without_calls() {
    let gateway = TestGateway::start("openai-chat", "openai", TestDir::empty());
    for (at, list) in not_a_list().into_iter().enumerate() {
        let chunk = |delta: Value, finish: Value| {
            json!({ "id": "x", "model": "m", "created": 1, "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
                .to_string()
        };
        let calls = chunk(json!({ "tool_calls": list }), Value::Null);
        let last = chunk(json!({}), json!("tool_calls"));
        for dialect in ["chat", "responses"] {
            let model = format!("{dialect}-{at}");
            let answer = MockResponse::sse(&[&calls, &last, "[DONE]"]);
            let reply = gateway.fetch(&model, answer, dialect_request(dialect, &model, true));
            assert_eq!(reply.status(), 502, "{}", reply.text());
            assert!(reply.text().contains("tool_calls` must be an array"), "{}", reply.text());
        }
    }
}
