//! The laws of a chat stream, read from its frames alone.

use crate::events::Told;
use reframe::domain::{FrameBody, Tree};
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
struct Seen {
    choices: BTreeMap<u64, Choice>,
    usage: Option<Tree>,
    failed: bool,
    terminators: usize,
}

fn add(text: &mut Option<String>, piece: Option<&Tree>) {
    if let Some(piece) = piece.and_then(Tree::as_str) {
        assert!(!piece.is_empty(), "an empty piece was told");
        text.get_or_insert_default().push_str(piece);
    }
}

fn read(told: &Told) -> Seen {
    let mut seen = Seen::default();
    let mut identity: Option<[Tree; 4]> = None;
    for frame in &told.stream.frames {
        assert_eq!(seen.terminators, 0, "a frame after the terminator");
        assert!(!seen.failed, "a frame after the failure");
        let data = match &frame.body {
            FrameBody::Data(data) => data,
            FrameBody::Text(text) => {
                assert_eq!(text, "[DONE]");
                seen.terminators += 1;
                continue;
            }
            FrameBody::Comment(_) => continue,
        };
        if data.get("error").is_some() {
            seen.failed = true;
            continue;
        }
        let now = ["id", "object", "created", "model"].map(|k| data.get(k).cloned().unwrap());
        assert_eq!(identity.get_or_insert_with(|| now.clone()), &now, "the identity of a stream is constant");
        if let Some(usage) = data.get("usage").filter(|u| !u.is_null()) {
            assert!(seen.usage.replace(usage.clone()).is_none(), "usage is told once");
            assert!(data.get("choices").unwrap().as_list().unwrap().is_empty());
            assert!(seen.choices.values().all(|c| c.finish.is_some()), "usage comes after the finishes");
        }
        assert!(seen.usage.is_none() || data.get("choices").unwrap().as_list().unwrap().is_empty(), "usage is last");
        for choice in data.get("choices").unwrap().as_list().unwrap() {
            one(choice, &mut seen);
        }
    }
    seen
}

fn one(choice: &Tree, seen: &mut Seen) {
    let index = choice.get("index").unwrap().as_u64().unwrap();
    if !seen.choices.contains_key(&index) {
        assert_eq!(index, seen.choices.len() as u64, "choices appear in order");
    }
    let state = seen.choices.entry(index).or_default();
    assert!(state.finish.is_none(), "a frame after the finish of its choice");
    let delta = choice.get("delta").unwrap();
    if delta.get("role").is_some() {
        assert_eq!(state.roles, 0, "the role is told once");
        state.roles += 1;
        return;
    }
    assert_eq!(state.roles, 1, "the role is told first");
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
            assert!(call.get("id").is_none() && function.get("name").is_none(), "id and name are told once");
            state.calls[at].arguments.push_str(arguments);
        }
    }
    state.finish = choice.get("finish_reason").and_then(Tree::as_str).map(str::to_owned);
}

pub fn laws(told: &Told) {
    let seen = read(told);
    if told.fault.is_some() {
        assert_eq!(seen.terminators, 0, "no terminator after a failure");
        assert!(seen.failed, "a failure is told");
        return;
    }
    assert!(!seen.failed);
    assert_eq!(seen.terminators, 1);
    assert_eq!(seen.choices.len(), told.script.n);
    assert!(seen.choices.values().all(|c| c.finish.is_some()), "every choice has its finish");
    assert!(seen.usage.is_none() || told.script.usage, "usage was not asked for");
    for call in seen.choices.values().flat_map(|c| &c.calls) {
        assert!(!call.id.is_empty() && !call.name.is_empty());
    }
}

/// Concatenated deltas = final.
pub fn fold_is(told: &Told, body: &Tree) {
    let seen = read(told);
    let choices = body.get("choices").unwrap().as_list().unwrap();
    assert_eq!(choices.len(), seen.choices.len());
    for (choice, state) in choices.iter().zip(seen.choices.values()) {
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
    if told.script.usage {
        assert_eq!(body.get("usage").cloned(), seen.usage);
    }
}
