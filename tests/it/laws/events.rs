//! Generates random turns as domain events.

use crate::support::replay::{LoadedSet, NOW_MS, StreamOutput};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reframe::testing::domain::{
    Annotation, AnnotationKind, CallIdentity, CallKind, Delta, Derived, Event, Fault, FaultKind, Finish, Merge,
    ReasoningKind, StreamEnd, Tree, TurnRequest, Usage,
};
use reframe::testing::engine::pipeline::{Pipeline, ResponseMode, TurnSpec};
use reframe::testing::engine::sse;
use reframe::testing::verify::test_turn_spec;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Script {
    pub n: usize,
    pub usage: bool,
    pub events: Vec<Event>,
    pub ended: StreamEnd,
}

pub fn script() -> impl Strategy<Value = Script> {
    prop_oneof![script_of(1), script_of(2)]
}

pub fn script_of(n: usize) -> impl Strategy<Value = Script> {
    any::<bool>().prop_flat_map(move |usage| {
        let finishes = vec(any::<bool>(), n);
        (vec(event(n), 0..14), finishes, any::<bool>()).prop_map(move |(mut events, finishes, disconnected)| {
            // Most turns have a finish reason; the others are truncated.
            for (choice, finish) in finishes.into_iter().enumerate() {
                if finish || choice == 0 {
                    events.push(Event::Finish { choice: Some(choice), reason: Some(Finish::Stop), other: None });
                }
            }
            let ended = if disconnected && events.len() % 7 == 0 {
                StreamEnd::Disconnected("reset".into())
            } else {
                StreamEnd::Eof
            };
            Script { n, usage, events, ended }
        })
    })
}

fn delta() -> impl Strategy<Value = Delta> {
    let text = select(vec!["", "a", "bc", " ", "é🙂", "\"q\"\n", "{}", "{\"a\":", "1}", "a bc"]);
    (text, any::<bool>()).prop_map(|(t, whole)| if whole { Delta::Snapshot(t.into()) } else { Delta::Append(t.into()) })
}

fn name() -> impl Strategy<Value = Option<String>> {
    option::of(select(vec!["k0", "k1", "k2"]).prop_map(str::to_owned))
}

pub fn event(n: usize) -> impl Strategy<Value = Event> {
    let choice = 0..n;
    let finish = select(Finish::ALL.to_vec());
    prop_oneof![
        8 => (choice.clone(), name(), option::of(0usize..2), delta()).prop_map(|(choice, item, part, delta)| Event::Text { choice, item, part, delta }),
        2 => (choice.clone(), name(), option::of(0usize..2), delta()).prop_map(|(choice, item, part, delta)| Event::Refusal { choice, item, part, delta }),
        3 => (choice.clone(), name(), any::<bool>(), option::of(0usize..3), option::of(delta()), any::<bool>()).prop_map(
            |(choice, item, raw, part, delta, encrypted)| Event::Reasoning {
                choice, item, part, delta,
                kind: if raw { ReasoningKind::Raw } else { ReasoningKind::Summary },
                encrypted: encrypted.then(|| "sealed".into()),
            }
        ),
        8 => (choice.clone(), name(), option::of(select(vec!["c0", "c1", ""])), option::of(select(vec!["f", "g", ""])), option::of(delta()), any::<[bool; 2]>(), 0..8).prop_map(
            |(choice, key, id, name, delta, [custom, by_key], legacy)| Event::Tool {
                choice, key, id: id.map(str::to_owned), name: name.map(str::to_owned), delta,
                kind: custom.then_some(CallKind::Function),
                by: Derived(if by_key { CallIdentity::Key } else { CallIdentity::Id }),
                legacy: legacy == 0,
                literal: Derived::default(),
            }
        ),
        1 => (choice.clone(), name(), name()).prop_map(|(choice, item, key)| Event::Close { choice, item, key }),
        1 => choice.clone().prop_map(|choice| Event::Batch { choice, ids: vec!["c0".into()] }),
        1 => choice.clone().prop_map(|choice| Event::AwaitResults { choice }),
        1 => choice.clone().prop_map(|choice| Event::Annotation { choice, item: None, annotation: Annotation {
            kind: Some(AnnotationKind::Url), url: Some("http://x".into()), title: Some("x".into()), start: Some(0), end: Some(1),
            ..Annotation::default()
        } }),
        1 => (0u64..9, 0u64..9, select(Merge::ALL.to_vec())).prop_map(|(i, o, merge)| Event::Usage {
            usage: Usage { input: Some(i), output: Some(o), ..Usage::default() }, merge, trigger: None,
        }),
        1 => (option::of(choice), option::of(finish)).prop_map(|(choice, reason)| Event::Finish { choice, reason, other: Some("word".into()) }),
        1 => any::<bool>().prop_map(|is_final| Event::Fault { fault: Fault::new(FaultKind::Backend, "boom"), is_final }),
        1 => Just(Event::Start { id: None, model: Some("up".into()), created: None }),
    ]
}

pub fn set() -> &'static LoadedSet {
    LoadedSet::embedded()
}

/// The output of a dialect for a script, as a stream and as a body.
pub struct Output {
    pub stream: StreamOutput,
    pub body: Result<Tree, Fault>,
    pub fault: Option<Fault>,
    pub script: Script,
}

impl Output {
    /// The number of frames of a turn that did not fail.
    pub fn complete_frames(&self) -> usize {
        if self.fault.is_none() { self.stream.frames.len() } else { 0 }
    }

    pub fn of(dialect: &str, profile: &str, script: &Script) -> Output {
        let (stream, fault) = Self::stream(dialect, profile, script, None);
        let body = Self::run(dialect, profile, script, ResponseMode::Body).0.body();
        Output { stream, body, fault, script: script.clone() }
    }

    pub fn with_late_event(dialect: &str, profile: &str, script: &Script, late: Event) -> Output {
        let (stream, fault) = Self::stream(dialect, profile, script, Some(late));
        Output { stream, body: Err(Fault::new(FaultKind::Internal, "not requested")), fault, script: script.clone() }
    }

    fn stream(dialect: &str, profile: &str, script: &Script, late: Option<Event>) -> (StreamOutput, Option<Fault>) {
        let (mut pipeline, mut frames) = Self::run(dialect, profile, script, ResponseMode::Stream);
        if let Some(late) = late {
            frames.extend(pipeline.push_event(late, NOW_MS).frames);
            frames.extend(pipeline.finish(StreamEnd::Eof, NOW_MS).frames);
        }
        let mut output = StreamOutput { frames, ..StreamOutput::default() };
        let kind = set().plan.dialect(dialect, Some(profile)).unwrap().encoding.format;
        for frame in &output.frames {
            sse::write(frame, kind, &mut output.bytes);
        }
        (output, pipeline.fault().cloned())
    }

    fn run(
        dialect: &str,
        profile: &str,
        script: &Script,
        response_mode: ResponseMode,
    ) -> (Pipeline, Vec<reframe::testing::domain::Frame>) {
        let stream = response_mode == ResponseMode::Stream;
        let request = TurnRequest::synthetic("requested", stream, script.usage, script.n);
        let dialect = set().plan.dialect(dialect, Some(profile)).unwrap();
        let spec = test_turn_spec(&set().plan.backends[0], dialect, Arc::new(request), response_mode);
        let mut pipeline = Pipeline::new(TurnSpec { now_ms: NOW_MS, ..spec });
        let mut frames = Vec::new();
        for event in &script.events {
            frames.extend(pipeline.push_event(event.clone(), NOW_MS).frames);
        }
        frames.extend(pipeline.finish(script.ended.clone(), NOW_MS).frames);
        (pipeline, frames)
    }
}
