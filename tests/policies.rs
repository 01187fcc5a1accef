//! Every value of every policy, with a golden that differs from its neighbours': `tests/policies/POLICY/VALUE.txt`.
//!
//! A policy is set in a profile laid over the embedded set, as a user would. Nothing but what it governs may change,
//! so the golden of the default value must be what the set says without that profile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/replay.rs"]
mod replay;

use reframe::domain::policy::BUILT_IN;
use reframe::mapping::FileText;
use reframe::reload::embedded;
use replay::Set;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// policy, dialect, transcript that shows it, its values (the first is what the profile `openai` has)
const SHOWN: &[(&str, &str, &str, &[&str])] = &[
    ("tool_arguments", "chat", "openai-chat/a08-tool-call", &["incremental", "cumulative"]),
    ("usage", "responses", "openai-chat/matrix-no-usage", &["as_reported", "zeros", "estimate"]),
    ("usage_stream", "chat", "openai-chat/a04-usage-asked-for", &["requested_only", "never"]),
    ("usage_stream", "chat", "openai-chat/a03-text", &["requested_only", "always"]),
    ("output_index", "responses", "openai-chat/call-then-text", &["position", "message_first", "choice"]),
    ("tools_overlap", "responses", "openai-chat/b004-interleaved-calls", &["interleaved", "serial"]),
    ("choice_frames", "chat", "openai-chat/b061-two-choices", &["each", "together"]),
    ("empty_message_item", "responses", "openai-chat/a08-tool-call", &["omit", "always"]),
    ("terminal_order", "responses", "openai-chat/matrix-text-then-call", &["by_item", "at_end"]),
    ("tool_ids", "responses", "openai-chat/a08-tool-call", &["split", "same"]),
    ("empty_arguments", "chat", "openai-chat/empty-arguments", &["{}", ""]),
    ("truncation", "responses", "openai-chat/a15-length", &["incomplete", "completed"]),
    ("terminator", "chat", "openai-chat/a03-text", &["bare", "typed", "none"]),
    ("head", "chat", "openai-chat/b064-error-first", &["first_event", "at_once"]),
    ("ids", "responses", "openai-responses/matrix-text-then-call", &["own", "backend"]),
    ("stream2json.on_empty", "responses", "openai-chat/empty", &["error502", "completed", "failed"]),
    ("stream2json.on_partial", "responses", "openai-chat/a20-cut", &["failed", "incomplete", "error502"]),
    (
        "finish_precedence",
        "chat",
        "openai-chat/length-after-call",
        &["[ content_filter, length, tool_calls, stop ]", "[ tool_calls, length, stop ]"],
    ),
    ("role_content", "chat", "openai-chat/a03-text", &["empty", "nothing", "absent"]),
    ("message_pick", "chat", "codex-app-server/several-messages", &["concat", "last_non_empty"]),
    ("reasoning", "chat", "openai-chat/b009-empty-tool-calls", &["field", "drop"]),
    ("reasoning", "responses", "openai-chat/b009-empty-tool-calls", &["events", "drop"]),
];

/// Those that need a clock or a socket: tests/ac_003.rs and tests/presence.rs show them.
const SHOWN_LIVE: &[&str] = &["stream_idle_result", "stream2json.on_malformed", "stream2json.usage"];

/// One set with a profile for every value of every policy: `tried-ROW-VALUE`.
fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files = embedded::files();
        for (row, (policy, dialect, _, values)) in SHOWN.iter().enumerate() {
            for (at, value) in values.iter().enumerate() {
                let value = if value.starts_with('[') { (*value).to_owned() } else { format!("{value:?}") };
                let name = tried(row, at);
                let text = format!("profile: {name}\npolicies:\n  {policy}: {{ {dialect}: {value} }}\n");
                let file = format!("profiles/{name}.yaml");
                files.push(FileText { name: file.clone(), shown: file, text: text.into() });
            }
        }
        Set::of(&files)
    })
}

fn tried(row: usize, value: usize) -> String {
    format!("tried-{row}-{value}")
}

fn told(set: &Set, dialect: &str, profile: &str, case: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(case);
    let transcript = replay::transcript(&folder.join("events.jsonl"));
    let requests = replay::requests(&folder.join("request.json"));
    let plain = reframe::domain::Tree::parse(br#"{"model":"m","stream":true,"input":"hi"}"#).unwrap();
    let body = requests.get(dialect).unwrap_or(&plain);
    let stream = set.stream(&transcript, dialect, profile, body).text();
    format!("{stream}---\n{}", set.body(&transcript, dialect, profile, body))
}

#[test]
fn every_value_differs_from_its_neighbour() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for (row, (policy, dialect, case, values)) in SHOWN.iter().enumerate() {
        let mut seen: Vec<(&str, String)> = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let got = told(set(), dialect, &tried(row, at), case);
            if let Some((other, _)) = seen.iter().find(|(_, text)| *text == got) {
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
            seen.push((value, got));
        }
        let default = told(set(), dialect, "openai", case);
        if seen[0].1 != default {
            wrong.push(format!("{policy}: `{}` is not what the profile `openai` says", values[0]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_built_in_policy_is_shown() {
    for spec in BUILT_IN.iter().filter(|p| !SHOWN_LIVE.contains(&p.name)) {
        let shown: Vec<&str> = SHOWN
            .iter()
            .filter(|(name, ..)| *name == spec.name)
            .flat_map(|(_, _, _, values)| values.iter().copied())
            .collect();
        assert!(!shown.is_empty(), "`{}` is shown nowhere", spec.name);
        for value in spec.values.iter().filter(|_| !spec.list) {
            assert!(shown.contains(value), "`{}: {value}` is shown nowhere", spec.name);
        }
    }
}

/// Changing a policy for one dialect leaves the others as they were.
#[test]
fn a_policy_changes_nothing_else() {
    for (row, (policy, dialect, case, values)) in SHOWN.iter().enumerate() {
        for (at, value) in values.iter().enumerate() {
            for other in ["chat", "responses", "completions"] {
                if other == *dialect || (other == "responses" && case.contains("two-choices")) {
                    continue;
                }
                let plain = told(set(), other, "openai", case);
                assert_eq!(
                    told(set(), other, &tried(row, at), case),
                    plain,
                    "{policy}: {value} in {dialect} changed {other}"
                );
            }
        }
    }
}
