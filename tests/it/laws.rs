//! Property tests: invariants of streams over random sequences of events, valid and invalid.
//!
//! `LAWS_CASES` sets the number of sequences; the default is a few hundred.

mod chat;
mod completions;
mod events;
mod responses;
mod turn_model;

use events::Output;
use proptest::prelude::*;
use reframe::testing::domain::{Delta, Event, FaultKind, Moment, MomentKind, Policies};
use reframe::testing::turn::{Ids, Turn};

fn cases() -> u32 {
    std::env::var("LAWS_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chat_stream_satisfies_its_invariants(script in events::script()) {
        let output = Output::of("chat", "openai", &script);
        chat::assert_invariants(&output);
    }

    #[test]
    fn a_responses_stream_satisfies_its_invariants(script in events::script_of(1)) {
        responses::assert_invariants(&Output::of("responses", "openai", &script));
    }

    #[test]
    fn a_completions_stream_satisfies_its_invariants(script in events::script()) {
        completions::assert_invariants(&Output::of("completions", "openai", &script));
    }

    /// Body and stream have the same content.
    #[test]
    fn the_chat_body_is_the_fold_of_the_stream(script in events::script()) {
        let output = Output::of("chat", "openai", &script);
        if let Ok(body) = &output.body {
            chat::assert_body_is_fold(&output, body);
        }
    }

    #[test]
    fn no_sequence_of_events_violates_a_schema(script in events::script()) {
        for (dialect, profile) in events::set().pairs() {
            // Requests of this dialect have only one choice.
            if dialect == "responses" && script.n > 1 {
                continue;
            }
            let output = Output::of(&dialect, &profile, &script);
            if let Some(fault) = &output.fault {
                prop_assert!(
                    !matches!(fault.kind, FaultKind::Violation | FaultKind::Internal),
                    "{dialect}@{profile}: {}", fault.message
                );
            }
        }
    }

    /// The model that `check` verifies orders with accepts every possible turn.
    #[test]
    fn the_turn_model_covers_every_turn(script in events::script(), conditions in turn_model::conditions()) {
        turn_model::assert_accepted(&turn_model::PlayedTurn::of(&script, &conditions), &conditions);
    }

    #[test]
    fn serial_items_never_overlap_and_dropped_reasoning_has_no_moments(
        script in events::script(),
        conditions in turn_model::conditions(),
    ) {
        turn_model::assert_policies_apply(&turn_model::PlayedTurn::of(&script, &conditions), &conditions);
    }

    #[test]
    fn nothing_is_emitted_after_the_end(script in events::script(), late in events::event(2)) {
        let output = Output::of("chat", "openai", &script);
        let more = Output::with_late_event("chat", "openai", &script, late);
        prop_assert_eq!(output.stream.frames, more.stream.frames);
    }
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
