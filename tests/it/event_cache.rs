//! Events of known shapes (docs/design/0014-event-cache.md) become what the rules of the backend would emit.

use crate::support::replay::{self, LoadedSet};
use reframe::testing::domain::{Event, Tree};
use reframe::testing::engine::decode::decode_event;
use reframe::testing::engine::event_cache::{EventCache, SharedShapes};
use reframe::testing::engine::pipeline::{Pipeline, RenderMode};
use reframe::testing::mapping::config::backend::BackendPlan;
use reframe::testing::mapping::config::transcript::{RecordedEvent, Transcript};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Each with its folder.
fn cases() -> Vec<(PathBuf, Transcript)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let folders = |at: PathBuf| std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()).filter(|path| path.is_dir());
    let cases = folders(root).flat_map(folders);
    cases.map(|case| (case.clone(), replay::transcript(&case.join("events.jsonl")))).collect()
}

fn raws(transcript: &Transcript) -> impl Iterator<Item = &Tree> {
    transcript.lines.iter().filter_map(|line| match &line.event {
        RecordedEvent::Raw(raw) => Some(raw),
        RecordedEvent::Idle | RecordedEvent::End | RecordedEvent::Disconnect(_) => None,
    })
}

/// A cache that knows the shape of this event, if it can be known.
fn cache_of(backend: &Arc<BackendPlan>, raw: &Tree) -> Option<EventCache> {
    let mut cache = EventCache::new(backend, &Arc::default())?;
    let text = raw.to_json();
    learn(&mut cache, &text, raw);
    cache.find("", text.as_bytes()).is_some().then_some(cache)
}

/// As the tenth event of a response: those before are not learned.
fn learn(cache: &mut EventCache, text: &str, raw: &Tree) {
    (0..10).for_each(|_| cache.learn("", text.as_bytes(), raw));
}

/// The document with another value in place of each of its scalars in turn.
fn variations(raw: &Tree, others: &[Tree]) -> Vec<Tree> {
    match raw {
        Tree::Map(members) => (0..members.len())
            .flat_map(|at| {
                variations(&members[at].1, others).into_iter().map(move |varied| {
                    let mut members = members.clone();
                    members[at].1 = varied;
                    Tree::Map(members)
                })
            })
            .collect(),
        Tree::List(elements) => (0..elements.len())
            .flat_map(|at| {
                variations(&elements[at], others).into_iter().map(move |varied| {
                    let mut elements = elements.clone();
                    elements[at] = varied;
                    Tree::List(elements)
                })
            })
            .collect(),
        _ => others.to_vec(),
    }
}

/// Every scalar of the transcripts of a backend could mean something to its rules.
fn scalars(raw: &Tree, found: &mut HashSet<String>) {
    match raw {
        Tree::Map(members) => members.iter().for_each(|(_, member)| scalars(member, found)),
        Tree::List(elements) => elements.iter().for_each(|element| scalars(element, found)),
        scalar => {
            found.insert(scalar.to_json());
        }
    }
}

#[test]
fn an_event_that_is_found_becomes_what_the_rules_emit() {
    let transcripts: Vec<Transcript> = cases().into_iter().map(|(_, transcript)| transcript).collect();
    let (mut found, mut other, mut backends) = (0, 0, HashSet::new());
    for name in transcripts.iter().map(|t| t.backend.as_str()).collect::<HashSet<_>>() {
        let backend = LoadedSet::embedded().plan.backend(name).unwrap();
        let of_backend = || transcripts.iter().filter(|t| t.backend == name).flat_map(raws);
        let mut values = HashSet::from(["\"\"", "\"\\ud83d\"", "\"a\\\"\\n\"", "1.5", "{}"].map(str::to_owned));
        of_backend().for_each(|raw| scalars(raw, &mut values));
        let values: Vec<Tree> = values.iter().map(|text| Tree::parse(text.as_bytes()).unwrap()).collect();
        let mut seen = HashSet::new();
        for raw in of_backend().filter(|raw| seen.insert(raw.to_json())) {
            let Some(mut cache) = cache_of(backend, raw) else { continue };
            for varied in variations(raw, &values) {
                let text = varied.to_json();
                let Some(delta) = cache.find("", text.as_bytes()) else {
                    other += 1;
                    continue;
                };
                let decoded = decode_event(backend, &varied, &Tree::Null);
                let expected: Vec<Event> = decoded.events.into_iter().map(|(event, _)| event).collect();
                let starts: Vec<Event> = delta.of.starts().map(|(event, _)| event).collect();
                let got: Vec<Event> = starts.into_iter().chain([delta.into_event().0]).collect();
                assert_eq!(got, expected, "{name}: {text}");
                assert_eq!((decoded.dropped, decoded.not_understood), (None, None), "{name}: {text}");
                assert!(decoded.malformed_extras.is_empty(), "{name}: {text}");
                found += 1;
                backends.insert(name);
            }
        }
    }
    assert!(found > 10_000 && other > found && backends.len() >= 5, "{found} found, {other} not, in {backends:?}");
}

/// The cache of another response of the backend, if that shares the shape of this event.
fn cache_of_another(backend: &Arc<BackendPlan>, raw: &Tree) -> Option<EventCache> {
    let shared = Arc::<SharedShapes>::default();
    let text = raw.to_json();
    let [mut first, mut other] = [EventCache::new(backend, &shared)?, EventCache::new(backend, &shared)?];
    first.mark_turn_open();
    first.learn("", text.as_bytes(), raw);
    assert!(other.find("", text.as_bytes()).is_none(), "the turn is not open");
    other.mark_turn_open();
    other.find("", text.as_bytes()).is_some().then_some(other)
}

#[test]
fn an_event_of_a_shared_shape_becomes_what_the_rules_emit_once_the_turn_is_open() {
    let transcripts: Vec<Transcript> = cases().into_iter().map(|(_, transcript)| transcript).collect();
    let (mut found, mut other_ids, mut backends) = (0, 0, HashSet::new());
    for name in transcripts.iter().map(|t| t.backend.as_str()).collect::<HashSet<_>>() {
        let backend = LoadedSet::embedded().plan.backend(name).unwrap();
        let of_backend = || transcripts.iter().filter(|t| t.backend == name).flat_map(raws);
        let mut values =
            HashSet::from(["\"\"", "\"\\ud83d\"", "1.5", "-1", "17", "12345678901234567890"].map(str::to_owned));
        of_backend().for_each(|raw| scalars(raw, &mut values));
        let values: Vec<Tree> = values.iter().map(|text| Tree::parse(text.as_bytes()).unwrap()).collect();
        let mut seen = HashSet::new();
        for raw in of_backend().filter(|raw| seen.insert(raw.to_json())) {
            let Some(mut cache) = cache_of_another(backend, raw) else { continue };
            for varied in variations(raw, &values) {
                let text = varied.to_json();
                let Some(delta) = cache.find("", text.as_bytes()) else { continue };
                let decoded = decode_event(backend, &varied, &Tree::Null);
                let has_effect = |event: &Event| match event {
                    Event::Start { .. } => false,
                    Event::Logprobs { logprobs, .. } => !logprobs.is_empty(),
                    _ => true,
                };
                let expected: Vec<Event> =
                    decoded.events.into_iter().map(|(event, _)| event).filter(has_effect).collect();
                assert_eq!(delta.of.starts().count(), 0, "{name}: {text}");
                assert_eq!(vec![delta.into_event().0], expected, "{name}: {text}");
                assert_eq!((decoded.dropped, decoded.not_understood), (None, None), "{name}: {text}");
                assert!(decoded.malformed_extras.is_empty(), "{name}: {text}");
                found += 1;
                other_ids +=
                    usize::from(varied.get("id") != raw.get("id") || varied.get("created") != raw.get("created"));
                backends.insert(name);
            }
        }
    }
    assert!(found > 10_000 && other_ids > 1_000 && backends.len() >= 3, "{found}, {other_ids} in {backends:?}");
}

#[test]
fn a_stream_is_the_same_with_and_without_the_cache() {
    let set = LoadedSet::embedded();
    let (mut found, mut compared) = (0, 0);
    let mut shared: HashMap<String, Arc<SharedShapes>> = HashMap::new();
    for (case, transcript) in cases() {
        let requests = replay::requests(&case.join("request.json"));
        let backend = set.plan.backend(&transcript.backend).unwrap();
        let shared = shared.entry(transcript.backend.clone()).or_default();
        let Some(mut cache) = EventCache::new(backend, shared) else { continue };
        for (dialect, profile) in set.pairs().into_iter().filter(|(_, profile)| profile == "openai") {
            let Some(body) = requests.get(&dialect) else { continue };
            let pipeline = || set.pipeline(RenderMode::Cached, &transcript, &dialect, &profile, body);
            let (Some(plain), Some(cached)) = (pipeline(), pipeline()) else { continue };
            let mut pipelines = [plain, cached];
            for raw in raws(&transcript) {
                let text = raw.to_json();
                let [plain, cached] = &mut pipelines;
                plain.push(raw, replay::NOW_MS);
                match cache.find("", text.as_bytes()) {
                    Some(delta) => {
                        cached.push_delta(delta, replay::NOW_MS);
                        found += 1;
                    }
                    None => {
                        learn(&mut cache, &text, raw);
                        cached.push(raw, replay::NOW_MS);
                        if cached.is_open() {
                            cache.mark_turn_open();
                        }
                    }
                }
                let [plain, cached] = pipelines.each_mut().map(drained);
                assert_eq!(cached, plain, "{} {dialect}", transcript.name);
                compared += plain.len();
            }
        }
    }
    assert!(found > 100 && compared > 100_000, "{found} events found, {compared} bytes compared");
}

fn drained(pipeline: &mut Pipeline) -> String {
    let mut bytes = Vec::new();
    pipeline.drain(&mut bytes);
    String::from_utf8(bytes).unwrap()
}
