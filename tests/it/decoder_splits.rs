//! The raw events and the frames do not depend on how a backend's bytes are split into chunks.

use crate::support::replay::{self, LoadedSet};
use proptest::prelude::*;
use reframe::testing::domain::{StreamEnd, Tree};
use reframe::testing::mapping::config::backend::Framing;
use reframe::testing::mapping::config::transcript::{RecordedEvent, Transcript, TranscriptLine};
use reframe::testing::upstream::decode::{Decoder, DecoderOutput, EventTooLarge};
use std::path::Path;

/// The default limit of the gateway.
const MAX_EVENT_BYTES: usize = 16 << 20;

fn set() -> &'static LoadedSet {
    LoadedSet::embedded()
}

fn decode(backend: &str, framing: Framing, chunks: &[&[u8]]) -> Vec<DecoderOutput> {
    let mut decoder = Decoder::new(set().plan.backend(backend).unwrap(), framing, MAX_EVENT_BYTES);
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut out).unwrap();
    }
    decoder.finish(&mut out);
    out
}

fn raw(json: &str) -> DecoderOutput {
    DecoderOutput::Raw(Tree::parse(json.as_bytes()).unwrap())
}

const DONE: DecoderOutput = DecoderOutput::Ended(StreamEnd::Marker);

/// Every way to encode the same two events and the end marker.
fn forms() -> Vec<(&'static str, String)> {
    let plain = "data: {\"a\":\"é🙂\"}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n";
    vec![
        ("LF", plain.to_owned()),
        ("CRLF", plain.replace('\n', "\r\n")),
        ("CR", plain.replace('\n', "\r")),
        ("a BOM", format!("\u{feff}{plain}")),
        ("no space after the colon", plain.replace("data: ", "data:")),
        (
            "comments and other fields",
            plain.replace("data: {\"b\"", ": ping\n\nevent: x\nid: 7\nretry: 5\ndata: {\"b\""),
        ),
        ("data over several lines", plain.replace("{\"b\":2}", "{\"b\":\ndata: 2}")),
        ("no empty line at the end", plain.trim_end().to_owned()),
        ("no line end at the end", plain.trim_end_matches('\n').to_owned()),
    ]
}

#[test]
fn sse_gives_the_same_events_at_every_split() {
    for (name, text) in forms() {
        let bytes = text.as_bytes();
        let expected = vec![raw(r#"{"a":"é🙂"}"#), raw(r#"{"b":2}"#), DONE];
        for split in 0..=bytes.len() {
            let got = decode("openai-chat", Framing::Sse, &[&bytes[..split], &bytes[split..]]);
            assert_eq!(got, expected, "{name}, cut at {split}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode("openai-chat", Framing::Sse, &single), expected, "{name}, byte by byte");
    }
}

#[test]
fn ndjson_gives_the_same_events_at_every_split() {
    let text = "{\"a\":\"é🙂\"}\r\n\n{\"b\":2}";
    for split in 0..=text.len() {
        let got = decode("openai-chat", Framing::Ndjson, &[&text.as_bytes()[..split], &text.as_bytes()[split..]]);
        assert_eq!(got, vec![raw(r#"{"a":"é🙂"}"#), raw(r#"{"b":2}"#)], "cut at {split}");
    }
}

#[test]
fn invalid_json_is_reported_and_the_rest_is_read() {
    let got = decode("openai-chat", Framing::Sse, &[b"data: {nope\n\ndata: {\"b\":2}\n\n"]);
    assert!(matches!(got[0], DecoderOutput::Malformed(_)));
    assert_eq!(got[1], raw(r#"{"b":2}"#));
}

/// A line beyond the limit is an error, and memory stays bounded.
#[test]
fn a_long_line_is_accepted_and_an_endless_one_is_not() {
    let long = format!("data: {{\"a\":\"{}\"}}\n\n", "x".repeat(8 << 20));
    assert_eq!(decode("openai-chat", Framing::Sse, &[long.as_bytes()]).len(), 1);
    let mut decoder = Decoder::new(set().plan.backend("openai-chat").unwrap(), Framing::Sse, MAX_EVENT_BYTES);
    let mut out = Vec::new();
    let chunk = vec![b'x'; 1 << 20];
    let rejected_at = (0..).position(|_| decoder.push(&chunk, &mut out) == Err(EventTooLarge)).unwrap();
    assert_eq!(rejected_at, MAX_EVENT_BYTES >> 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same turn, split at random, gives byte-identical frames in every dialect.
    #[test]
    fn frames_do_not_depend_on_where_bytes_are_split(sizes in proptest::collection::vec(1usize..97, 1..40)) {
        for case in ["openai-chat/unicode", "openai-responses/matrix-parallel-calls", "anthropic-messages/matrix-text-then-call"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(case);
            let transcript = replay::transcript(&folder.join("events.jsonl"));
            let mut bytes = Vec::new();
            for line in &transcript.lines {
                if let RecordedEvent::Raw(raw) = &line.event {
                    bytes.extend_from_slice(format!("data: {raw}\n\n").as_bytes());
                }
            }
            let mut chunks: Vec<&[u8]> = Vec::new();
            let (mut rest, mut sizes) = (&bytes[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            let lines = decode(&transcript.backend, Framing::Sse, &chunks).into_iter().map(|d| match d {
                DecoderOutput::Raw(raw) => TranscriptLine { at_ms: 0, event: RecordedEvent::Raw(raw) },
                other => panic!("{other:?}"),
            });
            let again = Transcript { lines: lines.collect(), ..replay::transcript(&folder.join("events.jsonl")) };
            let whole = Transcript {
                lines: transcript.lines.iter().filter(|l| matches!(l.event, RecordedEvent::Raw(_))).cloned().collect(),
                ..transcript
            };
            let requests = replay::requests(&folder.join("request.json"));
            for dialect in ["chat", "responses"] {
                let stream_text = |t: &Transcript| set().stream(t, dialect, "openai", &requests[dialect]).text();
                let expected = stream_text(&whole);
                prop_assert!(expected.lines().count() > 5, "hardly anything to compare:\n{}", expected);
                prop_assert_eq!(stream_text(&again), expected);
            }
        }
    }
}
