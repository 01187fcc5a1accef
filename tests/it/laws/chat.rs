//! The invariants of a chat stream, checked on its frames.

use super::events::Output;
use reframe::testing::domain::{FrameBody, Tree};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Choice {
    roles: usize,
    content: Option<String>,
    refusal: Option<String>,
    reasoning: Option<String>,
    calls: Vec<Call>,
    finish: Option<String>,
}

#[derive(Debug, Default, PartialEq)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

#[derive(Debug, Default)]
struct ParsedStream {
    choices: BTreeMap<u64, Choice>,
    usage: Option<Tree>,
    failed: bool,
    terminators: usize,
}

fn add(text: &mut Option<String>, delta: Option<&Tree>) {
    if let Some(delta) = delta.and_then(Tree::as_str) {
        assert!(!delta.is_empty(), "an empty delta was sent");
        text.get_or_insert_default().push_str(delta);
    }
}

fn parse(output: &Output) -> ParsedStream {
    let mut parsed = ParsedStream::default();
    let mut identity: Option<[Tree; 4]> = None;
    for frame in &output.stream.frames {
        assert_eq!(parsed.terminators, 0, "a frame after the terminator");
        assert!(!parsed.failed, "a frame after the failure");
        let data = match &frame.body {
            FrameBody::Data(data) => data,
            FrameBody::Text(text) => {
                assert_eq!(text, "[DONE]");
                parsed.terminators += 1;
                continue;
            }
            FrameBody::Comment(_) => continue,
        };
        if data.get("error").is_some() {
            parsed.failed = true;
            continue;
        }
        let now = ["id", "object", "created", "model"].map(|k| data.get(k).cloned().unwrap());
        assert_eq!(identity.get_or_insert_with(|| now.clone()), &now, "the identity of a stream is constant");
        if let Some(usage) = data.get("usage").filter(|u| !u.is_null()) {
            assert!(parsed.usage.replace(usage.clone()).is_none(), "usage is sent once");
            assert!(data.get("choices").unwrap().as_list().unwrap().is_empty());
            assert!(parsed.choices.values().all(|c| c.finish.is_some()), "usage comes after the finishes");
        }
        assert!(parsed.usage.is_none() || data.get("choices").unwrap().as_list().unwrap().is_empty(), "usage is last");
        for choice in data.get("choices").unwrap().as_list().unwrap() {
            parse_choice(choice, &mut parsed);
        }
    }
    parsed
}

fn parse_choice(choice: &Tree, parsed: &mut ParsedStream) {
    let index = choice.get("index").unwrap().as_u64().unwrap();
    if !parsed.choices.contains_key(&index) {
        assert_eq!(index, parsed.choices.len() as u64, "choices appear in order");
    }
    let state = parsed.choices.entry(index).or_default();
    assert!(state.finish.is_none(), "a frame after the finish of its choice");
    let delta = choice.get("delta").unwrap();
    if delta.get("role").is_some() {
        assert_eq!(state.roles, 0, "the role is sent once");
        state.roles += 1;
        return;
    }
    assert_eq!(state.roles, 1, "the role is sent first");
    assert!(delta.get("content").is_none() || delta.get("tool_calls").is_none(), "text and calls share a frame");
    add(&mut state.content, delta.get("content"));
    add(&mut state.refusal, delta.get("refusal"));
    add(&mut state.reasoning, delta.get("reasoning_content"));
    for call in delta.get("tool_calls").and_then(Tree::as_list).unwrap_or(&[]) {
        let at = call.get("index").unwrap().as_u64().unwrap() as usize;
        let function = call.get("function").unwrap();
        let arguments = function.get("arguments").unwrap().as_str().unwrap();
        if at == state.calls.len() {
            let text = |t: Option<&Tree>| t.and_then(Tree::as_str).unwrap().to_owned();
            assert_eq!(arguments, "");
            assert_eq!(call.get("type"), Some(&Tree::from("function")));
            state.calls.push(Call { id: text(call.get("id")), name: text(function.get("name")), ..Call::default() });
        } else {
            assert_eq!(at + 1, state.calls.len(), "a fragment of a call that is not the open one");
            assert!(call.get("id").is_none() && function.get("name").is_none(), "id and name are sent once");
            state.calls[at].arguments.push_str(arguments);
        }
    }
    state.finish = choice.get("finish_reason").and_then(Tree::as_str).map(str::to_owned);
}

pub fn assert_invariants(output: &Output) {
    let parsed = parse(output);
    if output.fault.is_some() {
        assert_eq!(parsed.terminators, 0, "no terminator after a failure");
        assert!(parsed.failed, "a failure is sent");
        return;
    }
    assert!(!parsed.failed);
    assert_eq!(parsed.terminators, 1);
    assert_eq!(parsed.choices.len(), output.script.n);
    assert!(parsed.choices.values().all(|c| c.finish.is_some()), "every choice has its finish");
    assert!(parsed.usage.is_none() || output.script.usage, "usage was not requested");
    for call in parsed.choices.values().flat_map(|c| &c.calls) {
        assert!(!call.id.is_empty() && !call.name.is_empty());
    }
}

/// Asserts that the body equals the concatenated deltas, and returns the number of choices.
pub fn assert_body_is_fold(output: &Output, body: &Tree) -> usize {
    let parsed = parse(output);
    let choices = body.get("choices").unwrap().as_list().unwrap();
    assert_eq!(choices.len(), parsed.choices.len());
    for (choice, state) in choices.iter().zip(parsed.choices.values()) {
        let message = choice.get("message").unwrap();
        let text = |key: &str| message.get(key).and_then(Tree::as_str).map(str::to_owned);
        assert_eq!(text("content"), state.content);
        assert_eq!(text("refusal"), state.refusal);
        assert_eq!(choice.get("finish_reason").and_then(Tree::as_str).map(str::to_owned), state.finish);
        let calls: Vec<Call> = message
            .get("tool_calls")
            .and_then(Tree::as_list)
            .unwrap_or(&[])
            .iter()
            .map(|call| {
                let function = call.get("function").unwrap();
                let text = |t: Option<&Tree>| t.and_then(Tree::as_str).unwrap().to_owned();
                Call {
                    id: text(call.get("id")),
                    name: text(function.get("name")),
                    arguments: text(function.get("arguments")),
                }
            })
            .collect();
        assert_eq!(calls, state.calls);
    }
    if output.script.usage {
        assert_eq!(body.get("usage").cloned(), parsed.usage);
    }
    choices.len()
}
