//! Chat with tools: calls as JSON and as text, in streams and in bodies.

use super::{DropIn, ask, deltas, ready, with_key};
use crate::support::sse::SseContent;
use crate::support::{ChatRequest, Reply};
use serde_json::{Value, json};

const BLOCK: &str = "<use_tool>\n  <name>lookup_user</name>\n  <id>42</id>\n</use_tool>";
const TEXTUAL: &str = "<use_tool>\n  <name>lookup_user</name>\n  <id>ユーザー-12345</id>\n</use_tool>";

fn with_usage(request: ChatRequest) -> ChatRequest {
    request.with("stream_options", json!({ "include_usage": true }))
}

/// What a stream consists of, in order: the deltas and finishes of the first choice, comments, usage and the end.
fn steps(gateway: &DropIn, request: ChatRequest) -> Vec<Value> {
    let reply = gateway.server.fetch(with_key(request.streamed()));
    assert_eq!(reply.status(), 200);
    let step = |content: SseContent| match content {
        SseContent::Comment(text) => json!({ "comment": serde_json::from_str::<Value>(&text).unwrap() }),
        SseContent::Event { data, .. } if data == "[DONE]" => json!("[DONE]"),
        SseContent::Event { data, .. } => {
            let frame: Value = serde_json::from_str(&data).unwrap();
            let counts = |usage: &Value| json!([usage["prompt_tokens"], usage["completion_tokens"]]);
            match frame["choices"].get(0) {
                Some(choice) if choice["finish_reason"].is_null() => choice["delta"].clone(),
                Some(choice) => json!({ "finish": choice["finish_reason"], "delta": choice["delta"] }),
                None => json!({ "usage": counts(&frame["usage"]), "trigger": frame["usage"]["emission_trigger"] }),
            }
        }
    };
    reply.sse_messages().into_iter().map(|message| step(message.content)).collect()
}

fn head(name: &str, id: &str) -> Value {
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": { "name": name } }] })
}

fn arguments(text: &str) -> Value {
    json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] })
}

fn whole(id: &str, arguments: &str) -> Value {
    let function = json!({ "name": "lookup_user", "arguments": arguments });
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
}

fn comment(count: u64, is_truncated: bool, mode: &str) -> Value {
    json!({ "comment": { "tool_call_count": count, "tool_call_truncated": is_truncated,
                         "stop_after_tools_mode": mode } })
}

fn finish() -> Value {
    json!({ "finish": "tool_calls", "delta": {} })
}

fn contents(steps: &[Value]) -> Vec<&str> {
    steps.iter().filter_map(|step| step["content"].as_str()).collect()
}

/// The distinct ids of calls, in order.
fn ids(frames: &[Value]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (_, delta, _) in deltas(frames) {
        for call in delta["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if !id.is_empty() && !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    ids
}

fn body(gateway: &DropIn, request: ChatRequest) -> (Reply, Value) {
    let reply = gateway.server.fetch(with_key(request));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let choice = reply.json()["choices"][0].clone();
    (reply, choice)
}

fn headers(reply: &Reply) -> [Option<&str>; 3] {
    ["x-codex-tool-call-count", "x-codex-tool-call-truncated", "x-codex-stop-after-tools-mode"]
        .map(|name| reply.header(name))
}

/// Lines: tool-stream tool-comment
#[test]
fn a_call_is_streamed_with_cumulative_arguments_and_then_as_one_block() {
    let gateway = ready(&[("FAKE_MODE", "tools")]);
    let expected = [
        json!({ "role": "assistant" }),
        head("lookup_user", "tool_fake_1"),
        arguments(r#"{"id":""#),
        arguments(r#"{"id":"42"#),
        arguments(r#"{"id":"42"}"#),
        json!({ "content": BLOCK }),
        finish(),
        comment(1, false, "burst"),
        json!({ "usage": [8, 16], "trigger": "token_count" }),
        json!("[DONE]"),
    ];
    assert_eq!(steps(&gateway, with_usage(ask("Hi"))), expected);
}

/// Lines: tool-stream
#[test]
fn arguments_of_any_size_and_script_arrive_whole() {
    let emoji = r#"{"payload":"👩‍💻漢字"}"#;
    let gateway = ready(&[("FAKE_MODE", "tools"), ("FAKE_ARGUMENTS", emoji), ("FAKE_DELTA", "3")]);
    let steps_of = |gateway: &DropIn| steps(gateway, ask("Hi"));
    let received: Vec<String> = steps_of(&gateway)
        .iter()
        .filter_map(|step| step["tool_calls"][0]["function"]["arguments"].as_str().map(str::to_owned))
        .collect();
    assert!(received.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{received:?}");
    assert_eq!(received.last().unwrap(), emoji);

    let large = json!({ "payload": "x".repeat(9000) }).to_string();
    let gateway = ready(&[("FAKE_MODE", "tools"), ("FAKE_ARGUMENTS", &large), ("FAKE_DELTA", "0")]);
    let steps = steps_of(&gateway);
    assert_eq!(steps[1], whole("tool_fake_1", &large));
    assert_eq!(steps.iter().filter(|step| **step == finish()).count(), 1);
}

/// Lines: tool-stream
#[test]
fn calls_have_one_finish() {
    for (name, value) in [("FAKE_FINISH", "length"), ("FAKE_MODE", "function_then_tools")] {
        let gateway = ready(&[("FAKE_MODE", "tools"), (name, value)]);
        let steps = steps(&gateway, ask("Hi"));
        assert_eq!(steps[steps.len() - 3..], [finish(), comment(1, false, "burst"), json!("[DONE]")], "{value}");
        assert_eq!(body(&gateway, ask("Hi")).1["finish_reason"], "tool_calls", "{value}");
    }
}

/// Lines: tool-stream-json tool-body-json
#[test]
fn in_the_json_mode_there_is_no_text() {
    let by_header = |request: ChatRequest| request.header("x-proxy-output-mode", "openai-json");
    let gateway = ready(&[("FAKE_MODE", "tools"), ("FAKE_CALLS", "3")]);
    let steps = steps(&gateway, by_header(ask("Hi")));
    assert!(contents(&steps).is_empty(), "{steps:?}");
    assert_eq!(steps[steps.len() - 3..], [finish(), comment(3, false, "burst"), json!("[DONE]")]);
    let (reply, choice) = body(&gateway, by_header(ask("Hi")));
    assert_eq!(choice["message"]["content"], Value::Null);
    assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 3);
    assert_eq!(reply.header("x-proxy-output-mode"), Some("openai-json"));

    let gateway = ready(&[("FAKE_MODE", "tools"), ("PROXY_OUTPUT_MODE", "openai-json")]);
    let (reply, choice) = body(&gateway, ask("Hi"));
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&Value::Null, &json!("tool_calls")));
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "lookup_user");
    assert_eq!(reply.header("x-proxy-output-mode"), Some("openai-json"));
}

/// Lines: tool-body tool-truncated-header
#[test]
fn a_body_has_the_calls_and_their_blocks() {
    let gateway = ready(&[("FAKE_MODE", "tools")]);
    let (reply, choice) = body(&gateway, ask("Hi"));
    let function = json!({ "name": "lookup_user", "arguments": r#"{"id":"42"}"# });
    let calls = json!([{ "id": "tool_fake_1", "type": "function", "function": function }]);
    let message = json!({ "role": "assistant", "content": BLOCK, "tool_calls": calls });
    assert_eq!(choice, json!({ "index": 0, "message": message, "finish_reason": "tool_calls" }));
    assert_eq!(reply.json()["usage"], json!({ "prompt_tokens": 8, "completion_tokens": 16, "total_tokens": 24 }));
    assert_eq!(headers(&reply), [Some("1"), Some("false"), Some("burst")]);

    let settings =
        [("FAKE_MODE", "tools"), ("FAKE_CALLS", "3"), ("PROXY_STOP_AFTER_TOOLS_MODE", "burst"), SUPPRESS_TAIL];
    let (reply, choice) = body(&ready(&settings), ask("Hi"));
    assert_eq!(choice["message"]["content"].as_str().unwrap().matches("<use_tool>").count(), 3);
    assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 3);
    assert_eq!(headers(&reply), [Some("3"), Some("false"), Some("burst")]);
}

const SUPPRESS_TAIL: (&str, &str) = ("PROXY_SUPPRESS_TAIL_AFTER_TOOLS", "true");

/// Lines: tool-textual
#[test]
fn a_block_in_the_text_is_a_call() {
    for size in ["0", "5"] {
        let gateway = ready(&[("FAKE_MODE", "textual"), ("FAKE_DELTA", size)]);
        let expected = [
            json!({ "role": "assistant" }),
            whole("tool_0_0", r#"{"id": "ユーザー-12345"}"#),
            json!({ "content": TEXTUAL }),
            finish(),
            comment(1, false, "burst"),
            json!("[DONE]"),
        ];
        assert_eq!(steps(&gateway, ask("Hi")), expected, "in deltas of {size}");
        let choice = body(&gateway, ask("Hi")).1;
        assert_eq!(choice["message"]["content"], TEXTUAL);
        assert_eq!(choice["message"]["tool_calls"][0]["id"], "tool_0_0");
    }
}

/// Lines: tool-tail
#[test]
fn there_is_no_text_after_the_call_that_ends_a_response() {
    let cut =
        [("FAKE_MODE", "textual_tail"), ("PROXY_STOP_AFTER_TOOLS", "true"), ("PROXY_STOP_AFTER_TOOLS_MODE", "first")];
    for settings in [&cut[..], &[("FAKE_MODE", "textual_tail"), SUPPRESS_TAIL]] {
        let gateway = ready(settings);
        let steps = steps(&gateway, ask("Hi"));
        assert_eq!(contents(&steps), [TEXTUAL]);
        assert_eq!(steps.iter().filter(|step| **step == finish()).count(), 1);
        assert_eq!(steps.last(), Some(&json!("[DONE]")));
        assert_eq!(body(&gateway, ask("Hi")).1["message"]["content"], TEXTUAL);
    }
}

/// Lines: tool-cap tool-truncated-header
#[test]
fn the_number_of_calls_is_limited() {
    let settings = [
        ("FAKE_MODE", "tools"),
        ("FAKE_CALLS", "4"),
        ("PROXY_TOOL_BLOCK_MAX", "1"),
        ("PROXY_STOP_AFTER_TOOLS_MODE", "first"),
        SUPPRESS_TAIL,
    ];
    let gateway = ready(&settings);
    let (reply, choice) = body(&gateway, ask("Hi"));
    assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(BLOCK), &json!("tool_calls")));
    assert_eq!(headers(&reply), [Some("1"), Some("true"), Some("first")]);

    let steps = steps(&gateway, ask("Hi"));
    assert!(steps.contains(&comment(1, true, "first")), "{steps:?}");
    assert_eq!(contents(&steps), [BLOCK]);
    let reply = gateway.server.fetch(with_key(ask("Hi").streamed()));
    assert_eq!(reply.header("x-codex-stop-after-tools-mode"), Some("first"));
    assert_eq!(ids(&gateway.stream(ask("Hi"))), ["tool_fake_1"]);
}

/// Lines: tool-stream tool-cap
#[test]
fn a_burst_has_all_its_calls() {
    let settings =
        [("FAKE_MODE", "tools"), ("FAKE_CALLS", "2"), ("PROXY_STOP_AFTER_TOOLS_MODE", "burst"), SUPPRESS_TAIL];
    let gateway = ready(&settings);
    let frames = gateway.stream(ask("Hi"));
    assert_eq!(ids(&frames), ["tool_fake_1", "tool_fake_2"]);
    let calls = deltas(&frames).iter().filter(|delta| delta.1["tool_calls"].is_array()).count();
    assert!(calls >= 4, "{calls}");
    assert_eq!(deltas(&frames).iter().filter(|delta| delta.1["content"].is_string()).count(), 2);
    let names: Vec<Value> = body(&gateway, ask("Hi")).1["message"]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["function"]["name"].clone())
        .collect();
    assert_eq!(names, ["lookup_user", "send_email"]);
}

/// Lines: tool-function-call
#[test]
fn a_function_call_becomes_a_tool_call() {
    let gateway = ready(&[("FAKE_MODE", "function_call")]);
    let expected = [
        json!({ "role": "assistant" }),
        whole("tool_0_0", r#"{"id":"42"}"#),
        json!({ "content": BLOCK }),
        finish(),
        comment(1, false, "burst"),
        json!({ "usage": [8, 0], "trigger": "token_count" }),
        json!("[DONE]"),
    ];
    assert_eq!(steps(&gateway, with_usage(ask("Hi"))), expected);
    let choice = body(&gateway, ask("Hi")).1;
    assert_eq!(choice["message"]["tool_calls"][0]["id"], "tool_0_0");
    assert_eq!((&choice["message"]["function_call"], &choice["finish_reason"]), (&Value::Null, &json!("tool_calls")));
}

/// Lines: tool-exit
#[test]
fn a_response_is_whole_if_the_worker_exits_after_it() {
    let gateway = ready(&[("FAKE_MODE", "tools"), ("FAKE_EXIT_AFTER_TURN", "1"), ("WORKER_BACKOFF_INITIAL_MS", "10")]);
    let frames = steps(&gateway, ask("Hi"));
    assert_eq!(contents(&frames), [BLOCK]);
    assert_eq!(frames[frames.len() - 3..], [finish(), comment(1, false, "burst"), json!("[DONE]")]);
    gateway.wait_until_ready();
}

/// Lines: choices-tools
#[test]
fn each_choice_has_its_own_calls_or_text() {
    for (with_call, with_text) in [(0, 1), (1, 0)] {
        let gateway = ready(&[("FAKE_MODE", "choices"), ("FAKE_CALL_CHOICES", &with_call.to_string())]);
        let frames = gateway.stream(ask("Hi").with("n", 2));
        let deltas = deltas(&frames);
        let choices_with = |name: &str, text: &str| -> Vec<u64> {
            let mut found: Vec<u64> = deltas
                .iter()
                .filter(|delta| match &delta.1[name] {
                    Value::String(content) => content.contains(text),
                    value => value.is_array(),
                })
                .map(|delta| delta.0)
                .collect();
            found.dedup();
            found
        };
        assert_eq!(choices_with("tool_calls", ""), [with_call]);
        assert_eq!(choices_with("content", &format!("Choice {with_text}")), [with_text]);
        let finishes: Vec<&Value> = frames
            .iter()
            .filter(|frame| frame["choices"][0]["finish_reason"].is_string())
            .map(|frame| &frame["choices"])
            .collect();
        assert_eq!(finishes.len(), 1);
        assert_eq!(finishes[0][with_call as usize]["finish_reason"], "tool_calls");
        assert_eq!(finishes[0][with_text as usize]["finish_reason"], "stop");
        for mode in ["obsidian-xml", "openai-json"] {
            let request = ask("Hi").with("n", 2).header("x-proxy-output-mode", mode);
            let choices = gateway.chat(request).1["choices"].clone();
            let (call, text) = (&choices[with_call as usize], &choices[with_text as usize]);
            assert_eq!((&call["finish_reason"], &text["finish_reason"]), (&json!("tool_calls"), &json!("stop")));
            assert_eq!(call["message"]["content"].is_null(), mode == "openai-json", "{choices}");
            assert_eq!(call["message"]["tool_calls"].as_array().unwrap().len(), 1);
            assert_eq!(text["message"]["content"], format!("Choice {with_text}"));
            assert!(text["message"].get("tool_calls").is_none(), "{choices}");
        }
    }
}

/// Lines: choices-tools
#[test]
fn calls_of_several_choices_are_kept_apart() {
    let gateway = ready(&[("FAKE_MODE", "choices"), ("FAKE_CALL_CHOICES", "0,1")]);
    assert_eq!(ids(&gateway.stream(ask("Hi"))), ["multi_tool_0", "multi_tool_1"]);
    assert_eq!(ids(&gateway.stream(ask("Hi").with("n", 2))), ["multi_tool_0", "multi_tool_1"]);
}
