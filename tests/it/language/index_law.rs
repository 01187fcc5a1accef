//! The index law of a dialect, one policy for usage, and what `validate` knows of policies.

use crate::support::replay::LoadedSet;
use reframe::testing::capture::{read, validate};
use reframe::testing::diagnostics::render_all;
use reframe::testing::domain::policy::{BUILT_IN, OutputIndex, PolicySpec};
use reframe::testing::domain::{
    CallKind, Delta, Derived, Event, Finish, IndexLaw, ItemKind, Moment, MomentKind, Policies, ReasoningKind,
    SentItems, TurnState,
};
use reframe::testing::mapping::{SourceFile, load};
use reframe::testing::reload::embedded;
use reframe::testing::turn::{Ids, Turn};

/// The policies that decide about indexes, with all values.
const DECIDING: [&str; 4] = ["output_index", "empty_message_item", "close_items", "reasoning"];

fn combinations() -> Vec<Policies> {
    let mut all = vec![Policies::default()];
    for name in DECIDING {
        let values = PolicySpec::find(name).unwrap().values;
        let with = |policies: &Policies, value: &str| {
            let mut policies = policies.clone();
            policies.set(name, value);
            policies
        };
        all = all.iter().flat_map(|policies| values.iter().map(move |value| with(policies, value))).collect();
    }
    all
}

fn text(item: Option<&str>) -> Event {
    Event::Text { choice: 0, item: item.map(str::to_owned), part: None, delta: Delta::Append("a".into()) }
}

fn steps() -> Vec<Event> {
    let call = |id: &str| Event::Tool {
        choice: 0,
        key: None,
        id: Some(id.into()),
        name: Some("f".into()),
        kind: Some(CallKind::Function),
        delta: Some(Delta::Append("{}".into())),
        by: Derived::default(),
        legacy: false,
        literal: Derived::default(),
    };
    let reasoning = Event::Reasoning {
        choice: 0,
        item: None,
        kind: ReasoningKind::Raw,
        part: None,
        delta: Some(Delta::Append("hm".into())),
        encrypted: None,
    };
    let mut other_choice = text(None);
    if let Event::Text { choice, .. } = &mut other_choice {
        *choice = 1;
    }
    vec![text(None), text(Some("k1")), text(Some("k2")), call("c1"), call("c2"), reasoning, other_choice]
}

/// Every sequence of up to three steps.
fn turns() -> Vec<Vec<Event>> {
    let mut all: Vec<Vec<Event>> = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..3 {
        let longer = longest.iter().flat_map(|turn| {
            steps().into_iter().map(move |step| turn.iter().cloned().chain([step]).collect::<Vec<Event>>())
        });
        longest = longer.collect();
        all.extend(longest.clone());
    }
    all
}

/// Whether a client that keeps items by position, or by choice, understands the turn.
fn obeys(law: IndexLaw, policies: &Policies, sent: SentItems, turn: &[Event]) -> bool {
    let mut announced: Vec<(usize, usize, ItemKind)> = Vec::new();
    let mut last = TurnState::default();
    let mut played = Turn::new(policies.clone(), Ids::Counting(0), "m", 1, 0).sends(sent);
    let mut record = |state: &TurnState, moment: &Moment| {
        if let (MomentKind::MessageOpen | MomentKind::ReasoningOpen | MomentKind::ToolOpen, Some(item)) =
            (moment.kind, moment.item)
        {
            let item = &state.items[item];
            announced.push((item.index, item.choice, item.kind));
        }
        last = state.clone();
    };
    for event in turn {
        played.advance(event.clone(), &mut record);
    }
    played.advance(Event::Finish { choice: None, reason: Some(Finish::Stop), other: None }, &mut record);
    played.advance(Event::End, &mut record);
    announced.retain(|(_, _, kind)| sent.includes(*kind));
    match law {
        IndexLaw::None => true,
        IndexLaw::Choice => announced.iter().all(|(index, choice, _)| index == choice),
        IndexLaw::Position => {
            let mut items: Vec<_> = last.items.iter().filter(|item| sent.includes(item.kind)).collect();
            items.sort_by_key(|item| item.index);
            announced.iter().enumerate().all(|(at, (index, ..))| at == *index)
                && items.iter().enumerate().all(|(at, item)| at == item.index)
        }
    }
}

/// The proof that `check` uses is exact: a combination that it accepts breaks no turn, and of one that it refuses there
/// is a turn that breaks the law.
#[test]
fn b01_the_proof_of_the_index_law_agrees_with_every_short_turn() {
    let turns = turns();
    let kinds = [
        SentItems::ALL,
        SentItems { reasoning: false, ..SentItems::ALL },
        SentItems { messages: false, ..SentItems::ALL },
    ];
    let (mut accepted, mut refused) = (0, 0);
    for policies in combinations() {
        for sent in kinds {
            for law in IndexLaw::ALL {
                let conflict = law.conflict(&policies, sent);
                let broken = turns.iter().find(|turn| !obeys(*law, &policies, sent, turn));
                let what = || format!("{law:?} {sent:?} {:?}: {conflict:?}, {broken:?}", policies.output_index);
                assert_eq!(conflict.is_some(), broken.is_some(), "{}", what());
                *(if conflict.is_some() { &mut refused } else { &mut accepted }) += 1;
            }
        }
    }
    println!("{accepted} accepted, {refused} refused, {} turns each", turns.len());
    assert!(accepted > 50 && refused > 50 && turns.len() == 400, "{accepted} {refused} {}", turns.len());
}

fn file(name: &str, text: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), shown: name.to_owned(), layer: 0, text: text.into() }
}

/// The embedded set, of which the route of the dialect `responses` has this profile.
fn with_profile(profile: &str) -> Vec<SourceFile> {
    let mut files = embedded::files();
    for file in files.iter_mut().filter(|file| file.name == "gateway.yaml") {
        file.text =
            file.text.replace("dialect: responses, profile: openai", "dialect: responses, profile: mine").into();
    }
    files.push(file("profiles/mine.yaml", &format!("profile: mine\n{profile}\n")));
    files
}

fn errors(files: &[SourceFile]) -> String {
    let loaded = load(files);
    if loaded.plan.is_some() {
        return String::new();
    }
    render_all(&loaded.diagnostics, &loaded.sources, false)
}

#[test]
fn b01_policies_that_break_the_index_law_are_refused_with_both_lines() {
    let refused =
        errors(&with_profile("policies:\n  output_index: { responses: message_first }\n  empty_message_item: omit"));
    assert!(refused.contains("RF138") && refused.contains("profiles/mine.yaml:3:"), "{refused}");
    assert!(refused.contains("does not fit to `empty_message_item: omit` (profiles/mine.yaml:4:"), "{refused}");
    // The advice, literally.
    let fixed =
        "policies:\n  output_index: { responses: message_first }\n  empty_message_item: always\n  reasoning: drop";
    assert_eq!(errors(&with_profile(fixed)), "");
    assert_eq!(
        errors(&with_profile("policies:\n  output_index: message_first\npatch: { responses: { index: none } }")),
        ""
    );
    let choice = errors(&with_profile("policies:\n  output_index: choice"));
    assert!(choice.contains("RF138") && choice.contains("`index: position`"), "{choice}");
    assert_eq!(errors(&with_profile("policies:\n  output_index: choice\npatch: { responses: { index: choice } }")), "");
    let law = errors(&with_profile("policies: { usage: zeros }\npatch: { responses: { index: choice } }"));
    assert!(law.contains("RF138") && law.contains("profiles/mine.yaml"), "{law}");
}

const BY_CHOICE: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":RESPONSE}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"c1","name":"f","arguments":""}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":INDEX,"item":{"id":"fc_2","type":"function_call","status":"in_progress","call_id":"c2","name":"f","arguments":""}}
"#;

#[test]
fn b01_validate_follows_the_law_of_the_dialect() {
    let findings = |law: &str, index: usize| -> Vec<String> {
        let profile = format!("policies: {{ output_index: choice }}\npatch: {{ responses: {{ index: {law} }} }}");
        // A profile without a route is loaded all the same.
        let mut files = embedded::files();
        files.push(file("profiles/mine.yaml", &format!("profile: mine\n{profile}\n")));
        let set = LoadedSet::of(&files);
        let text = BY_CHOICE.replace("INDEX", &index.to_string()).replace("RESPONSE", "{\"id\":\"resp_1\"}");
        let report = validate(set.plan.dialect("responses", Some("mine")).unwrap(), &read(&text).unwrap());
        report.findings.into_iter().map(|f| f.text).filter(|text| text.contains("index")).collect()
    };
    assert_eq!(findings("position", 1), [""; 0]);
    assert_eq!(findings("position", 0), ["`fc_2` is opened at the index of `fc_1`, which was opened on line 5"]);
    assert_eq!(findings("choice", 0), [""; 0]);
    assert_eq!(findings("choice", 1), ["an item of choice 0 has the index 1"]);
    assert_eq!(findings("none", 0), [""; 0]);
    assert_eq!(findings("none", 7), [""; 0]);
}

#[test]
fn b05_one_policy_decides_about_usage_in_streams_and_bodies() {
    assert!(BUILT_IN.iter().all(|policy| policy.name == "usage" || !policy.name.ends_with(".usage")));
    let set = LoadedSet::embedded();
    for (dialect, expected) in [("responses", "as_reported"), ("chat", "estimate")] {
        let policies = &set.plan.dialect(dialect, Some("codex-proxy")).unwrap().resolved.policies;
        assert_eq!(policies.text("usage"), expected, "{dialect}");
        assert!(policies.output_index == OutputIndex::MessageFirst || dialect == "chat");
    }
    let old = errors(&with_profile("policies: { stream2json.usage: zeros }"));
    assert!(old.contains("did you mean `usage`?"), "{old}");
}

#[test]
fn b06_validate_knows_cumulative_arguments() {
    let set = LoadedSet::embedded();
    let case = "tests/transcripts/openai-chat/a08-tool-call/chat@codex-proxy.sse";
    let text = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(case)).unwrap();
    let cumulative = set.plan.dialect("chat", Some("codex-proxy")).unwrap();
    let findings = |text: &str| -> Vec<String> {
        validate(cumulative, &read(text).unwrap()).findings.into_iter().map(|f| f.text).collect()
    };
    assert_eq!(findings(&text), [""; 0]);
    // A delta that has only what is new breaks the promise.
    let deltas: Vec<&str> = text.lines().filter(|line| line.contains("\"arguments\":\"{")).collect();
    assert!(deltas.len() > 1, "{text}");
    let last = deltas[deltas.len() - 1];
    let incremental = text.replace(last, &last.replace("\"arguments\":\"{", "\"arguments\":\"x{"));
    let expected =
        "a delta of arguments does not begin with the arguments so far (policy `tool_arguments: cumulative`)";
    assert_eq!(findings(&incremental), [expected]);
}
