//! Finish reasons of backends: the words that all of them may use, signs before the finish, and `finish_debug`.

use crate::support::replay::{self, LoadedSet};
use crate::support::{Request, Server, TestDir, chat, serve};
use reframe::testing::domain::Tree;
use serde_json::{Value, json};

/// The words of each finish reason; `error` is a failure.
const WORDS: &[(&str, &[&str])] = &[
    ("stop", &["stop", "completed", "complete", "finished", "done", "halt", "STOP", " Stop "]),
    (
        "length",
        &[
            "length",
            "max_tokens",
            "MAX_TOKENS",
            "token_limit",
            "token_limit_reached",
            "max_tokens_reached",
            "truncated",
            "length_reached",
            "the_token_limit_of_today",
        ],
    ),
    (
        "content_filter",
        &[
            "content_filter",
            "filtered",
            "safety",
            "SAFETY",
            "safety_filter",
            "moderation",
            "policy_filter",
            "content-filter",
            "blocked_by_policy",
        ],
    ),
    ("error", &["error", "failed", "cancelled", "canceled"]),
];

/// Words for calls.
const CALL_WORDS: &[&str] = &[
    "tool_calls",
    "tool_call",
    "tool_completion",
    "tool_execution",
    "requires_tool",
    "some_tool",
    "function_call",
    "function_calls",
    "function_execution",
    "any_function",
];

const BACKENDS: &[&str] = &[
    "openai-chat",
    "azure-openai",
    "deepseek",
    "anthropic-messages",
    "gemini-generate",
    "openai-responses",
    "codex-legacy",
];

/// A whole response with this text and this finish, as the backend sends it.
fn response(backend: &str, word: &str) -> Vec<Value> {
    match backend {
        "anthropic-messages" => {
            let content = json!([{ "type": "text", "text": "Hi" }]);
            vec![json!({ "type": "message", "model": "m", "content": content, "stop_reason": word })]
        }
        "gemini-generate" => {
            let content = json!({ "parts": [{ "text": "Hi" }] });
            vec![json!({ "candidates": [{ "index": 0, "content": content, "finishReason": word }] })]
        }
        "openai-responses" => {
            let content = json!([{ "type": "output_text", "text": "Hi" }]);
            let output = json!([{ "type": "message", "id": "msg_1", "role": "assistant", "content": content }]);
            vec![
                json!({ "type": "response.output_item.done", "output_index": 0, "item": output[0] }),
                json!({
                    "type": "response.completed",
                    "response": { "status": word, "output": output },
                }),
            ]
        }
        "codex-legacy" => vec![
            json!({ "method": "agentMessageDelta", "params": { "delta": "Hi" } }),
            json!({ "id": 9, "result": { "finish_reason": word } }),
        ],
        _ => vec![json!({ "choices": [{ "index": 0, "message": { "content": "Hi" }, "finish_reason": word }] })],
    }
}

/// The chat body, or the error.
fn body(backend: &str, events: &[Value], profile: &str) -> String {
    let transcript = replay::turn_of(backend, events);
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let request = Tree::parse(request.to_string().as_bytes()).unwrap();
    LoadedSet::embedded().body(&transcript, "chat", profile, &request)
}

fn finish(body: &str) -> Value {
    serde_json::from_str::<Value>(body).unwrap_or_else(|_| panic!("{body}"))["choices"][0]["finish_reason"].clone()
}

#[test]
fn every_backend_knows_every_word() {
    for backend in BACKENDS {
        for (reason, word) in WORDS.iter().flat_map(|(reason, words)| words.iter().map(move |word| (reason, word))) {
            let body = body(backend, &response(backend, word), "openai");
            match *reason {
                "error" => assert!(body.starts_with("HTTP 502"), "{backend}: {word}\n{body}"),
                reason => assert_eq!(finish(&body), reason, "{backend}: {word}"),
            }
        }
        for word in CALL_WORDS {
            // Without a call: it is a stop after text.
            assert_eq!(finish(&body(backend, &response(backend, word), "openai")), "stop", "{backend}: {word}");
        }
    }
}

#[test]
fn a_failure_keeps_what_came_in_a_response_object() {
    let transcript = replay::turn_of("openai-chat", &response("openai-chat", "failed"));
    let request = Tree::parse(br#"{"model":"m","input":"hi","stream":true}"#).unwrap();
    let text = LoadedSet::embedded().stream(&transcript, "responses", "openai", &request).text();
    let failed =
        text.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("response.failed")));
    let failed: Value = serde_json::from_str(failed.unwrap_or_else(|| panic!("{text}"))).unwrap();
    assert_eq!(failed["response"]["status"], "failed");
    assert_eq!(failed["response"]["output"][0]["content"][0]["text"], "Hi");
}

#[test]
fn a_strong_sign_replaces_the_reason_and_a_weak_one_fills_in() {
    let turn = |count: Value, message: Value, word: &str| {
        let events = [
            json!({ "method": "agentMessageDelta", "params": { "delta": "Hi" } }),
            json!({ "method": "agentMessage", "params": { "message": message } }),
            json!({ "method": "tokenCount", "params": count }),
            json!({ "id": 9, "result": { "finish_reason": word } }),
        ];
        finish(&body("codex-legacy", &events, "openai"))
    };
    let filtered = json!({ "role": "assistant", "content": "Hi", "finish_reason": "content_filter" });
    let plain = json!({ "prompt_tokens": 1, "completion_tokens": 1 });
    assert_eq!(turn(plain.clone(), filtered.clone(), "stop"), "stop", "the finish beats a weak sign");
    assert_eq!(turn(plain, filtered.clone(), "whatever"), "content_filter", "an unknown word does not");
    assert_eq!(turn(json!({ "token_limit_reached": true }), filtered.clone(), "stop"), "length");
    assert_eq!(turn(json!({ "finish_reason": "max_tokens" }), filtered, "stop"), "length");
}

fn start(policy: &str) -> Server {
    let dir = TestDir::empty().with_pace("none");
    dir.write("layer/profiles/tried.yaml", &format!("profile: tried\npolicies: {{ finish_debug: {policy} }}\n"));
    serve().args(["--profile", "tried"]).add(dir).start()
}

/// The header and the field of both APIs, and whether the log has the line.
fn reported(policy: &str) -> (Vec<Option<String>>, Vec<Value>, bool) {
    let server = start(policy);
    let responses = Request::post(r#"{"model":"demo","input":"Hello!"}"#).at("/v1/responses");
    let replies = [server.fetch(chat("Hello!")), server.fetch(responses)];
    let header = |reply: &crate::support::Reply| reply.header("x-proxy-finish-reason").map(str::to_owned);
    let field = |reply: &crate::support::Reply| reply.json()["_proxy"].clone();
    let log = server.wait_for_log("turn ended");
    (replies.iter().map(header).collect(), replies.iter().map(field).collect(), log.contains("finish reason"))
}

#[test]
fn the_finish_reason_is_reported_where_the_policy_wants_it() {
    let none = || (vec![None, None], vec![Value::Null, Value::Null]);
    let (headers, fields, logged) = reported("off");
    assert_eq!(((headers, fields), logged), (none(), false));
    let (headers, fields, logged) = reported("log");
    assert_eq!(((headers, fields), logged), (none(), true));
    let (headers, fields, logged) = reported("header");
    let stop = || Some("stop".to_owned());
    assert_eq!((headers, fields, logged), (vec![stop(), stop()], none().1, false));
    let (headers, fields, logged) = reported("field");
    let field = json!({ "finish_reason": "stop" });
    assert_eq!((headers, fields, logged), (none().0, vec![field.clone(), field], false));
}
