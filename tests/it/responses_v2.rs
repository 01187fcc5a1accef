//! The second Responses format, served by the profile `codex-proxy`: the envelope, the order of events, indexes, ids,
//! usage, and arguments.

use crate::support::replay::{self, LoadedSet};
use reframe::testing::domain::{FrameBody, Tree};
use std::path::Path;
use std::sync::OnceLock;

fn set() -> &'static LoadedSet {
    static SET: OnceLock<LoadedSet> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files = reframe::testing::reload::embedded::files();
        let policy_b = "profile: policy-b\npolicies: { usage: zeros }\n";
        files.push(reframe::testing::mapping::SourceFile {
            name: "profiles/policy-b.yaml".into(),
            shown: "policy-b.yaml".into(),
            layer: 0,
            text: policy_b.into(),
        });
        LoadedSet::of(&files)
    })
}

struct Output {
    /// (event name, data) in order; the terminator is ("done", text).
    events: Vec<(String, Tree)>,
    body: Tree,
}

fn output(case: &str) -> Output {
    output_with_profile(case, "codex-proxy")
}

fn output_with_profile(case: &str, profile: &str) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(case);
    let transcript = replay::transcript(&folder.join("events.jsonl"));
    let request = replay::requests(&folder.join("request.json"))["responses"].clone();
    let stream = set().stream(&transcript, "responses", profile, &request);
    let events = stream.frames.iter().map(|f| match &f.body {
        FrameBody::Data(data) => (f.event.clone().unwrap_or_default(), data.clone()),
        FrameBody::Text(text) | FrameBody::Comment(text) => {
            (f.event.clone().unwrap_or_default(), Tree::from(text.as_str()))
        }
    });
    let body = set().body(&transcript, "responses", profile, &request);
    Output { events: events.collect(), body: Tree::parse(body.as_bytes()).unwrap_or_default() }
}

impl Output {
    fn names(&self) -> Vec<&str> {
        self.events.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn all(&self, name: &str) -> Vec<&Tree> {
        self.events.iter().filter(|(n, _)| n == name).map(|(_, data)| data).collect()
    }
}

fn at<'t>(tree: &'t Tree, path: &str) -> &'t Tree {
    path.split('.').fold(tree, |node, step| match step.parse::<usize>() {
        Ok(index) => node.at(index).unwrap_or(&Tree::Null),
        Err(_) => node.get(step).unwrap_or(&Tree::Null),
    })
}

#[test]
fn the_envelope_has_its_fields() {
    let body = output("codex-app-server/matrix-text-then-call").body;
    let keys: Vec<&str> = body.as_map().unwrap().iter().map(|(k, _)| &**k).collect();
    assert_eq!(keys, ["id", "object", "created", "status", "model", "output", "usage"]);
    assert_eq!(at(&body, "object"), &Tree::from("response"));
    assert!(at(&body, "created").as_i64().is_some());
    assert_eq!(at(&body, "status"), &Tree::from("completed"));
    assert_eq!(at(&body, "model"), &Tree::from("m"));
}

#[test]
fn the_message_is_first_and_tool_calls_are_separate_items() {
    let body = output("codex-app-server/matrix-parallel-calls").body;
    assert_eq!(at(&body, "output.0.type"), &Tree::from("message"));
    assert_eq!(at(&body, "output.0.content.0.type"), &Tree::from("output_text"));
    for (index, name) in [(1, "f"), (2, "g")] {
        let item = at(&body, "output").at(index).unwrap();
        assert_eq!(at(item, "type"), &Tree::from("function_call"));
        assert_eq!(at(item, "name"), &Tree::from(name));
        assert!(at(item, "arguments").as_str().is_some(), "arguments are a string");
        assert!(at(item, "id").as_str().is_some_and(|id| !id.is_empty()));
        assert_eq!(at(item, "id"), at(item, "call_id"));
    }
}

#[test]
fn status_is_one_of_three() {
    let status = |case| at(&output(case).body, "status").clone();
    assert_eq!(status("openai-chat/matrix-text"), Tree::from("completed"));
    assert_eq!(status("openai-chat/matrix-truncated-by-length"), Tree::from("incomplete"));
    let failed = output("openai-chat/matrix-lost-connection");
    assert_eq!(at(failed.all("response.failed")[0], "response.status"), &Tree::from("failed"));
}

#[test]
fn tool_only_output_has_a_message() {
    let body = output("openai-chat/matrix-tool-call").body;
    assert_eq!(at(&body, "output.0.type"), &Tree::from("message"));
    assert_eq!(at(&body, "output.0.content.0.text"), &Tree::from(""));
    assert_eq!(at(&body, "output.1.type"), &Tree::from("function_call"));
}

#[test]
fn the_event_order_of_a_text_stream() {
    assert_eq!(
        output("openai-chat/matrix-text").names(),
        [
            "response.created",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.completed",
            "done"
        ]
    );
}

#[test]
fn text_is_done_before_the_tool_calls_and_completed_after_both() {
    let output = output("openai-chat/matrix-text-then-call");
    let names = output.names();
    let first = |name: &str| names.iter().position(|n| *n == name).unwrap();
    assert!(first("response.output_text.done") < first("response.function_call_arguments.done"));
    assert!(first("response.function_call_arguments.done") < first("response.output_item.done"));
    assert!(first("response.output_item.done") < first("response.completed"));
    assert_eq!(names.last(), Some(&"done"));
    assert_eq!(output.events.last().unwrap().1, Tree::from("[DONE]"));
}

#[test]
fn sequence_numbers_are_monotonic() {
    let output = output("openai-chat/matrix-parallel-calls");
    let numbers: Vec<u64> = output.events.iter().filter_map(|(_, d)| d.get("sequence_number")?.as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn text_is_at_index_0_and_tool_calls_follow() {
    for backend in ["openai-chat", "openai-responses", "anthropic-messages", "codex-app-server"] {
        let text = output(&format!("{backend}/matrix-text-then-call"));
        for name in ["response.output_text.delta", "response.output_text.done"] {
            assert_eq!(at(text.all(name)[0], "output_index"), &Tree::from(0i64), "{backend} {name}");
        }
        let calls = output(&format!("{backend}/matrix-parallel-calls"));
        for name in ["response.output_item.added", "response.function_call_arguments.done", "response.output_item.done"]
        {
            let indexes: Vec<&Tree> = calls.all(name).into_iter().map(|d| at(d, "output_index")).collect();
            assert_eq!(indexes, [&Tree::from(1i64), &Tree::from(2i64)], "{backend} {name}");
        }
    }
}

#[test]
fn ids_are_stable_from_added_to_completed() {
    let output = output("openai-responses/matrix-parallel-calls");
    let ids = |name: &str, path: &str| -> Vec<Tree> { output.all(name).iter().map(|d| at(d, path).clone()).collect() };
    let added = ids("response.output_item.added", "item.id");
    assert_eq!(added, ids("response.output_item.added", "item.call_id"));
    assert_eq!(added, ids("response.output_item.done", "item.id"));
    assert_eq!(added, ids("response.function_call_arguments.done", "item_id"));
    let last = output.all("response.completed")[0];
    let output: Vec<Tree> =
        at(last, "response.output").as_list().unwrap()[1..].iter().map(|i| at(i, "id").clone()).collect();
    assert_eq!(added, output);
}

#[test]
fn usage_policy_a_omits_unreported_usage() {
    let body = output("openai-chat/matrix-no-usage").body;
    assert_eq!(body.get("usage"), None);
    let body = output("openai-chat/matrix-text").body;
    assert_eq!(at(&body, "usage").to_json(), r#"{"input_tokens":3,"output_tokens":2,"total_tokens":5}"#);
}

#[test]
fn usage_policy_b_reports_zeros() {
    let body = output_with_profile("openai-chat/matrix-no-usage", "policy-b").body;
    assert_eq!(at(&body, "usage.input_tokens"), &Tree::from(0i64));
    assert_eq!(at(&body, "usage.total_tokens"), &Tree::from(0i64));
    let body = output_with_profile("openai-chat/matrix-text", "policy-b").body;
    assert_eq!(at(&body, "usage.total_tokens"), &Tree::from(5i64));
}

#[test]
fn the_envelope_has_no_finish_reason() {
    for profile in ["codex-proxy", "openai"] {
        let output = output_with_profile("openai-chat/matrix-tool-call", profile);
        assert!(!output.body.to_json().contains("finish_reason"));
    }
}

#[test]
fn arguments_are_stringified_once() {
    // Codex sends an object, and so does Anthropic in a JSON response; the others send a string.
    let codex = output("codex-app-server/matrix-tool-call").body;
    assert_eq!(at(&codex, "output.1.arguments"), &Tree::from(r#"{"a":1}"#));
    let chat = output("openai-chat/matrix-tool-call").body;
    assert_eq!(at(&chat, "output.1.arguments"), &Tree::from(r#"{"a":1}"#));
    let none = output("openai-chat/empty-arguments").body;
    assert_eq!(at(&none, "output.1.arguments"), &Tree::from(""));
}
