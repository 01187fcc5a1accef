//! Tool calls in chat under the profile `codex-proxy`: structured calls and calls in text, in both output modes.

use crate::support::replay::{LoadedSet, turn_of};
use reframe::testing::domain::Tree;
use reframe::testing::mapping::SourceFile;
use reframe::testing::reload::embedded;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Profiles that extend `codex-proxy`, by what they change.
const PROFILES: &[(&str, &str)] = &[
    ("json-mode", "output_mode: { chat: openai-json }"),
    ("all-calls", "stop_after_tools: { chat: \"off\" }"),
    ("all-calls-json", "stop_after_tools: { chat: \"off\" }\n  output_mode: { chat: openai-json }"),
];

/// A profile with a patch.
const DELIMITED: &str = "profile: delimited\nextends: codex-proxy\npolicies: { stop_after_tools: { chat: \"off\" }, \
                         call_blocks: { chat: all } }\npatch: { chat: { call_blocks: { delimiter: { $add: \"\\n\\n\" } } } }\n";

fn set() -> &'static LoadedSet {
    static SET: OnceLock<LoadedSet> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files = embedded::files();
        let mut add = |name: &str, text: String| {
            let file = format!("profiles/{name}.yaml");
            files.push(SourceFile { name: file.clone(), shown: file, layer: 0, text: text.into() });
        };
        for (name, policies) in PROFILES {
            add(name, format!("profile: {name}\nextends: codex-proxy\npolicies:\n  {policies}\n"));
        }
        add("delimited", DELIMITED.to_owned());
        LoadedSet::of(&files)
    })
}

struct Answer {
    /// The data of all frames but the last, which is `[DONE]`.
    chunks: Vec<Value>,
    body: Value,
    stream: String,
}

fn answer(profile: &str, events: &[Value]) -> Answer {
    answer_of(profile, events, json!({ "name": "f", "parameters": { "type": "object", "required": ["a"] } }))
}

fn answer_of(profile: &str, events: &[Value], function: Value) -> Answer {
    let turn = turn_of("openai-chat", events);
    let tool = json!({ "type": "function", "function": function });
    let body =
        json!({ "model": "m", "stream": true, "tools": [tool], "messages": [{ "role": "user", "content": "hi" }] });
    let body = Tree::parse(body.to_string().as_bytes()).unwrap();
    let stream = set().stream(&turn, "chat", profile, &body).text();
    let frames = stream.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let chunks = frames.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect();
    assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
    let body = set().body(&turn, "chat", profile, &body);
    let body = body.strip_prefix("HTTP ").map_or(body.as_str(), |error| error.split_once('\n').unwrap().1);
    Answer { chunks, body: serde_json::from_str(body).unwrap(), stream }
}

impl Answer {
    fn contents(&self) -> Vec<&str> {
        self.chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
    }

    fn finishes(&self) -> Vec<&str> {
        self.chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect()
    }

    fn message(&self) -> &Value {
        &self.body["choices"][0]["message"]
    }
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn text(text: &str) -> Value {
    delta(json!({ "content": text }))
}

fn call(index: usize, arguments: &str) -> Value {
    let function = json!({ "name": "f", "arguments": arguments });
    delta(
        json!({ "tool_calls": [{ "index": index, "id": format!("call_{index}"), "type": "function", "function": function }] }),
    )
}

fn arguments(index: usize, arguments: &str) -> Value {
    delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }))
}

fn finish(word: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": word }] })
}

const BLOCK: &str = "<use_tool>\n  <name>f</name>\n  <a>1</a>\n</use_tool>";

#[test]
fn the_first_call_is_written_as_text_and_ends_the_response() {
    let answer =
        answer("codex-proxy", &[call(0, "{\"a\":1}"), text(" and so on"), call(1, "{\"a\":2}"), finish("stop")]);
    assert_eq!(answer.contents(), [BLOCK]);
    assert_eq!(answer.finishes(), ["tool_calls"]);
    assert_eq!(answer.stream.matches("\"role\"").count(), 1);
    assert!(!answer.stream.contains("call_1"), "{}", answer.stream);
    assert_eq!(answer.message()["content"], BLOCK);
    assert_eq!(answer.message()["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(answer.body["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn in_json_mode_the_content_is_null() {
    let answer = answer("json-mode", &[text("Let me see."), call(0, "{\"a\":1}"), text("tail"), finish("tool_calls")]);
    assert_eq!((answer.contents(), answer.finishes()), (vec!["Let me see."], vec!["tool_calls"]));
    assert_eq!(answer.message()["content"], Value::Null);
    assert_eq!(answer.message()["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
}

#[test]
fn a_block_that_a_model_writes_is_passed_on_unchanged_and_nothing_follows_it() {
    let block = "<use_tool>\n<name>f</name>\n<a>\"1\" &amp; 2</a>\n</use_tool>";
    let written = format!("First. {block} And then I will sum up.");
    let whole = answer("codex-proxy", &[text(&written), text(" More."), finish("stop")]);
    let deltas: Vec<Value> =
        written.as_bytes().chunks(5).map(|bytes| text(std::str::from_utf8(bytes).unwrap())).collect();
    let split = answer("codex-proxy", &[&deltas[..], &[text(" More."), finish("stop")]].concat());
    for answer in [&whole, &split] {
        assert_eq!(answer.contents().concat(), format!("First. {block}"));
        assert_eq!(answer.finishes(), ["tool_calls"]);
        assert_eq!(answer.message()["content"], block, "a body has the block alone");
        assert_eq!(answer.message()["tool_calls"][0]["id"], "tool_0_0");
    }
    let json = answer("json-mode", &[text(&written), finish("stop")]);
    assert_eq!(json.contents().concat(), "First. ");
    assert_eq!(json.message()["tool_calls"][0]["function"]["name"], "f");
}

#[test]
fn a_block_that_is_not_closed_is_text_before_the_finish() {
    let answer = answer("codex-proxy", &[text("Hm <use_tool><name>f</name>"), finish("stop")]);
    assert_eq!(answer.contents().concat(), "Hm <use_tool><name>f</name>");
    assert_eq!(answer.finishes(), ["stop"]);
    let last = answer.chunks.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop", "{}", answer.stream);
}

#[test]
fn tool_calls_win_over_other_finish_reasons() {
    for word in ["length", "content_filter", "stop"] {
        let answer = answer("all-calls", &[call(0, "{\"a\":1}"), finish(word)]);
        assert_eq!(answer.finishes(), ["tool_calls"], "{word}");
        assert_eq!(answer.body["choices"][0]["finish_reason"], "tool_calls", "{word}");
    }
}

#[test]
fn arguments_are_cumulative() {
    let answer =
        answer("all-calls-json", &[call(0, "{\"a\""), arguments(0, ":\"é"), arguments(0, "\"}"), finish("stop")]);
    let of = |chunk: &Value| {
        chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str().map(str::to_owned)
    };
    let got: Vec<String> = answer.chunks.iter().filter_map(of).collect();
    assert_eq!(got, ["{\"a\"", "{\"a\":\"é", "{\"a\":\"é\"}"]);
    let mixed = |chunk: &&Value| {
        let delta = &chunk["choices"][0]["delta"];
        delta["content"].is_string() && delta["tool_calls"].is_array()
    };
    assert_eq!(answer.chunks.iter().filter(mixed).count(), 0);
}

#[test]
fn a_body_with_several_calls_has_all_of_them_and_the_first_block() {
    let events = [call(0, "{\"a\":1}"), call(1, "{\"a\":2}"), finish("tool_calls")];
    let xml = answer("all-calls", &events);
    assert_eq!(xml.message()["tool_calls"].as_array().unwrap().len(), 2);
    assert_eq!(xml.message()["content"], BLOCK);
    let json = answer("all-calls-json", &events);
    assert_eq!(
        (json.message()["tool_calls"][1]["id"].as_str(), &json.message()["content"]),
        (Some("call_1"), &Value::Null)
    );
}

#[test]
fn blocks_are_delimited() {
    let events = [call(0, "{\"a\":1}"), call(1, "{\"a\":2}"), finish("tool_calls")];
    let answer = answer("delimited", &events);
    let second = BLOCK.replace("<a>1", "<a>2");
    assert_eq!(answer.message()["content"], format!("{BLOCK}\n\n{second}"));
    assert_eq!(answer.contents().concat(), format!("{BLOCK}\n\n{second}"));
}

#[test]
fn a_fault_after_a_call_ends_the_response_as_the_call_does() {
    let fault = json!({ "error": { "message": "overloaded", "code": "500" } });
    let after = answer("all-calls", &[call(0, "{\"a\":1}"), fault.clone()]);
    assert_eq!(after.finishes(), ["tool_calls"]);
    assert!(!after.stream.contains("overloaded"), "{}", after.stream);
    assert_eq!(after.message()["content"], BLOCK);
    let before = answer("all-calls", &[text("Hm"), fault]);
    assert!(before.finishes().is_empty() && before.stream.contains("overloaded"), "{}", before.stream);
}

#[test]
fn a_call_in_both_forms_is_one_call() {
    let legacy = delta(json!({ "function_call": { "name": "f", "arguments": "{\"a\":1}" } }));
    let both = answer("codex-proxy", &[legacy.clone(), call(0, "{\"a\":1}"), finish("tool_calls")]);
    assert_eq!((both.contents(), both.finishes()), (vec![BLOCK], vec!["tool_calls"]));
    let alone = answer("json-mode", &[legacy, finish("function_call")]);
    assert_eq!((alone.finishes(), &alone.message()["function_call"]["name"]), (vec!["function_call"], &json!("f")));
}

/// `strict: per_tool` of the grammar `tool_call`: a call of a strict tool needs its required arguments.
#[test]
fn a_call_in_text_of_a_strict_tool_has_its_required_arguments() {
    let turn = |arguments: &str| {
        let written = format!("<tool_call>{{\"name\":\"f\",\"arguments\":{arguments}}}</tool_call>");
        turn_of("openai-chat", &[text(&written), finish("stop")])
    };
    let body = |strict: bool, arguments: &str| {
        let parameters = json!({ "type": "object", "required": ["a"] });
        let tool = json!({ "type": "function", "name": "f", "strict": strict, "parameters": parameters });
        let request = json!({ "model": "m", "input": "hi", "tools": [tool] }).to_string();
        set().body(&turn(arguments), "responses", "codex-proxy", &Tree::parse(request.as_bytes()).unwrap())
    };
    assert!(body(true, "{\"a\":1}").contains("\"function_call\""));
    let failed = body(true, "{}");
    assert!(failed.starts_with("HTTP 502") || failed.contains("\"failed\""), "{failed}");
    assert!(body(false, "{}").contains("\"function_call\""));
}
