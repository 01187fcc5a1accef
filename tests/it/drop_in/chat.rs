//! Chat without tools: bodies, streams, choices, disconnects, limits.

use super::{ask, deltas, ready, with_key};
use crate::support::{Request, assert_within, eventually};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn without_times(mut value: Value) -> Value {
    for name in ["id", "created"] {
        value.as_object_mut().unwrap().remove(name);
    }
    for name in ["time_to_first_token_ms", "total_duration_ms"] {
        if let Some(usage) = value["usage"].as_object_mut() {
            usage.remove(name);
        }
    }
    value
}

/// Lines: body-minimal
#[test]
fn a_body_has_the_members_of_the_proxy() {
    let gateway = ready(&[]);
    let reply = gateway.server.fetch(with_key(ask("Hi")));
    let expected = json!({
        "object": "chat.completion", "model": "codex-5",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello from the worker." },
                      "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 8, "completion_tokens": 6, "total_tokens": 14 }
    });
    assert_eq!(without_times(reply.json()), expected);
}

/// Lines: body-truncated body-filtered
#[test]
fn finish_reasons_of_bodies() {
    let truncated = ready(&[("FAKE_MODE", "truncated")]).chat(ask("Hi")).1;
    assert_eq!(truncated["choices"][0]["message"]["content"], "Hello (truncated) from the worker.");
    assert_eq!(truncated["choices"][0]["finish_reason"], "length");
    assert_eq!(truncated["usage"], json!({ "prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14 }));
    let filtered = ready(&[("FAKE_MODE", "filtered")]).chat(ask("Hi")).1;
    assert_eq!(filtered["choices"][0]["finish_reason"], "content_filter");
    assert_eq!(filtered["choices"][0]["message"]["content"], Value::Null);
}

/// Lines: system-prompt
#[test]
fn instructions_reach_the_worker() {
    let gateway = ready(&[("PROXY_IGNORE_CLIENT_SYSTEM_PROMPT", "false")]);
    let messages = json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hi" }]);
    let (status, body) = gateway.chat(ask("").with("messages", messages));
    assert_eq!(status, 200, "{body}");
    assert!(body["choices"][0]["message"]["content"].is_string());
    assert_eq!(gateway.received("newConversation")[0]["baseInstructions"], "Be brief.");
}

/// Lines: stream-exact stream-metadata stream-usage
#[test]
fn a_stream_has_the_frames_of_the_proxy() {
    let gateway = ready(&[]);
    let frames = gateway.stream(ask("Hi").with("stream_options", json!({ "include_usage": true })));
    assert_eq!(frames.last(), Some(&json!("[DONE]")));
    let frames = &frames[..frames.len() - 1];
    for frame in frames {
        assert_eq!((&frame["id"], &frame["created"]), (&frames[0]["id"], &frames[0]["created"]));
    }
    let chunk = |choices: Value, usage: Value| json!({ "object": "chat.completion.chunk", "model": "codex-5", "choices": choices, "usage": usage });
    let choice = |delta: Value, finish: Value| json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
    let usage = json!({ "prompt_tokens": 8, "completion_tokens": 6, "total_tokens": 14, "time_to_first_token": null,
                        "throughput_after_first_token": null, "emission_trigger": "token_count" });
    let expected = [
        chunk(choice(json!({ "role": "assistant" }), Value::Null), Value::Null),
        chunk(choice(json!({ "content": "Hello from the worker." }), Value::Null), Value::Null),
        chunk(choice(json!({}), json!("stop")), Value::Null),
        chunk(json!([]), usage),
    ];
    let got: Vec<Value> = frames.iter().cloned().map(without_times).collect();
    assert_eq!(got, expected);
    let times = &frames[3]["usage"];
    let first = times["time_to_first_token_ms"].as_f64().unwrap();
    assert!(first >= 0.0 && times["total_duration_ms"].as_f64().unwrap() >= first);
    let plain = gateway.stream(ask("Hi"));
    assert!(plain.iter().all(|frame| frame["usage"].is_null()));
    assert_eq!(plain[plain.len() - 2]["choices"][0]["finish_reason"], "stop");
}

/// Lines: stream-headers
#[test]
fn the_role_is_sent_before_the_worker_answers() {
    let gateway = ready(&[("FAKE_MODE", "silent")]);
    let sent = Instant::now();
    let mut stream = gateway.client().stream(with_key(ask("Hi").streamed()));
    let first = stream.next().unwrap();
    assert_within("the first frame", sent.elapsed(), Duration::from_secs(1));
    assert_eq!(first.json()["choices"][0]["delta"], json!({ "role": "assistant" }));
    let header = |name| stream.head.header(name).unwrap_or_default().to_owned();
    assert!(header("content-type").starts_with("text/event-stream"));
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    assert_eq!(header("connection"), "keep-alive");
    assert_eq!(header("x-accel-buffering"), "no");
}

/// Lines: stream-idle
#[test]
fn a_silent_stream_ends() {
    let gateway = ready(&[("FAKE_MODE", "pause"), ("PROXY_STREAM_IDLE_TIMEOUT_MS", "100")]);
    assert_eq!(gateway.stream(ask("Hi")).last(), Some(&json!("[DONE]")));
}

/// Lines: keepalive
#[test]
fn a_silent_stream_has_comments() {
    let gateway = ready(&[("FAKE_MODE", "pause"), ("PROXY_SSE_KEEPALIVE_MS", "10")]);
    let mut stream = gateway.client().stream(with_key(ask("Hi").streamed()));
    let comment = std::iter::from_fn(|| stream.next_message()).find(|message| message.name() == "comment");
    assert!(comment.unwrap().text().starts_with("keepalive "));
}

/// Lines: choices
#[test]
fn choices_share_one_turn_of_the_worker() {
    let gateway = ready(&[]);
    let frames = gateway.stream(ask("Hi").with("n", 2).with("stream_options", json!({ "include_usage": true })));
    let indexes = |frame: &Value| -> Vec<u64> {
        frame["choices"].as_array().unwrap().iter().map(|choice| choice["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(indexes(&frames[0]), [0, 1]);
    let finish = frames.iter().find(|frame| !frame["choices"][0]["finish_reason"].is_null()).unwrap();
    assert_eq!(indexes(finish), [0, 1]);
    let contents: Vec<u64> = deltas(&frames).iter().filter(|d| d.1["content"].is_string()).map(|d| d.0).collect();
    assert_eq!(contents, [0]);
    assert_eq!(gateway.received("sendUserTurn")[0]["choiceCount"], 2);
}

/// Lines: disconnect
#[test]
fn a_worker_survives_a_disconnect() {
    let gateway = ready(&[("FAKE_MODE", "held"), ("PROXY_KILL_ON_DISCONNECT", "true")]);
    let mut stream = gateway.client().stream(with_key(ask("Hi").streamed()));
    assert!(stream.next().is_some());
    drop(stream);
    gateway.release();
    eventually("the turn is over", || {
        let metrics = gateway.server.fetch(with_key(Request::get("/readyz"))).status();
        (metrics == 200 && gateway.starts().len() == 1).then_some(())
    });
}

/// Lines: concurrency-headers test-endpoints
#[test]
fn tests_see_the_streams_in_flight() {
    let settings = [("FAKE_MODE", "held"), ("PROXY_SSE_MAX_CONCURRENCY", "1"), ("PROXY_TEST_ENDPOINTS", "true")];
    let gateway = ready(&settings);
    let streams = || gateway.get("/__test/conc");
    assert_eq!(streams(), (200, json!({ "conc": 0 })));
    assert_eq!(gateway.server.fetch(Request::get("/__test/conc")).status(), 401);
    let mut first = gateway.client().stream(with_key(ask("Hi").streamed()));
    assert!(first.next().is_some());
    let names = ["x-conc-before", "x-conc-after", "x-conc-limit"];
    assert_eq!(names.map(|name| first.head.header(name)), [Some("0"), Some("1"), Some("1")]);
    assert_eq!(streams(), (200, json!({ "conc": 1 })));
    let second = gateway.server.fetch(with_key(ask("Hi").streamed()));
    assert_eq!(second.status(), 429);
    assert_eq!(names.map(|name| second.header(name)), [Some("1"), Some("1"), Some("1")]);
    gateway.release();
    assert_eq!(first.rest().last().unwrap().data, "[DONE]");
    eventually("no stream is left", || (streams().1["conc"] == 0).then_some(()));
    assert_eq!(ready(&[]).get("/__test/conc").0, 404, "only with the variable");
}

/// Lines: sanitizer
#[test]
fn metadata_lines_are_removed_if_the_operator_wants_that() {
    let text = |gateway: &super::DropIn| {
        let body = gateway.chat(ask("Hi")).1["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        let streamed: String =
            deltas(&gateway.stream(ask("Hi"))).iter().filter_map(|delta| delta.1["content"].as_str()).collect();
        assert_eq!(body, streamed);
        body
    };
    let kept = text(&ready(&[("FAKE_MODE", "metadata")]));
    assert!(kept.contains("rollout_path:") && kept.contains("session_id:"), "{kept}");
    let removed = ready(&[("FAKE_MODE", "metadata"), ("PROXY_SANITIZE_METADATA", "true")]);
    assert_eq!(text(&removed), "Hello from the worker.");
}

/// One client may use all streams, as long as the keys of other clients have no value, or allow no turns.
#[test]
fn one_key_may_use_all_streams() {
    let token = ("PROXY_METRICS_TOKEN", "a-token-for-metrics");
    let gateway = ready(&[("FAKE_MODE", "held"), ("PROXY_SSE_MAX_CONCURRENCY", "2"), token]);
    let mut streams: Vec<_> = (0..2).map(|_| gateway.client().stream(with_key(ask("Hi").streamed()))).collect();
    assert!(streams.iter_mut().all(|stream| stream.next().is_some()));
    assert_eq!(gateway.server.fetch(with_key(ask("Hi").streamed())).status(), 429);
    gateway.release();
    for stream in streams {
        assert_eq!(stream.rest().last().unwrap().data, "[DONE]");
    }
}

/// Lines: concurrency concurrency-no-headers
#[test]
fn streams_beyond_the_limit_are_rejected() {
    let gateway = ready(&[("FAKE_MODE", "held"), ("PROXY_SSE_MAX_CONCURRENCY", "1")]);
    let mut first = gateway.client().stream(with_key(ask("Hi").streamed()));
    assert!(first.next().is_some());
    let second = gateway.server.fetch(with_key(ask("Hi").streamed()));
    assert_eq!((second.status(), &second.json()["error"]["code"]), (429, &json!("concurrency_exceeded")));
    assert_eq!(second.header("x-conc-before"), None);
    gateway.release();
    assert_eq!(first.rest().last().unwrap().data, "[DONE]");
}
