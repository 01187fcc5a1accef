//! Inline blocks: reasoning and calls that a model writes into its text.

use super::turns::{Answer, added_file, answer, calls, chunk, content, edited_files, finish, response};
use crate::support::replay::LoadedSet;
use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::{SourceFile, load};
use serde_json::{Value, json};
use std::sync::LazyLock;

const INLINE: &str = r#"  inline:
    think: { open: "<think>", close: "</think>", reasoning: {} }
    call: { open: "<tool_call>", close: "</tool_call>", tool: { json: {}, id: "text_{choice}_{ordinal}" } }
    use: { open: "<use_tool>", close: "</use_tool>", tool: { xml: {} } }

tables:
  status:
"#;

static SET: LazyLock<LoadedSet> =
    LazyLock::new(|| LoadedSet::of(&edited_files(&[("backends/openai-chat.yaml", "tables:\n  status:\n", INLINE)])));

fn request(tools: &[&str]) -> Value {
    let tool = |name: &&str| json!({ "type": "function", "function": { "name": name, "parameters": {} } });
    let mut request = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "Hi" }] });
    if !tools.is_empty() {
        request["tools"] = tools.iter().map(tool).collect();
    }
    request
}

/// The deltas as the backend's stream.
fn streamed(deltas: &[&str]) -> Vec<Value> {
    let mut raws: Vec<Value> = deltas.iter().map(|text| chunk(json!({ "content": text }), Value::Null)).collect();
    raws.push(chunk(json!({}), json!("stop")));
    raws
}

fn chat(deltas: &[&str], request: &Value) -> Answer {
    answer(&SET, "openai-chat", &streamed(deltas), "chat", "openai", request)
}

fn reasoning(answer: &Answer) -> String {
    let deltas = answer.frames.iter().filter_map(|f| f["choices"][0]["delta"]["reasoning_content"].as_str());
    let streamed: String = deltas.collect();
    assert_eq!(streamed, answer.body["choices"][0]["message"]["reasoning_content"].as_str().unwrap_or_default());
    streamed
}

#[test]
fn a01_reasoning_in_text_is_reasoning() {
    let answer = chat(&["<th", "ink>\nHm", ", well.</think", ">\n\nHello", "!"], &request(&[]));
    assert_eq!(reasoning(&answer), "Hm, well.");
    assert_eq!(content(&answer), "Hello!");
    assert_eq!(finish(&answer), "stop");
}

#[test]
fn a01_a_call_in_text_is_a_call_and_no_text() {
    let call = ["Let me see.", "<tool", "_call>{\"name\": \"find\", \"arguments\": {\"q\": 1.0}}</tool_", "call>\n"];
    let answer = chat(&call, &request(&["find"]));
    assert_eq!(calls(&answer), [("text_0_0".into(), "find".into(), "{\"q\":1.0}".into())]);
    assert_eq!(content(&answer), "Let me see.");
    assert_eq!(finish(&answer), "tool_calls");
}

#[test]
fn a01_calls_as_elements_and_as_json_follow_each_other() {
    let text = "<use_tool><name>find</name><q>a &amp; b</q></use_tool> <tool_call>{\"name\":\"find\"}</tool_call>";
    let answer = chat(&[text], &request(&["find"]));
    let calls: Vec<(String, String)> = calls(&answer).into_iter().map(|(_, name, args)| (name, args)).collect();
    assert_eq!(calls, [("find".into(), "{\"q\":\"a & b\"}".into()), ("find".into(), "{}".into())]);
    assert_eq!(content(&answer), "");
}

#[test]
fn a01_a_call_is_text_without_a_tool_for_it() {
    let call = "<tool_call>{\"name\": \"find\"}</tool_call>";
    let mut none = request(&["find"]);
    none["tool_choice"] = json!("none");
    let mut other = request(&["find", "now"]);
    other["tool_choice"] = json!({ "type": "function", "function": { "name": "now" } });
    for request in [request(&[]), request(&["now"]), none, other] {
        let answer = chat(&["a ", &call[..9], &call[9..]], &request);
        assert_eq!(content(&answer), format!("a {call}"), "{request}");
        assert_eq!(calls(&answer), []);
        assert_eq!(finish(&answer), "stop");
    }
}

#[test]
fn a01_a_json_response_has_the_same_blocks_as_a_stream() {
    let text = "<think>Hm.</think>Hi.<tool_call>{\"name\":\"find\",\"arguments\":\"{}\"}</tool_call>";
    let message = json!({ "role": "assistant", "content": text });
    let whole = [response(message, "stop")];
    let whole = answer(&SET, "openai-chat", &whole, "chat", "openai", &request(&["find"]));
    let streamed = chat(&[text], &request(&["find"]));
    assert_eq!((reasoning(&whole), content(&whole), calls(&whole)), ("Hm.".into(), "Hi.".into(), calls(&streamed)));
    assert_eq!(whole.body["choices"], streamed.body["choices"]);
}

#[test]
fn a01_a_stream_that_ends_early_sends_what_was_held_back() {
    let mut raws = streamed(&["Hi <thi"]);
    raws.pop();
    let answer = answer(&SET, "openai-chat", &raws, "chat", "openai", &request(&[]));
    let text: String = answer.frames.iter().filter_map(|f| f["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Hi <thi");
    assert!(answer.frames.last().unwrap()["error"].is_object(), "{:#?}", answer.frames);
}

#[test]
fn a01_responses_clients_get_items_in_order() {
    let text = "<think>Hm.</think>Hi.<tool_call>{\"name\":\"find\",\"arguments\":{}}</tool_call>Bye.";
    let tools = json!([{ "type": "function", "name": "find", "parameters": {} }]);
    let request = json!({ "model": "m", "stream": true, "input": "Hi", "tools": tools });
    let answer = answer(&SET, "openai-chat", &streamed(&[text]), "responses", "openai", &request);
    let items: Vec<&Value> = answer.body["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(items, ["reasoning", "message", "function_call", "message"]);
    let last = answer.frames.last().unwrap();
    assert_eq!(last["response"]["output"], answer.body["output"]);
}

#[test]
fn a01_a_profile_adds_blocks_to_a_dialect() {
    let profile = "profile: textual\npatch:\n  chat:\n    inline:\n      \
                   use: { $add: { open: \"<use_tool\", close: \"</use_tool>\", tool: { xml: {} } } }\n";
    let mut files = edited_files(&[]);
    files.push(added_file("profiles/textual.yaml", profile));
    let set = LoadedSet::of(&files);
    let text = "Well. <use_tool name=\"find\"><q>x</q></use_tool>";
    let played = |profile| answer(&set, "openai-chat", &streamed(&[text]), "chat", profile, &request(&["find"]));
    let textual = played("textual");
    assert_eq!(content(&textual), "Well. ");
    assert_eq!(calls(&textual)[0].2, "{\"q\":\"x\"}");
    assert_eq!(content(&played("openai")), text);
}

fn warnings(files: &[SourceFile]) -> String {
    let loaded = load(files);
    render_all(&loaded.diagnostics, &loaded.sources, false)
}

/// A set with a backend that sends only text, and a dialect that has no place for calls.
fn plain_set(inline: &str) -> Vec<SourceFile> {
    let gateway = "backends: { plain: { use: plain, url: http://127.0.0.1:9 } }\nmodels: [ { id: m, backend: plain } ]\n\
                   routes: [ { endpoint: POST /plain, dialect: plain, validation: off } ]\n";
    let backend = format!(
        "backend: plain\ntransport: http\nrequest: {{ path: /, body: {{ model: \"{{{{ request.model }}}}\" }} }}\n\
         events:\n  framing: ndjson\n  rules:\n    - {{ where: {{ $.t: string }}, emit: [ text: {{ delta: $.t }} ] }}\n    \
         - {{ where: {{ $.f: string }}, emit: [ finish: {{ reason: stop }} ] }}\n{inline}"
    );
    let dialect = "dialect: plain\nrequest:\n  model: $.model\n  rules: {}\nstream:\n  framing: { as: ndjson }\n  frames:\n    \
                   text.delta: { text: { data: { t: \"{{ text }}\" } } }\n    \
                   tool.close: { call: { data: { c: \"{{ item.name }}\" } } }\n    \
                   turn.fail: { fail: { data: { e: \"{{ fault.message }}\" } } }\n  \
                   order: { choice: text.delta* | tool.close* }\n\
                   body: {}\nerrors: {}\n";
    vec![
        added_file("gateway.yaml", gateway),
        added_file("backends/plain.yaml", &backend),
        added_file("dialects/plain.yaml", dialect),
    ]
}

#[test]
fn a01_the_proof_of_an_order_knows_the_calls_in_text() {
    assert_eq!(warnings(&plain_set("")), "");
    let call = "  inline: { call: { open: \"<c>\", close: \"</c>\", tool: { json: {} } } }\n";
    let with_calls = warnings(&plain_set(call));
    let expected = "`text.delta` can be followed by `tool.close`, which is not allowed there";
    assert!(with_calls.contains("RF203") && with_calls.contains(expected), "{with_calls}");
}

#[test]
fn a01_a_derived_backend_adds_blocks() {
    let derived = "backend: local\nextends: openai-chat\npatch:\n  events:\n    inline:\n      $add:\n        \
                   think: { open: \"<think>\", close: \"</think>\", reasoning: { starts_open: true } }\n        \
                   call: { open: \"<tool_call>\", close: \"</tool_call>\", tool: { json: {} } }\n";
    let mut files = edited_files(&[]);
    files.push(added_file("backends/local.yaml", derived));
    let text = "Hm.</think>\n\nHi.<tool_call>{\"name\":\"find\"}</tool_call>";
    let answer = answer(&LoadedSet::of(&files), "local", &streamed(&[text]), "chat", "openai", &request(&["find"]));
    assert_eq!((reasoning(&answer), content(&answer)), ("Hm.".to_owned(), "Hi.".to_owned()));
    assert_eq!(calls(&answer).len(), 1);
}
