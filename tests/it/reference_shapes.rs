//! What clients of existing proxies, and of OpenAI, get for the same turn: `tests/shapes/CASE/PROFILE.DIALECT.sse` (or
//! `.json`, with the status). The turn is `BACKEND.jsonl`, for one or two backends. Ids, times and the order of members
//! do not count.
//!
//! The files of `openai` have only what every response has. Our responses have more, and every difference is one of
//! these: the response object echoes all settings of the request, also its tools, and reports cache writes; a stream of events ends with
//! `[DONE]`; items of reasoning have a status; the content next to the role is empty text, also before a call.
//!
//! In a body of `codex-completions-api.responses` the text before a call is kept. The proxy drops it.

use crate::support::replay::{self, LoadedSet};
use reframe::testing::domain::Tree;
use reframe::testing::mapping::SourceFile;
use reframe::testing::reload::embedded;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const MODES: [&str; 2] = ["openai-json", "obsidian-xml"];

/// The embedded set with a profile for each output mode.
fn set() -> &'static LoadedSet {
    static SET: OnceLock<LoadedSet> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files = embedded::files();
        for mode in MODES {
            let name = format!("codex-completions-api.{mode}");
            let text = format!(
                "profile: {name}\nextends: codex-completions-api\npolicies: {{ output_mode: {{ chat: {mode} }} }}\n"
            );
            files.push(SourceFile { name: format!("profiles/{name}.yaml"), shown: name, layer: 0, text: text.into() });
        }
        LoadedSet::of(&files)
    })
}

fn request(dialect: &str, stream: bool) -> Tree {
    let tool = json!({ "type": "function", "name": "get_time", "parameters": {} });
    let mut body = json!({ "model": "model-a", "stream": stream });
    if dialect == "chat" {
        body["messages"] = json!([{ "role": "user", "content": "hi" }]);
        body["tools"] = json!([{ "type": "function", "function": tool }]);
    } else {
        body["input"] = json!("hi");
        body["tools"] = json!([tool]);
    }
    if stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    Tree::parse(body.to_string().as_bytes()).unwrap()
}

/// One line for each frame: the event name, and the data or the comment.
fn frames(text: &str) -> Vec<(String, Value)> {
    let frame = |block: &str| {
        let mut event = String::new();
        let mut data = Value::Null;
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("event", name)) => event = name.to_owned(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
                _ => data = json!(line),
            }
        }
        (event, without_ids(data))
    };
    text.split("\n\n").filter(|block| !block.trim().is_empty()).map(frame).collect()
}

fn without_ids(value: Value) -> Value {
    let id = |text: &str| {
        let prefix =
            ["chatcmpl-", "resp_", "msg_output_", "msg_", "rs_", "fc_"].into_iter().find(|p| text.starts_with(p));
        json!(match prefix {
            Some("msg_output_") | None => text,
            Some(prefix) => prefix,
        })
    };
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| match (name.as_str(), value) {
                    ("created" | "created_at" | "time_to_first_token_ms" | "total_duration_ms", _) => (name, json!(0)),
                    ("id" | "item_id" | "response_id", Value::String(text)) => (name, id(&text)),
                    (_, value) => (name, without_ids(value)),
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_ids).collect()),
        other => other,
    }
}

/// Whether `got` has all of `wanted`; lists have the same length.
fn has_all(got: &Value, wanted: &Value) -> bool {
    match (got, wanted) {
        (Value::Object(got), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| got.get(name).is_some_and(|got| has_all(got, value)))
        }
        (Value::Array(got), Value::Array(wanted)) => {
            got.len() == wanted.len() && got.iter().zip(wanted).all(|(got, wanted)| has_all(got, wanted))
        }
        (got, wanted) => got == wanted,
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn clients_get_the_shapes_that_they_know() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in files(&root) {
        let (turns, wanted): (Vec<PathBuf>, Vec<PathBuf>) =
            files(&case).into_iter().partition(|path| path.extension().is_some_and(|e| e == "jsonl"));
        for (turn, path) in turns.iter().flat_map(|turn| wanted.iter().map(move |path| (turn, path))) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let mut words = name.split('.');
            let (profile, dialect) = (words.next().unwrap(), words.next().unwrap());
            // Only the newer backend reports details of usage.
            if profile == "openai" && turn.ends_with("codex-legacy.jsonl") {
                continue;
            }
            let profile = words.next().map_or(profile.to_owned(), |mode| format!("{profile}.{mode}"));
            let transcript = replay::transcript(turn);
            let golden = fs::read_to_string(path).unwrap();
            let stream = path.extension().is_some_and(|e| e == "sse");
            let body = request(dialect, stream);
            let matches = if stream {
                let text = set().stream(&transcript, dialect, &profile, &body).text();
                let (mut got, wanted) = (frames(&text), frames(&golden));
                if profile == "openai" && dialect == "responses" {
                    assert_eq!(got.pop().map(|(_, data)| data), Some(json!("[DONE]")), "{}", path.display());
                }
                let is_same = |((event, got), (name, wanted)): (&(String, Value), &(String, Value))| {
                    event == name && if profile == "openai" { has_all(got, wanted) } else { got == wanted }
                };
                let same = got.len() == wanted.len() && got.iter().zip(&wanted).all(is_same);
                (same, text)
            } else {
                let text = set().body(&transcript, dialect, &profile, &body);
                let wanted: Value = serde_json::from_str(&golden).unwrap();
                let status = text.strip_prefix("HTTP ").and_then(|rest| rest.split_once('\n'));
                let (status, json) = status.unwrap_or(("200", &text));
                let got = without_ids(serde_json::from_str(json).unwrap());
                let same =
                    wanted["status"].as_u64() == status.parse().ok() && got == without_ids(wanted["body"].clone());
                (same, text)
            };
            compared += 1;
            if !matches.0 {
                wrong.push(format!("{} with {}\n{}", path.display(), turn.display(), matches.1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(compared > 35, "only {compared} outputs were compared");
}
