//! A malformed extra does not cost the answer: it is dropped, counted, and logged once (policy `malformed_extras`). Text,
//! calls and the finish are no extras: without them the turn fails.

use crate::support::{MockResponse, TestDir, TestGateway, dialect_request};
use serde_json::{Value, json};
use std::sync::LazyLock;

static DROP: LazyLock<TestGateway> = LazyLock::new(|| TestGateway::shared("openai-chat", "openai", TestDir::empty()));
static FAIL: LazyLock<TestGateway> = LazyLock::new(|| {
    let dir = TestDir::empty();
    let profile = "profile: strict\npolicies: { malformed_extras: fail }\n";
    dir.write("layer/profiles/strict.yaml", profile);
    TestGateway::shared("openai-chat", "strict", dir)
});

/// A complete answer with this in the first choice, and in the response.
fn answer(choice: &Value, response: &Value) -> MockResponse {
    let mut first = json!({ "index": 0, "delta": { "content": "Hello" } });
    merge(&mut first, choice);
    let mut last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    merge(&mut last, response);
    let first = json!({ "id": "x", "model": "m", "created": 1, "choices": [first] });
    MockResponse::sse(&[&first.to_string(), &last.to_string(), "[DONE]"])
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Name, kind, what is added to the choice, and what is added to the last event.
fn malformed() -> Vec<(&'static str, &'static str, Value, Value)> {
    let token = |token: Value, logprob: Value| json!({ "token": token, "logprob": logprob, "bytes": null });
    let logprobs = |token: Value| json!({ "logprobs": { "content": [token] } });
    let top = |top: Value| json!({ "logprobs": { "content": [{ "token": "a", "logprob": -1, "bytes": null, "top_logprobs": top }] } });
    let cited = |citation: Value| json!({ "delta": { "annotations": [{ "url_citation": citation }] } });
    let usage = |usage: Value| json!({ "usage": usage });
    let none = || json!({});
    vec![
        ("null-logprob", "logprobs", logprobs(token(json!("a"), Value::Null)), none()),
        ("text-logprob", "logprobs", logprobs(token(json!("a"), json!("-inf"))), none()),
        ("number-token", "logprobs", logprobs(token(json!(7), json!(-1))), none()),
        ("object-token", "logprobs", logprobs(token(json!({}), json!(-1))), none()),
        ("null-alternative", "logprobs", top(json!([token(json!("b"), Value::Null)])), none()),
        ("alternatives", "logprobs", top(json!("none")), none()),
        ("other-logprobs", "logprobs", json!({ "logprobs": { "content": { "tokens": ["a"] } } }), none()),
        ("no-position", "annotation", cited(json!({ "url": "https://a.example/", "title": "t" })), none()),
        ("null-position", "annotation", cited(json!({ "url": "u", "start_index": null, "end_index": 3 })), none()),
        ("text-position", "annotation", cited(json!({ "url": "u", "start_index": "0", "end_index": 3 })), none()),
        ("late-position", "annotation", cited(json!({ "url": "u", "start_index": 0, "end_index": i64::MAX })), none()),
        ("backwards", "annotation", cited(json!({ "url": "u", "start_index": 5, "end_index": 3 })), none()),
        ("no-url", "annotation", cited(json!({ "title": "t", "url": {}, "start_index": 0, "end_index": 3 })), none()),
        ("text-usage", "usage", none(), usage(json!({ "prompt_tokens": "three", "completion_tokens": 2 }))),
        ("float-usage", "usage", none(), usage(json!({ "prompt_tokens": 1.5, "completion_tokens": 2 }))),
        (
            "usage-details",
            "usage",
            none(),
            usage(json!({ "prompt_tokens": 1, "prompt_tokens_details": { "cached_tokens": [] } })),
        ),
        ("object-reasoning", "reasoning", json!({ "delta": { "reasoning_content": { "text": "hm" } } }), none()),
        ("created", "metadata", none(), json!({ "model": "m", "created": "today" })),
    ]
}

#[test]
fn a_malformed_extra_is_dropped_and_the_answer_survives() {
    // Its own, because it counts.
    let gateway = TestGateway::start("openai-chat", "openai", TestDir::empty());
    let mut checked = 0;
    for (name, kind, choice, response) in malformed() {
        for dialect in ["chat", "responses", "completions"] {
            for stream in [false, true] {
                let what = format!("{name} {dialect} stream={stream}");
                let counter =
                    format!("reframe_upstream_malformed_extras_total{{backend=\"openai-chat\",kind=\"{kind}\"}}");
                let before = gateway.metric(&counter);
                let model = format!("{name}-{dialect}-{stream}");
                let request = dialect_request(dialect, &model, stream);
                let reply = gateway.fetch(&model, answer(&choice, &response), request);
                let text = reply.text();
                assert_eq!(reply.status(), 200, "{what}: {text}");
                assert!(text.contains("Hello"), "{what}: {text}");
                let is_failed = text.contains("response.failed") || text.contains("\"error\":{");
                assert!(!is_failed, "{what}: {text}");
                assert_eq!(gateway.metric(&counter), before + 1.0, "{what}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 18 * 6);
    let log = gateway.server.complete_log();
    for kind in ["logprobs", "annotation", "usage", "reasoning", "metadata"] {
        let warning = |line: &&str| line.contains("malformed extra") && line.contains(&format!("kind=\"{kind}\""));
        assert_eq!(log.lines().filter(warning).count(), 1, "{kind}: {log}");
    }
}

#[test]
fn what_is_well_formed_next_to_it_is_kept() {
    let good = json!({ "token": "Hello", "logprob": -0.25, "bytes": [72], "top_logprobs": [] });
    let bad = json!({ "token": "!", "logprob": null, "bytes": null, "top_logprobs": [] });
    let choice = json!({ "logprobs": { "content": [bad, good] } });
    let reply = DROP.fetch("next-to-it", answer(&choice, &json!({})), dialect_request("chat", "next-to-it", false));
    assert_eq!(reply.json()["choices"][0]["logprobs"]["content"], json!([good]));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "Hello");
}

#[test]
fn fail_ends_the_turn_with_the_reason() {
    for (name, kind, choice, response) in malformed() {
        let reply = FAIL.fetch(name, answer(&choice, &response), dialect_request("chat", name, false));
        let message = reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(reply.status(), 502, "{name}: {}", reply.text());
        assert!(message.starts_with(&format!("the backend sent malformed {kind}: ")), "{name}: {message}");
    }
}

#[test]
fn text_and_calls_that_cannot_be_read_fail_the_turn() {
    let call = json!({ "tool_calls": [{ "index": 0, "function": { "name": { "of": "a tool" }, "arguments": "" } }] });
    for (name, delta, what) in [
        ("text", json!({ "content": { "text": "Hello" } }), "text"),
        ("refusal", json!({ "refusal": ["no"] }), "refusal"),
        ("call", call, "tool"),
    ] {
        for stream in [false, true] {
            let model = format!("unread-{name}-{stream}");
            let choice = json!({ "delta": delta });
            let reply = DROP.fetch(&model, answer(&choice, &json!({})), dialect_request("chat", &model, stream));
            let text = reply.text();
            assert!(text.contains(&format!("the backend sent a {what} that cannot be read")), "{model}: {text}");
        }
    }
}
