use super::MetadataLines;
use crate::domain::metadata_key::normal_key;
use crate::domain::{Delta, Event, Finish};
use proptest::prelude::*;
use std::sync::Arc;

fn filter() -> MetadataLines {
    filter_of(false)
}

fn filter_of(json_lines: bool) -> MetadataLines {
    MetadataLines::new(Arc::from(["rollout_path".to_owned(), "session_id".to_owned()]), json_lines, false)
}

/// The text that is left, received in these parts.
fn left(mut filter: MetadataLines, parts: &[&str]) -> (String, Vec<String>) {
    let mut output = Vec::new();
    for part in parts {
        let delta = Delta::Append((*part).to_owned());
        filter.push(Event::Text { choice: 0, item: None, part: None, delta }, &mut output);
    }
    let finish = Event::Finish { choice: Some(0), reason: Some(Finish::Stop), other: None };
    filter.push(finish, &mut output);
    let text = |event: &Event| match event {
        Event::Text { delta: Delta::Append(text), .. } => Some(text.clone()),
        _ => None,
    };
    let deltas: Vec<String> = output.iter().filter_map(text).collect();
    (deltas.concat(), deltas)
}

#[test]
fn lines_with_known_keys_are_removed() {
    for (text, wanted) in [
        ("a\nsession_id: 7\nb", "a\nb"),
        ("Session ID = 7\nb", "b"),
        ("a\nrollout_path: /tmp/x", "a"),
        ("a\n\nsession_id: 7\n\n", "a\n\n\n"),
        ("{\"session_id\": 7}\nb", "b"),
        ("metadata: {\"trace\": 1}\ntrace: 2\nb", "b"),
        ("metadata: none\nb", "metadata: none\nb"),
        ("the session_id; 7", "the session_id; 7"),
        ("session\nsession_identity: 1", "session\nsession_identity: 1"),
        ("{\"answer\": 7}", "{\"answer\": 7}"),
        ("a\n", "a\n"),
        ("", ""),
    ] {
        assert_eq!(left(filter(), &[text]).0, wanted, "{text:?}");
    }
}

/// From a known key on. The text before it may have been sent long ago.
#[test]
fn metadata_inside_a_line_is_removed() {
    for (text, wanted) in [
        ("Done. session_id: 7\nb", "Done. \nb"),
        ("Done (Session_ID=7)\nb", "Done (\nb"),
        ("see \"rollout_path\": /x", "see "),
        ("a 'session_id':7 b\n\nc", "a \n\nc"),
        ("a session_id: 7 rollout_path: x\nb", "a \nb"),
        // A key is a word, and the line has no key of its own.
        ("my_session_id: 7", "my_session_id: 7"),
        ("a session_ids: 7", "a session_ids: 7"),
        ("a session_id is 7", "a session_id is 7"),
        ("Note: session_id: 7", "Note: session_id: 7"),
        ("a = session_id=7", "a = session_id=7"),
        ("{\"a\": 1, \"session_id\": 7}", "{\"a\": 1, \"session_id\": 7}"),
        ("the \"x\": session_id: 7", "the \"x\": session_id: 7"),
        ("a session", "a session"),
    ] {
        assert_eq!(left(filter(), &[text]).0, wanted, "{text:?}");
    }
    let (_, deltas) = left(filter(), &["a sess", "ion is", " over"]);
    assert_eq!(deltas, ["a ", "session is", " over"], "only the word is held back");
}

#[test]
fn lines_of_json_are_removed_if_that_is_wanted() {
    for (text, wanted) in [
        ("{\"answer\": 7}\nanswer: 8\nb", "b"),
        ("a\n{\"answer\": 7", "a\n{\"answer\": 7"),
        ("{}\nb", "{}\nb"),
        ("{ is a brace\nb", "{ is a brace\nb"),
    ] {
        assert_eq!(left(filter_of(true), &[text]).0, wanted, "{text:?}");
    }
}

#[test]
fn text_is_held_back_only_while_it_can_be_a_key() {
    let (_, deltas) = left(filter(), &["se", "a", " is wide"]);
    assert_eq!(deltas, ["sea", " is wide"]);
    let (_, deltas) = left(filter(), &["Once", " upon"]);
    assert_eq!(deltas, ["Once", " upon"]);
}

#[test]
fn keys_are_learned_from_events() {
    let mut filter = filter();
    filter.push(Event::MetadataKeys { keys: vec!["Trace-Id".to_owned()], source: None }, &mut Vec::new());
    assert_eq!(left(filter, &["trace id: 4\nb"]).0, "b");
}

#[test]
fn what_is_removed_is_counted_by_line_and_key() {
    let mut filter = filter();
    let source = || Some("message.metadata".to_owned());
    for _ in 0..2 {
        filter.push(Event::MetadataKeys { keys: vec!["Trace-Id".to_owned()], source: source() }, &mut Vec::new());
    }
    let text = "session_id: 7\na\n {\"Session-ID\": 8}\ntrace id: 4\nmetadata: {\"Run\": 1}\nrun=2\nso rollout_path: x";
    let delta = Delta::Append(text.to_owned());
    filter.push(Event::Text { choice: 0, item: None, part: None, delta }, &mut Vec::new());
    filter.flush(&mut Vec::new());
    let removed = filter.removed();
    assert_eq!(removed.lines, 6);
    assert_eq!(removed.keys, ["session_id", "trace_id", "run", "rollout_path"]);
    assert_eq!(removed.sources, ["message.metadata"]);
}

#[test]
fn arguments_of_calls_are_not_searched() {
    let mut output = Vec::new();
    let close = Event::Close { choice: 0, item: None, key: Some("session_id: 7".to_owned()) };
    filter().push(close.clone(), &mut output);
    assert_eq!(output, [close]);
}

#[test]
fn a_key_has_one_normal_form() {
    assert_eq!(["Session ID", " session-id ", "session__id"].map(normal_key), ["session_id"; 3]);
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_how_text_is_split(
        lines in prop::collection::vec(prop::sample::select(vec![
            "session_id: 1", "sess", "rollout_path=/x", "metadata: {\"k\":1}", "k: 2", "text: é", "", " ", "{\"session_id\":1}",
            "metadata", "{\"a\":1}", "so session_id: 7", "it is \"rollout_path\"=é", "Note: session_id: 7", "a session_i",
        ]), 0..8),
        cuts in prop::collection::vec(0usize..200, 0..12),
        json_lines in any::<bool>(),
    ) {
        let text = lines.join("\n");
        let mut at: Vec<usize> = cuts.into_iter().filter(|at| *at < text.len() && text.is_char_boundary(*at)).collect();
        at.sort_unstable();
        let mut parts = Vec::new();
        let mut start = 0;
        for end in at.into_iter().chain([text.len()]) {
            parts.push(&text[start..end]);
            start = end;
        }
        prop_assert_eq!(left(filter_of(json_lines), &parts).0, left(filter_of(json_lines), &[&text]).0);
    }
}
