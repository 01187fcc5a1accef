//! A backend's bytes may be cut anywhere: the raw events, and so the frames, are the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/replay.rs"]
mod replay;

use proptest::prelude::*;
use reframe::domain::{Ended, Tree};
use reframe::mapping::config::backend::Framing;
use reframe::mapping::config::transcript::{Arrival, Line, Transcript};
use reframe::upstream::decode::{Decoded, Decoder, TooLarge};
use replay::Set;
use std::path::Path;
use std::sync::OnceLock;

/// Bytes of one event, as the gateway has it when nobody says otherwise.
const MOST: usize = 16 << 20;

fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(Set::embedded)
}

fn decode(backend: &str, framing: Framing, pieces: &[&[u8]]) -> Vec<Decoded> {
    let mut decoder = Decoder::new(set().plan.backend(backend).unwrap(), framing, MOST);
    let mut out = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut out).unwrap();
    }
    decoder.finish(&mut out);
    out
}

fn raw(json: &str) -> Decoded {
    Decoded::Raw(Tree::parse(json.as_bytes()).unwrap())
}

const DONE: Decoded = Decoded::Ended(Ended::Marker);

/// Every way of writing the same two events and the marker.
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
fn every_form_of_a_stream_gives_the_same_events_at_every_cut() {
    for (name, text) in forms() {
        let bytes = text.as_bytes();
        let expected = vec![raw(r#"{"a":"é🙂"}"#), raw(r#"{"b":2}"#), DONE];
        for cut in 0..=bytes.len() {
            let got = decode("openai-chat", Framing::Sse, &[&bytes[..cut], &bytes[cut..]]);
            assert_eq!(got, expected, "{name}, cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode("openai-chat", Framing::Sse, &single), expected, "{name}, byte by byte");
    }
}

#[test]
fn lines_of_json_give_the_same_events_at_every_cut() {
    let text = "{\"a\":\"é🙂\"}\r\n\n{\"b\":2}";
    for cut in 0..=text.len() {
        let got = decode("openai-chat", Framing::Ndjson, &[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
        assert_eq!(got, vec![raw(r#"{"a":"é🙂"}"#), raw(r#"{"b":2}"#)], "cut at {cut}");
    }
}

#[test]
fn what_is_not_json_is_told_and_the_rest_is_read() {
    let got = decode("openai-chat", Framing::Sse, &[b"data: {nope\n\ndata: {\"b\":2}\n\n"]);
    assert!(matches!(got[0], Decoded::Malformed(_)));
    assert_eq!(got[1], raw(r#"{"b":2}"#));
}

/// B075: a long line passes; one beyond the limit is an error, and memory stays bounded.
#[test]
fn b075_a_long_line_passes_and_an_endless_one_does_not() {
    let long = format!("data: {{\"a\":\"{}\"}}\n\n", "x".repeat(8 << 20));
    assert_eq!(decode("openai-chat", Framing::Sse, &[long.as_bytes()]).len(), 1);
    let mut decoder = Decoder::new(set().plan.backend("openai-chat").unwrap(), Framing::Sse, MOST);
    let mut out = Vec::new();
    let piece = vec![b'x'; 1 << 20];
    let refused = (0..).position(|_| decoder.push(&piece, &mut out) == Err(TooLarge)).unwrap();
    assert_eq!(refused, MOST >> 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// B073: the same turn, written as bytes and cut at random, gives byte-identical frames in every dialect.
    #[test]
    fn b073_frames_do_not_depend_on_where_bytes_are_cut(cuts in proptest::collection::vec(1usize..97, 1..40)) {
        for case in ["openai-chat/unicode", "openai-responses/matrix-parallel-calls", "anthropic-messages/matrix-text-then-call"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(case);
            let transcript = replay::transcript(&folder.join("events.jsonl"));
            let mut bytes = Vec::new();
            for line in &transcript.lines {
                if let Arrival::Raw(raw) = &line.what {
                    bytes.extend_from_slice(format!("data: {raw}\n\n").as_bytes());
                }
            }
            let mut pieces: Vec<&[u8]> = Vec::new();
            let (mut rest, mut turn) = (&bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*turn.next().unwrap()).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let lines = decode(&transcript.backend, Framing::Sse, &pieces).into_iter().map(|d| match d {
                Decoded::Raw(raw) => Line { at_ms: 0, what: Arrival::Raw(raw) },
                other => panic!("{other:?}"),
            });
            let again = Transcript { lines: lines.collect(), ..replay::transcript(&folder.join("events.jsonl")) };
            let whole = Transcript {
                lines: transcript.lines.iter().filter(|l| matches!(l.what, Arrival::Raw(_))).cloned().collect(),
                ..transcript
            };
            let requests = replay::requests(&folder.join("request.json"));
            for dialect in ["chat", "responses"] {
                let told = |t: &Transcript| set().stream(t, dialect, "openai", &requests[dialect]).text();
                prop_assert_eq!(told(&again), told(&whole));
            }
        }
    }
}
