//! Random turns, in our own words.

use crate::replay::{self, NOW_MS, Outcome, Set};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reframe::domain::{
    CallKind, Ended, Event, Fault, FaultKind, Finish, Merge, Piece, ReasoningKind, Tree, TurnRequest, Usage,
};
use reframe::engine::pipeline::{Answer, Order, Pipeline};
use reframe::engine::sse;
use reframe::mapping::config::gateway::Validation;
use reframe::turn::Ids;
use std::sync::{Arc, OnceLock};

#[derive(Clone, Debug)]
pub struct Script {
    pub n: usize,
    pub usage: bool,
    pub events: Vec<Event>,
    pub ended: Ended,
}

pub fn script() -> impl Strategy<Value = Script> {
    prop_oneof![script_of(1), script_of(2)]
}

pub fn script_of(n: usize) -> impl Strategy<Value = Script> {
    any::<bool>().prop_flat_map(move |usage| {
        let finishes = vec(any::<bool>(), n);
        (vec(event(n), 0..14), finishes, any::<bool>()).prop_map(move |(mut events, finishes, cut)| {
            // Most turns end as they should; the rest are truncations.
            for (choice, finish) in finishes.into_iter().enumerate() {
                if finish || choice == 0 {
                    events.push(Event::Finish { choice: Some(choice), reason: Finish::Stop });
                }
            }
            let ended = if cut && events.len() % 7 == 0 { Ended::Cut("reset".into()) } else { Ended::Eof };
            Script { n, usage, events, ended }
        })
    })
}

fn piece() -> impl Strategy<Value = Piece> {
    let text = select(vec!["", "a", "bc", " ", "é🙂", "\"q\"\n", "{}", "{\"a\":", "1}", "a bc"]);
    (text, any::<bool>()).prop_map(|(t, whole)| if whole { Piece::Whole(t.into()) } else { Piece::Delta(t.into()) })
}

fn name() -> impl Strategy<Value = Option<String>> {
    option::of(select(vec!["k0", "k1", "k2"]).prop_map(str::to_owned))
}

pub fn event(n: usize) -> impl Strategy<Value = Event> {
    let choice = 0..n;
    let finish = select(Finish::ALL.to_vec());
    prop_oneof![
        8 => (choice.clone(), name(), option::of(0usize..2), piece()).prop_map(|(choice, item, part, piece)| Event::Text { choice, item, part, piece }),
        2 => (choice.clone(), name(), option::of(0usize..2), piece()).prop_map(|(choice, item, part, piece)| Event::Refusal { choice, item, part, piece }),
        3 => (choice.clone(), name(), any::<bool>(), option::of(0usize..3), option::of(piece()), any::<bool>()).prop_map(
            |(choice, item, raw, part, piece, encrypted)| Event::Reasoning {
                choice, item, part, piece,
                kind: if raw { ReasoningKind::Raw } else { ReasoningKind::Summary },
                encrypted: encrypted.then(|| "sealed".into()),
            }
        ),
        8 => (choice.clone(), name(), option::of(select(vec!["c0", "c1", ""])), option::of(select(vec!["f", "g", ""])), option::of(piece()), any::<bool>()).prop_map(
            |(choice, key, id, name, piece, custom)| Event::Tool {
                choice, key, id: id.map(str::to_owned), name: name.map(str::to_owned), piece,
                kind: custom.then_some(CallKind::Function),
            }
        ),
        1 => (choice.clone(), name(), name()).prop_map(|(choice, item, key)| Event::Close { choice, item, key }),
        1 => choice.clone().prop_map(|choice| Event::Batch { choice, ids: vec!["c0".into()] }),
        1 => choice.clone().prop_map(|choice| Event::Annotation { choice, item: None, value: Tree::map([
            ("kind", Tree::from("url")), ("url", Tree::from("http://x")), ("title", Tree::from("x")),
            ("start", Tree::from(0i64)), ("end", Tree::from(1i64)),
        ]) }),
        1 => (0u64..9, 0u64..9, select(Merge::ALL.to_vec())).prop_map(|(i, o, merge)| Event::Usage {
            usage: Usage { input: Some(i), output: Some(o), ..Usage::default() }, merge,
        }),
        1 => (option::of(choice), finish).prop_map(|(choice, reason)| Event::Finish { choice, reason }),
        1 => any::<bool>().prop_map(|last| Event::Fault { fault: Fault::new(FaultKind::Backend, "boom"), last }),
        1 => Just(Event::Start { id: None, model: Some("up".into()), created: None }),
    ]
}

pub fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(Set::embedded)
}

/// What a client of a dialect was told of a script, as a stream and as a body.
pub struct Told {
    pub stream: Outcome,
    pub body: Result<Tree, Fault>,
    pub fault: Option<Fault>,
    pub script: Script,
}

impl Told {
    pub fn by(dialect: &str, profile: &str, script: &Script) -> Told {
        let (stream, fault) = Self::stream(dialect, profile, script, None);
        let body = Self::run(dialect, profile, script, Answer::Body).0.body();
        Told { stream, body, fault, script: script.clone() }
    }

    pub fn by_with_late(dialect: &str, profile: &str, script: &Script, late: Event) -> Told {
        let (stream, fault) = Self::stream(dialect, profile, script, Some(late));
        Told { stream, body: Err(Fault::new(FaultKind::Internal, "not asked")), fault, script: script.clone() }
    }

    fn stream(dialect: &str, profile: &str, script: &Script, late: Option<Event>) -> (Outcome, Option<Fault>) {
        let (mut pipeline, mut frames) = Self::run(dialect, profile, script, Answer::Stream);
        if let Some(late) = late {
            frames.extend(pipeline.hear(late, NOW_MS).frames);
            frames.extend(pipeline.finish(Ended::Eof, NOW_MS).frames);
        }
        let mut outcome = Outcome { frames, ..Outcome::default() };
        let kind = set().plan.dialect(dialect, Some(profile)).unwrap().wire.kind;
        for frame in &outcome.frames {
            sse::write(frame, kind, &mut outcome.bytes);
        }
        (outcome, pipeline.fault().cloned())
    }

    fn run(dialect: &str, profile: &str, script: &Script, answer: Answer) -> (Pipeline, Vec<reframe::domain::Frame>) {
        let mut view = TurnRequest::plain("asked", answer == Answer::Stream).view;
        view.insert("n", Tree::from(script.n as i64));
        view.insert("usage", Tree::from(script.usage));
        let mut pipeline = Pipeline::new(Order {
            backend: set().plan.backends[0].clone(),
            dialect: set().plan.dialect(dialect, Some(profile)).unwrap().clone(),
            request: Arc::new(TurnRequest::new(view)),
            validation: Validation::Strict,
            answer,
            masks: Default::default(),
            hidden: None,
            ids: Ids::Counting(0),
            now_ms: replay::NOW_MS,
        });
        let mut frames = Vec::new();
        for event in &script.events {
            frames.extend(pipeline.hear(event.clone(), NOW_MS).frames);
        }
        frames.extend(pipeline.finish(script.ended.clone(), NOW_MS).frames);
        (pipeline, frames)
    }
}
