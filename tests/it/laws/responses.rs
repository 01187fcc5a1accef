//! The invariants of a Responses stream, checked on its frames.

use super::events::Output;
use reframe::testing::domain::{FrameBody, Tree};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct ItemState {
    id: String,
    kind: String,
    closed: bool,
    done: Option<Tree>,
    /// (content or summary, index) → (text so far, closed)
    parts: BTreeMap<(bool, u64), (String, bool)>,
    arguments: String,
}

fn text<'t>(tree: &'t Tree, key: &str) -> &'t str {
    tree.get(key).and_then(Tree::as_str).unwrap_or_else(|| panic!("no text `{key}` in {tree}"))
}

fn number(tree: &Tree, key: &str) -> u64 {
    tree.get(key).and_then(Tree::as_u64).unwrap_or_else(|| panic!("no number `{key}` in {tree}"))
}

pub fn assert_invariants(output: &Output) {
    let mut items: Vec<ItemState> = Vec::new();
    let mut identity = None;
    let mut terminal: Option<Tree> = None;
    let mut terminators = 0;
    for (position, frame) in output.stream.frames.iter().enumerate() {
        assert_eq!(terminators, 0, "a frame after the terminator");
        let data = match &frame.body {
            FrameBody::Data(data) => data,
            FrameBody::Text(done) => {
                assert_eq!(done, "[DONE]");
                assert!(terminal.is_some(), "the terminator comes after the terminal event");
                terminators += 1;
                continue;
            }
            FrameBody::Comment(_) => continue,
        };
        assert!(terminal.is_none(), "an event after the terminal one");
        assert_eq!(number(data, "sequence_number"), position as u64, "no gap in the sequence");
        let kind = text(data, "type");
        assert_eq!(frame.event.as_deref(), Some(kind), "the event name is the type");
        let only_failure = output.stream.frames.len() <= 2 && kind == "response.failed";
        assert!((position == 0) == (kind == "response.created") || only_failure, "created once and first: {kind}");
        if let Some(response) = data.get("response") {
            let now = ["id", "object", "created_at", "model"].map(|k| response.get(k).cloned().unwrap());
            assert_eq!(identity.get_or_insert_with(|| now.clone()), &now, "the identity is constant");
            if !matches!(kind, "response.created" | "response.in_progress") {
                terminal = Some(data.clone());
            }
            continue;
        }
        let index = number(data, "output_index") as usize;
        if kind == "response.output_item.added" {
            assert_eq!(index, items.len(), "output_index is dense, in the order of added");
            let item = data.get("item").unwrap();
            assert!(!items.iter().any(|i| i.id == text(item, "id")), "ids are unique");
            items.push(ItemState {
                id: text(item, "id").into(),
                kind: text(item, "type").into(),
                ..ItemState::default()
            });
            continue;
        }
        let item = items.get_mut(index).unwrap_or_else(|| panic!("{kind} before its item opened"));
        assert!(!item.closed, "{kind} after its item closed");
        if kind == "response.output_item.done" {
            let done = data.get("item").unwrap();
            assert_eq!(text(done, "id"), item.id, "done has the id of its added");
            assert_eq!(text(done, "type"), item.kind);
            assert!(item.parts.values().all(|(_, closed)| *closed), "an open part in a closed item");
            if item.kind == "function_call" {
                assert_eq!(text(done, "arguments"), item.arguments);
            }
            item.closed = true;
            item.done = Some(done.clone());
            continue;
        }
        assert_eq!(text(data, "item_id"), item.id, "{kind} names its item");
        if kind.contains("_arguments.delta") || kind.contains("_input.delta") {
            item.arguments.push_str(text(data, "delta"));
            continue;
        }
        if kind.contains("_arguments.done") {
            assert_eq!(text(data, "arguments"), item.arguments, "concatenated deltas = final");
            continue;
        }
        if kind.contains("_input.done") {
            assert_eq!(text(data, "input"), item.arguments);
            continue;
        }
        let summary = data.get("summary_index").is_some();
        let key = (summary, number(data, if summary { "summary_index" } else { "content_index" }));
        let opens = kind.ends_with("part.added");
        if opens {
            assert!(!item.parts.contains_key(&key), "a part opens once");
            assert_eq!(key.1, item.parts.keys().filter(|k| k.0 == summary).count() as u64, "parts are dense");
            item.parts.insert(key, (String::new(), false));
            continue;
        }
        let part = item.parts.get_mut(&key).unwrap_or_else(|| panic!("{kind} before its part opened"));
        assert!(!part.1, "{kind} after its part closed");
        if kind.ends_with(".delta") {
            assert!(!text(data, "delta").is_empty(), "an empty delta was sent");
            part.0.push_str(text(data, "delta"));
        } else if kind.ends_with("part.done") {
            part.1 = true;
            let done = data.get("part").unwrap();
            let text_done = done.get("text").or(done.get("refusal")).and_then(Tree::as_str).unwrap();
            assert_eq!(text_done, part.0);
        } else if kind.ends_with(".done") {
            let text_done = data.get("text").or(data.get("refusal")).and_then(Tree::as_str).unwrap();
            assert_eq!(text_done, part.0, "concatenated deltas = final");
        }
    }
    assert_eq!(terminators, 1, "one terminator, last");
    let terminal = terminal.expect("one terminal event");
    let response = terminal.get("response").unwrap();
    match (&output.fault, text(&terminal, "type")) {
        (Some(_), kind) => assert_eq!(kind, "response.failed"),
        (None, "response.completed" | "response.incomplete") => {
            assert!(items.iter().all(|i| i.closed), "an open item at the end");
            let done: Vec<&Tree> = items.iter().filter_map(|i| i.done.as_ref()).collect();
            let output: Vec<&Tree> = response.get("output").unwrap().as_list().unwrap().iter().collect();
            assert_eq!(output, done, "the terminal output is what was streamed, in index order");
        }
        (None, other) => panic!("{other} without a fault"),
    }
    if let Ok(body) = &output.body {
        assert_eq!(body, response, "the body is the last envelope");
    }
}
