//! Strict checks, and what is lost on the way.

use crate::support::{MockResponse, Request, TestDir, TestGateway, dialect_request, edited, eventually, repo, serve};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The output of `reframe check` for a case of tests/diagnostics/, after an edit of one of its files.
fn check_case(case: &str, file: &str, old: &str, new: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let text = std::fs::read_to_string(root.join(case).join(file)).unwrap();
    assert!(text.contains(old), "{case}: {old}");
    let dir = TestDir::empty();
    dir.write(&format!("layer/{file}"), &text.replacen(old, new, 1));
    let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
    command.args(["check", "--add"]).arg(dir.path("layer")).current_dir(&root);
    let output = command.output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

const SHIP: &str = "backends/ship.yaml";
const PIRATE: &str = "dialects/pirate.yaml";

/// The case, its file, the mistake, the code, and an edit that fixes it.
const MISTAKES: &[(&str, &str, &str, &str, &str)] = &[
    ("a-selector-in-a-request-body", SHIP, "$.model", "RF103", "\"{{ '$.model' }}\""),
    ("a-selector-in-a-request-body", SHIP, "$.model", "RF103", "\"{{ request.model }}\""),
    ("a-selector-with-two-signs", SHIP, "\"^^.v\"", "RF101", "{ value: \"^^.v\" }"),
    ("a-condition-with-an-operator", SHIP, "\"!= 1\"", "RF013", "{ equals: \"!= 1\" }"),
    ("an-unknown-variable-in-a-slice", PIRATE, "nosuch[0:3]", "RF104", "turn.id[0:3]"),
    ("an-unknown-field-in-brackets", PIRATE, "['inputt']", "RF104", "['input']"),
    ("an-unknown-field-after-an-index", PIRATE, "[0].txet", "RF104", "[0].text"),
    ("a-switch-over-roles-without-a-default", SHIP, "assistant: b", "RF111", "assistant: b, $default: c"),
    ("a-switch-over-tools-that-lacks-a-case", SHIP, "function:", "RF111", "$default: x, function:"),
    ("a-switch-over-calls-that-lacks-a-case", SHIP, "function:", "RF111", "custom: x, function:"),
    ("a-switch-over-a-tool-choice-that-lacks-a-case", SHIP, "none: b", "RF111", "none: b, $default: c"),
    ("a-finish-without-a-table", SHIP, "reason: $.stop", "RF205", "reason: { from: $.stop, table: { default: stop } }"),
    ("a-table-over-a-record", PIRATE, "turn.usage |", "RF102", "turn.finish |"),
];

const JOINS: &[(&str, &str, &str, &str, &str)] = &[
    ("a-join-over-records", PIRATE, "join(', ')", "RF102", "json"),
    ("a-concatenation-of-a-list", PIRATE, "turn.items }}", "RF102", "(turn.items | json) }}"),
];

fn assert_found_and_fixed(mistakes: &[(&str, &str, &str, &str, &str)]) {
    for (case, file, mistake, code, fix) in mistakes {
        let found = check_case(case, file, mistake, mistake);
        assert!(found.contains(&format!("[{code}]")), "{case}: {found}");
        let fixed = check_case(case, file, mistake, fix);
        assert!(fixed.contains(": 0 errors, 0 warnings"), "{case}: {fixed}");
    }
}

#[test]
fn c12_mistakes_that_look_valid_are_found_and_the_advice_fixes_them() {
    assert_found_and_fixed(MISTAKES);
}

/// A slice reads its variable like everything else.
#[test]
fn c12_a_slice_reads_its_variable() {
    let dir = TestDir::shipped();
    dir.edit(
        "mappings/dialects/chat.yaml",
        "object: chat.completion\n",
        "object: \"{{ 'chat.completion'[0:] ~ turn.nosuch[0:3] }}\"\n",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
    let output = command.arg("check").current_dir(dir.path("")).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(text.contains("unknown variable `turn.nosuch`"), "{text}");
}

#[test]
fn c13_records_and_lists_are_not_joined_as_text() {
    assert_found_and_fixed(JOINS);
}

const TWO_GROUPS: &str = r#"
backend: two-groups
transport: http
request: { path: /chat, body: { model: "{{ request.model }}" } }
events:
  framing: ndjson
  rules:
    - { each: "$.list[*]", where: { "@.t": text }, emit: [ text: { delta: "@.v" } ] }
    - { where: { $.stop: exists }, emit: [ finish: { reason: stop } ] }
    - { each: "$.list[*]", where: { "@.t": note }, drop: a note }
"#;

/// Elements that another group over the same list knows are not unknown, and what is unknown is logged once.
#[test]
fn c11_an_element_is_unknown_only_if_no_group_knows_it_and_is_logged_once() {
    let dir = TestDir::empty();
    dir.write("layer/backends/two-groups.yaml", TWO_GROUPS);
    let gateway = TestGateway::start("two-groups", "openai", dir);
    let known = json!({ "list": [{ "t": "text", "v": "a" }, { "t": "note" }] }).to_string();
    let unknown = json!({ "list": [{ "t": "text", "v": "b" }, { "t": "zork" }] }).to_string();
    let stop = json!({ "stop": true }).to_string();
    let reply =
        gateway.fetch("known", MockResponse::ndjson(&[&known, &known, &stop]), dialect_request("chat", "known", false));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "aa", "{}", reply.text());
    assert!(!gateway.server.complete_log().contains("matched no rule"), "{}", gateway.server.log());
    let reply = gateway.fetch(
        "unknown",
        MockResponse::ndjson(&[&unknown, &unknown, &unknown, &stop]),
        dialect_request("chat", "unknown", false),
    );
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "bbb", "{}", reply.text());
    gateway.server.wait_for_log("no rule matches `list[1]`");
    assert_eq!(gateway.server.log().matches("matched no rule").count(), 1, "{}", gateway.server.log());
}

fn dropped(gateway: &TestGateway, model: &str, messages: Value) -> String {
    let finish = json!({ "choices": [{ "index": 0, "delta": { "content": "ok" }, "finish_reason": "stop" }] });
    let response = MockResponse::sse(&[&finish.to_string(), "[DONE]"]);
    let mut request = json!({ "model": model, "messages": messages });
    request["stream_options"] = json!({ "include_usage": true, "include_obfuscation": false, "zork": 1 });
    let reply = gateway.fetch(model, response, Request::post(request.to_string()));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    reply.header("x-reframe-dropped").unwrap_or_default().to_owned()
}

/// Members that no selector reads are listed with their places; what is read, null, empty or `ignored` is not.
#[test]
fn c17_members_that_nothing_reads_are_listed_with_their_places() {
    let gateway = TestGateway::start("openai-chat", "openai", TestDir::empty());
    let call = json!({ "id": "c1", "type": "function", "index": 0, "function": { "name": "f", "arguments": "{}" } });
    let messages = json!([
        { "role": "system", "content": "be brief", "name": "" },
        { "role": "user", "name": "ann", "content": [
            { "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } },
            { "type": "image_url", "image_url": { "url": "https://example.com/a.png", "detail": "low", "hue": 1 } },
        ] },
        { "role": "assistant", "content": null, "refusal": null, "reasoning_content": "hm", "audio": { "id": "a" },
          "annotations": [{ "type": "url_citation" }], "tool_calls": [call], "function_call": null },
        { "role": "tool", "tool_call_id": "c1", "content": "1", "is_error": true },
    ]);
    assert_eq!(
        dropped(&gateway, "unread", messages),
        "items.reasoning, messages[0].name, messages[1].name, messages[1].content[0].cache_control, \
         messages[1].content[1].image_url.hue, messages[2].audio, messages[3].is_error, stream_options.zork"
    );
}

/// What the dialect reads and the backend's body does not is listed too, and so are elements that a rule drops.
#[test]
fn c17_what_the_body_does_not_read_is_listed() {
    let dir = TestDir::empty();
    let dialect = edited(
        &repo("mappings/dialects/chat.yaml"),
        "emit: [ result: { call_id: \"@.tool_call_id\",",
        "emit: [ result: { call_id: \"@.tool_call_id\", failed: \"@.is_error\",",
    );
    let dialect = edited(
        &dialect,
        "    refusal:\n      - { where: { \"@\": string }",
        "      - { each: \"@[*]\", where: { \"@.type\": note }, drop: notes are for the client }\n    refusal:\n      - { where: { \"@\": string }",
    );
    dir.write("layer/dialects/chat.yaml", &dialect);
    let gateway = TestGateway::start("openai-chat", "openai", dir);
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let messages = json!([
        { "role": "user", "content": [{ "type": "note", "text": "x" }, { "type": "text", "text": "hi" }] },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": "1", "is_error": true },
        { "role": "tool", "tool_call_id": "c2", "content": "1", "is_error": false },
    ]);
    assert_eq!(dropped(&gateway, "body", messages), "messages[2].failed, messages[0].content[0], stream_options.zork");
}

/// `explain --loss` lists what no rule reads of a backend's events, and a clean report is possible.
#[test]
fn c17_explain_lists_members_of_events_that_no_rule_reads() {
    let dir = TestDir::shipped();
    let events = r#"{"transcript":"openai-chat"}
{"raw":{"object":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"a","mood":"fine"}}]}}
{"raw":{"choices":[{"index":0,"delta":{"content":"b","mood":"fine"},"finish_reason":"stop"}]}}
{"end":true}
"#;
    dir.write("case/events.jsonl", events);
    let explain = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
        let output = command.args(["explain", "case", "--to", "chat", "--loss"]).current_dir(dir.path("")).output();
        let output = output.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let report = explain();
    assert!(report.contains("   2  not read: choices[].delta.mood\n"), "{report}");
    assert_eq!(report.matches("not read").count(), 1, "{report}");
    dir.edit(
        "mappings/backends/openai-chat.yaml",
        "    - $.object\n",
        "    - $.object\n    - $.choices[*].delta.mood\n",
    );
    let report = explain();
    assert!(!report.contains("not read"), "{report}");
}

/// The same at run time: counted and logged once per path.
#[test]
fn c17_members_of_events_that_no_rule_reads_are_counted_once() {
    let gateway = TestGateway::start("openai-chat", "openai", TestDir::empty());
    let chunk = |finish: Value| json!({ "choices": [{ "index": 0, "delta": { "content": "a", "mood": "fine" }, "finish_reason": finish }] });
    let response =
        || MockResponse::sse(&[&chunk(Value::Null).to_string(), &chunk(json!("stop")).to_string(), "[DONE]"]);
    for model in ["one", "two"] {
        let reply = gateway.fetch(model, response(), dialect_request("chat", model, false));
        assert_eq!(reply.status(), 200, "{}", reply.text());
    }
    gateway.server.wait_for_log("choices[].delta.mood");
    assert_eq!(gateway.server.log().matches("choices[].delta.mood").count(), 1, "{}", gateway.server.log());
    assert_eq!(gateway.metric("reframe_upstream_unread_members_total{backend=\"openai-chat\"}"), 1.0);
}

/// A set with one dialect; its body is `body`, its tables `tables`. The body of a turn with two calls.
fn rendered(tables: &str, body: &str) -> Value {
    let dir = TestDir::shipped();
    let dialect = format!(
        "dialect: probe\nrequest: {{ model: $.model }}\ntables: {tables}\nstream:\n  framing: {{ data: json }}\n  \
         frames: {{ turn.end: {{ done: {{ text: x }} }} }}\n  order: {{ turn: turn.end }}\nbody: {body}\n\
         errors: {{ $use: openai_error }}\n"
    );
    dir.write("mappings/dialects/probe.yaml", &dialect);
    let events = r#"{"transcript":"openai-chat"}
{"raw":{"choices":[{"index":0,"delta":{"content":"a-b-c","tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}}
{"raw":{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}}
{"end":true}
"#;
    dir.write("case/events.jsonl", events);
    let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
    let output = command.args(["explain", "case", "--to", "probe", "--body"]).current_dir(dir.path("")).output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a19_small_filters() {
    let body = r#"
  time: "{{ 1767225600 | rfc3339 }}"
  parts: "{{ turn.choices[0].text | split('-') }}"
  replaced: "{{ turn.choices[0].text | replace('-', '+') }}"
  any: "{{ turn.items | any('kind', 'function') }}"
  none: "{{ turn.items | any('kind', 'custom') }}"
  all: "{{ turn.items | all('kind', 'function') }}"
  numbers: "{{ [1, 0] | any }}"
"#;
    let expected = json!({
        "time": "2026-01-01T00:00:00Z", "parts": ["a", "b", "c"], "replaced": "a+b+c",
        "any": true, "none": false, "all": false, "numbers": true,
    });
    assert_eq!(rendered("{}", body), expected);
}

#[test]
fn a19_maps_are_merged() {
    let body =
        r#"{ $merge: [ { a: 1, b: 2 }, { $if: turn.usage, then: { b: 9 } }, { b: 3, c: "{{ turn.id | length }}" } ] }"#;
    let merged = rendered("{}", body);
    assert_eq!((&merged["a"], &merged["b"]), (&json!(1), &json!(3)));
    assert!(merged["c"].as_u64().unwrap() > 0 && merged.as_object().unwrap().len() == 3, "{merged}");
}

#[test]
fn a19_tables_have_patterns_thresholds_and_pass_words_through() {
    let tables = "
  words: { f: row, patterns: [ { contains: b-, is: pattern }, { starts_with: a, is: late } ], default: same }
  sizes: { patterns: [ { below: 3, is: low }, { below: 10, is: middle } ], default: high }";
    let body = r#"
  row: "{{ turn.choices[0].calls[0].name | table('words') }}"
  pattern: "{{ turn.choices[0].text | table('words') }}"
  same: "{{ turn.choices[0].calls[0].call_id | table('words') }}"
  low: "{{ 2 | table('sizes') }}"
  middle: "{{ turn.choices[0].text | length | table('sizes') }}"
  high: "{{ 10 | table('sizes') }}"
"#;
    let expected =
        json!({ "row": "row", "pattern": "pattern", "same": "c1", "low": "low", "middle": "middle", "high": "high" });
    assert_eq!(rendered(tables, body), expected);
}

const MIXED: &str = r#"
backend: mixed
transport: http
request: { path: /chat, body: { model: "{{ request.model }}" } }
events:
  framing: ndjson
  rules:
    - where: { $.list: exists }
      emit:
        - { each: "$.list[*]", where: { "@.t": text }, text: { delta: "@.v" } }
        - { each: "$.list[*]", where: { "@.t": loud }, text: { delta: "@.w" } }
    - { where: { $.stop: exists }, emit: [ finish: { reason: stop } ] }
"#;

/// Entries of `emit:` with the same `each` walk their list once: the output has the order of the input.
#[test]
fn a14_entries_with_the_same_list_keep_its_order() {
    let dir = TestDir::empty();
    dir.write("layer/backends/mixed.yaml", MIXED);
    let gateway = TestGateway::start("mixed", "openai", dir);
    let list = json!({ "list": [{ "t": "text", "v": "a" }, { "t": "loud", "w": "B" }, { "t": "text", "v": "c" }] });
    let response = MockResponse::ndjson(&[&list.to_string(), &json!({ "stop": true }).to_string()]);
    let reply = gateway.fetch("mixed", response, dialect_request("chat", "mixed", false));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "aBc", "{}", reply.text());
}

/// A key can be replaced without a restart; a file that is empty for a moment locks nobody out.
#[test]
fn a20_a_key_file_is_read_again_when_it_changes() {
    let dir = TestDir::shipped();
    dir.write("key.txt", "the-first-key\n");
    let file = format!("secret: {{ file: {:?} }}", dir.path("key.txt"));
    dir.edit("mappings/gateway.yaml", "secret: { env: REFRAME_API_KEY }", &file);
    let server = serve().in_folder(&dir.path("")).start();
    let status = |key: &str| {
        let request = Request::get("/v1/models").header("authorization", &format!("Bearer {key}"));
        server.client().fetch(request).status()
    };
    assert_eq!((status("the-first-key"), status("the-second-key")), (200, 401));
    dir.write("key.txt", "the-second-key, longer\n");
    eventually("the new key", || (status("the-second-key, longer") == 200).then_some(()));
    assert_eq!(status("the-first-key"), 401);
    dir.write("key.txt", "");
    // The third key proves that the empty file was not taken for a key, however long it is checked.
    assert_eq!(status("the-second-key, longer"), 200);
    dir.write("key.txt", "the-third-key\n");
    eventually("the third key", || (status("the-third-key") == 200).then_some(()));
}
