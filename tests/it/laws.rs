//! Property tests: invariants of streams over random sequences of events, valid and invalid.
//!
//! `LAWS_CASES` sets the number of sequences; the default is a few hundred.

mod chat;
mod completions;
pub mod events;
mod full_requests;
mod loader;
mod mutated_requests;
mod mutations;
mod responses;
mod turn_model;

use events::Output;
use mutated_requests::Outcomes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reframe::testing::diagnostics::render_all;
use reframe::testing::domain::{Delta, Derived, Event, FaultKind, Moment, MomentKind, Policies, Tree, WorkBudget};
use reframe::testing::mapping::{Overrides, SourceFile, load_within};
use reframe::testing::reload::{Base, Layers, Supervisor, embedded, read_set};
use reframe::testing::turn::{Ids, Turn};
use reframe::testing::verify::verify_within;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

pub fn cases() -> u32 {
    std::env::var("LAWS_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

/// For laws with a check that takes milliseconds: a whole load, or a request through every backend.
fn expensive_cases() -> u32 {
    400 + cases() / 200
}

/// Valid requests of every dialect.
pub fn requests() -> impl Iterator<Item = Tree> {
    full_requests::SEEDS.iter().map(|(_, body)| body.clone())
}

/// Checks a law with random values. The check returns how much of the value it compared; nothing was compared if the law
/// does not apply, for example because the turn failed. A law that hardly ever applies proves nothing, so it must apply
/// to one value in ten.
fn holds<S: Strategy>(values: S, check: impl Fn(S::Value) -> usize) {
    holds_for(cases(), values, check);
}

fn holds_for<S: Strategy>(cases: u32, values: S, check: impl Fn(S::Value) -> usize) {
    // Shrinking a value that takes a while would take very long.
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_time: 60_000, ..Default::default() };
    let (applied, compared) = (Cell::new(0), Cell::new(0));
    let checked = TestRunner::new(config).run(&values, |value| {
        let count = check(value);
        applied.set(applied.get() + u32::from(count > 0));
        compared.set(compared.get() + count);
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
    println!("compared {} parts of {} values, of {}", compared.get(), applied.get(), cases);
    assert!(applied.get() >= cases / 10, "the law applied to only {} of {} values", applied.get(), cases);
}

#[test]
fn a_chat_stream_satisfies_its_invariants() {
    holds(events::script(), |script| {
        let output = Output::of("chat", "openai", &script);
        chat::assert_invariants(&output);
        output.complete_frames()
    });
}

#[test]
fn a_responses_stream_satisfies_its_invariants() {
    holds(events::script_of(1), |script| {
        let output = Output::of("responses", "openai", &script);
        responses::assert_invariants(&output);
        output.complete_frames()
    });
}

#[test]
fn a_completions_stream_satisfies_its_invariants() {
    holds(events::script(), |script| {
        let output = Output::of("completions", "openai", &script);
        completions::assert_invariants(&output);
        output.complete_frames()
    });
}

/// Body and stream have the same content.
#[test]
fn the_chat_body_is_the_fold_of_the_stream() {
    holds(events::script(), |script| {
        let output = Output::of("chat", "openai", &script);
        output.body.as_ref().map_or(0, |body| chat::assert_body_is_fold(&output, body))
    });
}

#[test]
fn no_sequence_of_events_violates_a_schema() {
    let pairs = events::set().pairs();
    holds(events::script(), |script| {
        // Requests of the dialect `responses` have only one choice, except for one profile.
        let has_choices = |(dialect, profile): &&(String, String)| {
            dialect != "responses" || profile == "codex-completions-api" || script.n == 1
        };
        let possible = pairs.iter().filter(has_choices);
        let frames = possible.map(|(dialect, profile)| {
            let output = Output::of(dialect, profile, &script);
            if let Some(fault) = &output.fault {
                let violated = matches!(fault.kind, FaultKind::Violation | FaultKind::Internal);
                assert!(!violated, "{dialect}@{profile}: {}", fault.message);
            }
            output.stream.frames.len()
        });
        frames.sum()
    });
}

/// The model that `check` verifies orders with accepts every possible turn.
#[test]
fn the_turn_model_covers_every_turn() {
    holds((events::script(), turn_model::conditions()), |(script, conditions)| {
        turn_model::assert_accepted(&turn_model::PlayedTurn::of(&script, &conditions), &conditions)
    });
}

#[test]
fn serial_items_never_overlap_and_dropped_reasoning_has_no_moments() {
    holds((events::script(), turn_model::conditions()), |(script, conditions)| {
        turn_model::assert_policies_apply(&turn_model::PlayedTurn::of(&script, &conditions), &conditions)
    });
}

#[test]
fn a_rejected_image_names_its_member_in_every_profile() {
    let image = r#"{"type":"input_image","image_url":"https://example.com/x.png"}"#;
    let call = r#"{"type":"function_call","call_id":"c","name":"look","arguments":"{}"}"#;
    let output = format!(r#"{{"type":"function_call_output","call_id":"c","output":[{image}]}}"#);
    let tools = r#"[{"type":"function","name":"look","parameters":{"type":"object"}}]"#;
    let body = format!(r#"{{"model":"m","tools":{tools},"input":[{call},{output}]}}"#);
    let outcomes = mutated_requests::assert_never_our_fault("responses", &Tree::parse(body.as_bytes()).unwrap());
    assert!(outcomes.rejected > 0);
}

/// Whatever a client sends is answered, or rejected with the member at fault: never an error of the gateway.
#[test]
fn no_request_of_a_client_breaks_the_gateway() {
    let (rejected, answered) = (Cell::new(0), Cell::new(0));
    holds_for(expensive_cases(), vec(mutated_requests::mutated_request(), 4), |mutants| {
        let outcomes = mutants.iter().map(|(dialect, body)| mutated_requests::assert_never_our_fault(dialect, body));
        let outcomes = outcomes.reduce(|all, one| all + one).unwrap_or_default();
        rejected.set(rejected.get() + outcomes.rejected);
        answered.set(answered.get() + outcomes.answered);
        outcomes.rejected + outcomes.answered
    });
    println!("{} rejected, {} answered", rejected.get(), answered.get());
    assert!(rejected.get() > 0 && answered.get() > 0);
}

/// Otherwise all mutants of it would be rejected, which proves little.
#[test]
fn the_full_requests_are_answered() {
    for (dialect, body) in &full_requests::SEEDS[..3] {
        let outcomes = mutated_requests::assert_never_our_fault(dialect, body);
        assert!(
            outcomes.answered >= 4,
            "{dialect}: {} of {}",
            outcomes.answered,
            outcomes.answered + outcomes.rejected
        );
    }
}

/// A member that may be absent may be null. Free-form objects keep their nulls, and metadata has only texts.
#[test]
fn null_is_the_same_as_absent() {
    let mut compared = 0;
    for (dialect, body) in full_requests::SEEDS.iter() {
        for (path, removed, null) in mutations::members_removed_and_null(body) {
            if path.starts_with("metadata.") || mutated_requests::is_accepted(dialect, &removed).is_err() {
                continue;
            }
            compared += 1;
            assert_eq!(mutated_requests::is_accepted(dialect, &null), Ok(()), "{dialect}: {path} in {body}");
        }
    }
    println!("{compared} members compared");
    assert!(compared > 500, "only {compared}");
}

/// The response repeats settings of the request: members that nobody knows do not break it, and what it cannot repeat
/// is rejected.
#[test]
fn what_a_client_sent_is_repeated_or_rejected() {
    let outcomes = |member: &str| {
        let body = Tree::parse(format!(r#"{{ "model": "m", "input": "hi", {member} }}"#).as_bytes()).unwrap();
        let Outcomes { rejected, answered } = mutated_requests::assert_never_our_fault("responses", &body);
        (rejected > 0, answered > 0)
    };
    let rejected = (true, false);
    // Half of the backends reject members that nothing reads.
    assert_eq!(outcomes(r#""text": { "format": { "type": "text", "extra": 1 } }"#), (true, true));
    // The profiles of the proxies accept only functions.
    assert_eq!(outcomes(r#""tool_choice": { "type": "web_search_preview", "extra": 1 }"#), (true, true));
    assert_eq!(outcomes(r#""tool_choice": { "type": "" }"#), rejected);
    assert_eq!(outcomes(r#""tool_choice": { "type": "mcp" }"#), rejected);
    assert_eq!(outcomes(r#""tool_choice": { "type": "allowed_tools", "mode": "x", "tools": [] }"#), rejected);
}

#[test]
fn nothing_is_emitted_after_the_end() {
    holds((events::script(), events::event(2)), |(script, late)| {
        let output = Output::of("chat", "openai", &script);
        let more = Output::with_late_event("chat", "openai", &script, late);
        assert_eq!(output.stream.frames, more.stream.frames);
        output.stream.frames.len()
    });
}

/// A call without a name cannot be closed, so the response fails instead of being truncated.
#[test]
fn a_tool_call_without_a_name_fails_a_truncated_response() {
    let nameless = Event::Tool {
        choice: 0,
        key: Some("k".into()),
        id: None,
        name: None,
        kind: None,
        by: Derived::default(),
        legacy: false,
        literal: Derived::default(),
        delta: Some(Delta::Append("{}".into())),
    };
    let mut policies = Policies::default();
    policies.set("aggregate.on_partial", "incomplete");
    let mut turn = Turn::new(policies, Ids::Counting(0), "m", 1, 0).single_body(true);
    let mut moments = Vec::new();
    let mut record = |_: &_, moment: &Moment| moments.push(moment.kind);
    turn.advance(nameless, &mut record);
    turn.advance(Event::End, &mut record);
    assert_eq!(moments, [MomentKind::TurnOpen, MomentKind::ChoiceOpen, MomentKind::TurnFail]);
}

/// Whatever a set contains: its load ends, without a panic, and what it reports has a place.
#[test]
fn the_load_of_a_small_damaged_set_ends_and_every_finding_has_a_place() {
    let set = small_set();
    holds_for(expensive_cases(), loader::damages(), |damages| load_of_damaged_set(&set, &damages));
}

#[test]
fn the_load_of_the_damaged_embedded_set_ends_and_every_finding_has_a_place() {
    let set = embedded::files();
    holds_for(expensive_cases() / 16, loader::damages(), |damages| load_of_damaged_set(&set, &damages));
}

fn load_of_damaged_set(set: &[SourceFile], damages: &[loader::Damage]) -> usize {
    let files: Arc<[SourceFile]> = loader::damaged(set, damages).into();
    let load = |files: &[SourceFile], budget: &WorkBudget| {
        let mut loaded = load_within(files, None, &Overrides::default(), budget);
        if let Some(plan) = &loaded.plan {
            loaded.diagnostics.extend(verify_within(plan, budget).found);
        }
        (loaded.diagnostics, loaded.sources)
    };
    // Refused by the supervisor: it panicked, or it did not stop when its time was over.
    let (diagnostics, sources) =
        Supervisor::default().run(&files, load).unwrap_or_else(|e| panic!("{}", e.render(false)));
    for diagnostic in &diagnostics {
        assert!(sources.get(diagnostic.span.file).is_some(), "without a place: {diagnostic:?}");
    }
    assert!(
        !render_all(&diagnostics, &sources, false).contains("takes too long"),
        "the clock, not the steps, ended it"
    );
    diagnostics.len()
}

/// The set that the fixtures of the diagnostics are based on.
fn small_set() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics/mappings");
    read_set(&Layers { base: Base::Folder(root), add: Vec::new() }).unwrap()
}
