//! Golden output of every value of every policy: `tests/policies/POLICY/VALUE.txt`. The outputs of two values differ.
//!
//! Each value is set in a profile that is added to the embedded set. A policy must not change anything else, so the
//! output of the default value must equal the output without that profile.

use crate::support::replay::{self, LoadedSet};
use reframe::testing::domain::policy::{BUILT_IN, PolicySpec};
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
    ("legacy_function_call", "chat", "openai-chat/legacy-function-call", &["upgrade", "preserve"]),
    ("truncation", "responses", "openai-chat/a15-length", &["incomplete", "completed"]),
    ("terminator", "chat", "openai-chat/a03-text", &["bare", "typed", "none"]),
    ("terminator_after_failure", "chat", "openai-chat/b064-error-later", &["none", "same"]),
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
    ("tool_first_delta_args", "chat", "openai-chat/call-then-text", &["empty_string", "omit", "value"]),
    ("usage_null", "chat", "openai-chat/a03-text", &["when_requested", "always"]),
    ("usage_null", "chat", "openai-chat/a04-usage-requested", &["when_requested", "never"]),
    ("usage_details", "chat", "openai-chat/a04-usage-requested", &["official", "none"]),
    ("usage_stream", "responses", "openai-chat/a04-usage-requested", &["always", "requested_only"]),
    ("stop_after_tools", "chat", "openai-chat/calls-of-all-kinds", &["off", "first"]),
    ("stop_after_tools", "responses", "openai-chat/calls-of-all-kinds", &["off", "first"]),
    ("tail_after_tools", "chat", "openai-chat/calls-in-text", &["keep", "same_chunk", "drop"]),
    ("tail_after_tools", "responses", "openai-chat/calls-of-all-kinds", &["keep", "drop"]),
    ("errors_after_tools", "chat", "openai-chat/error-after-call", &["error", "finish"]),
    ("errors_after_tools", "responses", "openai-chat/error-after-call", &["error", "finish"]),
    ("duplicate_calls", "chat", "openai-chat/calls-of-all-kinds", &["keep", "drop_call"]),
    ("duplicate_calls", "chat", "openai-chat/same-id-twice", &["keep", "drop_id"]),
    ("duplicate_calls", "chat", "openai-chat/calls-in-text", &["keep", "drop_text"]),
    ("tool_order", "chat", "openai-chat/calls-of-all-kinds", &["creation", "index"]),
    ("call_blocks", "chat", "openai-chat/calls-of-all-kinds", &["all", "first"]),
    ("call_block_text", "chat", "openai-chat/calls-in-text", &["literal", "canonical"]),
    ("call_block_keys", "chat", "openai-chat/calls-of-all-kinds", &["keep", "drop"]),
    ("call_block_arguments", "chat", "openai-chat/calls-of-all-kinds", &["skip", "element"]),
    ("output_mode", "chat", "openai-chat/calls-of-all-kinds", &["openai-json", "obsidian-xml"]),
    ("output_mode", "responses", "openai-chat/calls-of-all-kinds", &["openai-json", "obsidian-xml"]),
    ("text_tools", "chat", "openai-chat/calls-in-text", &["none", "use_tool", "tool_call"]),
    ("text_tools", "responses", "openai-chat/calls-in-text", &["none", "use_tool", "tool_call"]),
    ("text_with_calls", "chat", "openai-chat/calls-of-all-kinds", &["keep", "drop"]),
    ("tool_stats", "chat", "openai-chat/calls-of-all-kinds", &["none", "comment"]),
    ("empty_completion", "chat", "openai-chat/empty-completion", &["stop", "length"]),
    ("output_tokens", "chat", "openai-chat/two-choices-usage", &["total", "per_choice"]),
    ("finish_debug", "responses", "openai-chat/a03-text", &["off", "field"]),
    ("metadata_lines", "chat", "openai-chat/metadata-in-text", &["keep", "drop"]),
    ("metadata_lines", "responses", "openai-chat/metadata-in-text", &["keep", "drop"]),
];

/// Policies that are visible only with others.
const WITH: &[(&str, &str, &str)] = &[
    ("call_blocks", "calls-of-all-kinds", "output_mode: { chat: obsidian-xml }"),
    ("call_block_keys", "calls-of-all-kinds", "output_mode: { chat: obsidian-xml }"),
    ("call_block_arguments", "calls-of-all-kinds", "output_mode: { chat: obsidian-xml }"),
    ("call_block_text", "calls-in-text", "output_mode: { chat: obsidian-xml }\n  text_tools: { chat: use_tool }"),
    ("tail_after_tools", "calls-in-text", "text_tools: { chat: use_tool }"),
    ("duplicate_calls", "calls-in-text", "text_tools: { chat: use_tool }"),
];

fn other_policies(policy: &str, case: &str) -> Option<&'static str> {
    WITH.iter().find(|(name, with, _)| *name == policy && case.ends_with(with)).map(|(_, _, others)| *others)
}

/// Values that replayed turns cannot show, why, and the tests that show them.
const SHOWN_ELSEWHERE: &[(&str, &[&str], &str, &str)] = &[
    ("stop_after_tools", &["burst"], "needs a clock", "stop_after_tools.rs"),
    ("finish_debug", &["log", "header"], "is in the log, or in the head", "finish_reasons.rs"),
    ("on_idle", &["error", "finish_length"], "needs a clock", "../slow/disconnects/timeouts.rs"),
    ("disconnect", &["cancel", "drain"], "needs a socket", "life.rs"),
    ("aggregate.on_malformed", &["skip", "fail"], "needs bytes that are no JSON", "aggregation/policies.rs"),
    ("invalid_arguments", &["fault", "text"], "no shipped dialect reads `item.input`", "language/answers.rs"),
    ("non_object_arguments", &["keep", "invalid"], "no shipped dialect reads `item.input`", "language/answers.rs"),
    ("timeout_code", &["timeout", "timeout_error", "by_limit"], "needs a clock", "errors.rs"),
    ("model_echo", &["effective", "requested", "requested_lower"], "depends on the request", "models.rs"),
];

/// The embedded set with a profile for every value of every policy: `tried-ROW-VALUE`.
fn set() -> &'static LoadedSet {
    static SET: OnceLock<LoadedSet> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files = embedded::files();
        for (row, (policy, dialect, case, values)) in CASES.iter().enumerate() {
            let others = other_policies(policy, case).map(|others| format!("  {others}\n")).unwrap_or_default();
            for (at, value) in values.iter().enumerate() {
                let value = if value.starts_with('[') { (*value).to_owned() } else { format!("{value:?}") };
                let name = profile_name(row, at);
                let text = format!("profile: {name}\npolicies:\n  {policy}: {{ {dialect}: {value} }}\n{others}");
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
        if outputs[0].1 != default && other_policies(policy, case).is_none() {
            wrong.push(format!("{policy}: `{}` is not the value of the profile `openai`", values[0]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_value_of_every_built_in_policy_is_shown() {
    for spec in BUILT_IN {
        let cases = CASES.iter().filter(|(name, ..)| *name == spec.name);
        let shown: Vec<&str> = cases.flat_map(|(_, _, _, values)| values.iter().copied()).collect();
        let elsewhere: Vec<&str> = SHOWN_ELSEWHERE
            .iter()
            .filter(|(name, ..)| *name == spec.name)
            .flat_map(|(_, values, ..)| values.iter().copied())
            .collect();
        assert!(!spec.list || !shown.is_empty(), "`{}` is shown nowhere", spec.name);
        for value in spec.values.iter().filter(|_| !spec.list) {
            let places = usize::from(shown.contains(value)) + usize::from(elsewhere.contains(value));
            assert_eq!(places, 1, "`{}: {value}` is shown in {places} places", spec.name);
        }
    }
    for (policy, values, why, file) in SHOWN_ELSEWHERE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{policy} {why}: {}: {e}", path.display()));
        let last = policy.rsplit('.').next().unwrap();
        assert!(text.contains(last), "{} does not mention `{policy}`", path.display());
        let is_named = |value: &&str| text.contains(*value) || PolicySpec::find(policy).unwrap().is_default(value);
        assert!(values.iter().all(is_named), "{} does not set all of {values:?}", path.display());
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
