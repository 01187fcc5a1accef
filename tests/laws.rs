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
#[path = "support/play.rs"]
mod play;
#[path = "laws/responses.rs"]
mod responses;

use events::Told;
use proptest::prelude::*;
use reframe::canon::FaultKind;

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

    #[test]
    fn after_the_end_nothing_is_told(script in events::script(), late in events::event(2)) {
        let told = Told::by("chat", "openai", &script);
        let more = Told::by_with_late("chat", "openai", &script, late);
        prop_assert_eq!(told.stream.frames, more.stream.frames);
    }
}
