//! Golden output of every value of every policy: `tests/policies/POLICY/VALUE.txt`. The outputs of two values differ.
//!
//! Each value is set in a profile that is added to the embedded set. A policy must not change anything else, so the
//! output of the default value must equal the output without that profile.

use crate::support::replay::{self, LoadedSet};
use reframe::testing::domain::policy::BUILT_IN;
use reframe::testing::mapping::SourceFile;
use reframe::testing::reload::embedded;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Policy, dialect, transcript, and values; the first value is that of the profile `openai`.
const CASES: &[(&str, &str, &str, &[&str])] = &[
    ("tool_arguments", "chat", "openai-chat/a08-tool-call", &["incremental", "cumulative"]),
    ("usage", "responses", "openai-chat/matrix-no-usage", &["as_reported", "zeros", "estimate"]),
    ("usage_stream", "chat", "openai-chat/a04-usage-requested", &["requested_only", "never"]),
    ("usage_stream", "chat", "openai-chat/a03-text", &["requested_only", "always"]),
    ("output_index", "responses", "openai-chat/call-then-text", &["position", "message_first", "choice"]),
    ("items_overlap", "responses", "openai-chat/b004-interleaved-calls", &["interleaved", "serial_tools"]),
    ("items_overlap", "responses", "openai-chat/call-then-text", &["interleaved", "serial"]),
    ("choice_frames", "chat", "openai-chat/b061-two-choices", &["each", "together"]),
    ("empty_message_item", "responses", "openai-chat/a08-tool-call", &["omit", "always"]),
    ("close_items", "responses", "openai-chat/matrix-text-then-call", &["when_complete", "at_finish"]),
    ("tool_ids", "responses", "openai-chat/a08-tool-call", &["split", "same"]),
    ("empty_arguments", "chat", "openai-chat/empty-arguments", &["{}", ""]),
    ("truncation", "responses", "openai-chat/a15-length", &["incomplete", "completed"]),
    ("terminator", "chat", "openai-chat/a03-text", &["bare", "typed", "none"]),
    ("stream_start", "chat", "openai-chat/b064-error-first", &["first_event", "immediately"]),
    ("ids", "responses", "openai-responses/matrix-text-then-call", &["own", "backend"]),
    ("malformed_extras", "chat", "openai-chat/malformed-extras", &["drop", "fail"]),
    ("unknown_finish", "chat", "openai-chat/unknown-finish", &["stop", "fail"]),
    ("finish_without_calls", "chat", "openai-chat/finish-without-calls", &["stop", "fail"]),
    ("aggregate.on_empty", "responses", "openai-chat/empty", &["error", "completed", "failed"]),
    ("aggregate.on_partial", "responses", "openai-chat/a20-truncated", &["failed", "incomplete", "error"]),
    (
        "finish_precedence",
        "chat",
        "openai-chat/length-after-call",
        &["[ content_filter, length, tool_calls, stop ]", "[ tool_calls, length, stop ]"],
    ),
    ("role_content", "chat", "openai-chat/a03-text", &["empty_string", "null_value", "omitted"]),
    ("message_content", "chat", "codex-app-server/several-messages", &["concat", "last"]),
    ("reasoning", "chat", "openai-chat/b009-empty-tool-calls", &["keep", "drop"]),
    ("reasoning", "responses", "openai-chat/b009-empty-tool-calls", &["keep", "drop"]),
    ("reasoning_form", "chat", "openai-chat/b009-empty-tool-calls", &["reasoning_content", "reasoning"]),
    ("reasoning_form", "responses", "openai-responses/matrix-reasoning-then-text", &["events", "text_events"]),
    ("reasoning_form", "responses", "openai-responses/matrix-raw-thoughts", &["events", "summary_events"]),
];

/// Policies that need a clock or a socket are tested in tests/it/aggregation.rs and tests/slow/disconnects.rs, and one
/// that no shipped dialect needs in tests/it/language/answers.rs.
const TESTED_ELSEWHERE: &[&str] = &["on_idle", "aggregate.on_malformed", "invalid_arguments"];

/// The embedded set with a profile for every value of every policy: `tried-ROW-VALUE`.
fn set() -> &'static LoadedSet {
    static SET: OnceLock<LoadedSet> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files = embedded::files();
        for (row, (policy, dialect, _, values)) in CASES.iter().enumerate() {
            for (at, value) in values.iter().enumerate() {
                let value = if value.starts_with('[') { (*value).to_owned() } else { format!("{value:?}") };
                let name = profile_name(row, at);
                let text = format!("profile: {name}\npolicies:\n  {policy}: {{ {dialect}: {value} }}\n");
                let file = format!("profiles/{name}.yaml");
                files.push(SourceFile { name: file.clone(), shown: file, layer: 0, text: text.into() });
            }
        }
        LoadedSet::of(&files)
    })
}

fn profile_name(row: usize, value: usize) -> String {
    format!("tried-{row}-{value}")
}

fn output(set: &LoadedSet, dialect: &str, profile: &str, case: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(case);
    let transcript = replay::transcript(&folder.join("events.jsonl"));
    let requests = replay::requests(&folder.join("request.json"));
    let plain = reframe::testing::domain::Tree::parse(br#"{"model":"m","stream":true,"input":"hi"}"#).unwrap();
    let body = requests.get(dialect).unwrap_or(&plain);
    let stream = set.stream(&transcript, dialect, profile, body).text();
    format!("{stream}---\n{}", set.body(&transcript, dialect, profile, body))
}

#[test]
fn every_policy_value_changes_the_output() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for (row, (policy, dialect, case, values)) in CASES.iter().enumerate() {
        let mut outputs: Vec<(&str, String)> = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let got = output(set(), dialect, &profile_name(row, at), case);
            if let Some((other, _)) = outputs.iter().find(|(_, text)| *text == got) {
                wrong.push(format!("{policy}: {value} and {other} give the same on {case}"));
            }
            let file = value.replace([' ', '[', ']'], "").replace(',', "-").replace("{}", "object");
            let file = if file.is_empty() { "nothing".to_owned() } else { file };
            let name = format!("tests/policies/{policy}/{dialect}-{file}-{}.txt", case.rsplit('/').next().unwrap());
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&name);
            if update {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &got).unwrap();
            } else if fs::read_to_string(&path).unwrap_or_default() != got {
                wrong.push(format!("{name} differs; got\n{got}"));
            }
            outputs.push((value, got));
        }
        let default = output(set(), dialect, "openai", case);
        if outputs[0].1 != default {
            wrong.push(format!("{policy}: `{}` is not the value of the profile `openai`", values[0]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_built_in_policy_has_a_case() {
    for spec in BUILT_IN.iter().filter(|p| !TESTED_ELSEWHERE.contains(&p.name)) {
        let tested: Vec<&str> = CASES
            .iter()
            .filter(|(name, ..)| *name == spec.name)
            .flat_map(|(_, _, _, values)| values.iter().copied())
            .collect();
        assert!(!tested.is_empty(), "`{}` is shown nowhere", spec.name);
        for value in spec.values.iter().filter(|_| !spec.list) {
            assert!(tested.contains(value), "`{}: {value}` is shown nowhere", spec.name);
        }
    }
}

/// A policy of one dialect does not affect the other dialects.
#[test]
fn a_policy_changes_nothing_else() {
    let mut compared = 0;
    for (row, (policy, dialect, case, values)) in CASES.iter().enumerate() {
        for (at, value) in values.iter().enumerate() {
            for other in ["chat", "responses", "completions"] {
                if other == *dialect || (other == "responses" && case.contains("two-choices")) {
                    continue;
                }
                let plain = output(set(), other, "openai", case);
                // An error is the same with any policy.
                compared += usize::from(!plain.starts_with("HTTP "));
                assert_eq!(
                    output(set(), other, &profile_name(row, at), case),
                    plain,
                    "{policy}: {value} in {dialect} changed {other}"
                );
            }
        }
    }
    println!("{compared} outputs compared");
    assert!(compared > CASES.len(), "only {compared} outputs were compared");
}
