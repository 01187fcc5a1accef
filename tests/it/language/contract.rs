//! Strict checks, and what is lost on the way.

use crate::support::{MockResponse, TestDir, TestGateway, dialect_request};
use serde_json::json;
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
    assert!(!gateway.server.log().contains("matched no rule"), "{}", gateway.server.log());
    let reply = gateway.fetch(
        "unknown",
        MockResponse::ndjson(&[&unknown, &unknown, &unknown, &stop]),
        dialect_request("chat", "unknown", false),
    );
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "bbb", "{}", reply.text());
    gateway.server.wait_for_log("no rule matches `list[1]`");
    assert_eq!(gateway.server.log().matches("matched no rule").count(), 1, "{}", gateway.server.log());
}
