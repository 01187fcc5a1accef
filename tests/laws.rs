//! The laws of a stream, over random sequences of events, legal and illegal alike.
//!
//! `LAWS_CASES` sets how many sequences are tried (a few hundred in the quick run).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "laws/chat.rs"]
mod chat;
#[path = "laws/completions.rs"]
mod completions;
#[path = "laws/events.rs"]
mod events;
#[path = "support/replay.rs"]
mod replay;
#[path = "laws/responses.rs"]
mod responses;
#[path = "laws/turn_model.rs"]
mod turn_model;

use events::Told;
use proptest::prelude::*;
use reframe::domain::{Event, FaultKind, Moment, MomentKind, Piece, Policies};
use reframe::turn::{Ids, Turn};

fn cases() -> u32 {
    std::env::var("LAWS_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chat_stream_keeps_its_laws(script in events::script()) {
        let told = Told::by("chat", "openai", &script);
        chat::laws(&told);
    }

    #[test]
    fn a_responses_stream_keeps_its_laws(script in events::script_of(1)) {
        responses::laws(&Told::by("responses", "openai", &script));
    }

    #[test]
    fn a_completions_stream_keeps_its_laws(script in events::script()) {
        completions::laws(&Told::by("completions", "openai", &script));
    }

    /// Invariant 3: body and stream are two sights of one turn.
    #[test]
    fn the_chat_body_is_the_fold_of_the_stream(script in events::script()) {
        let told = Told::by("chat", "openai", &script);
        if let Ok(body) = &told.body {
            chat::fold_is(&told, body);
        }
    }

    #[test]
    fn no_sequence_of_events_breaks_a_frame(script in events::script()) {
        for (dialect, profile) in events::set().pairs() {
            // Its requests never ask for more than one choice.
            if dialect == "responses" && script.n > 1 {
                continue;
            }
            let told = Told::by(&dialect, &profile, &script);
            if let Some(fault) = &told.fault {
                prop_assert!(
                    !matches!(fault.kind, FaultKind::Breach | FaultKind::Internal),
                    "{dialect}@{profile}: {}", fault.message
                );
            }
        }
    }

    /// What `check` proves of an order it proves of every turn that there can be.
    #[test]
    fn the_model_of_a_turn_knows_every_turn(script in events::script(), way in turn_model::way()) {
        turn_model::is_known(&turn_model::Lived::by(&script, &way), &way);
    }

    #[test]
    fn after_the_end_nothing_is_told(script in events::script(), late in events::event(2)) {
        let told = Told::by("chat", "openai", &script);
        let more = Told::by_with_late("chat", "openai", &script, late);
        prop_assert_eq!(told.stream.frames, more.stream.frames);
    }
}

/// There is nothing left to cut of an answer that cannot even be cut short.
#[test]
fn a_call_without_a_name_fails_an_answer_that_is_cut_short() {
    let nameless = Event::Tool {
        choice: 0,
        key: Some("k".into()),
        id: None,
        name: None,
        kind: None,
        piece: Some(Piece::Delta("{}".into())),
    };
    let mut policies = Policies::default();
    policies.set("stream2json.on_partial", "incomplete");
    let mut turn = Turn::new(policies, Ids::Counting(0), "m", 1, 0).whole(true);
    let mut told = Vec::new();
    let mut tell = |_: &_, moment: &Moment| told.push(moment.kind);
    turn.advance(nameless, &mut tell);
    turn.advance(Event::End, &mut tell);
    assert_eq!(told, [MomentKind::TurnOpen, MomentKind::ChoiceOpen, MomentKind::TurnFail]);
}
