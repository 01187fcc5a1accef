//! Unit tests of `upstream/aws_eventstream.rs`, which includes this file.

use super::*;
use proptest::prelude::*;

fn header(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![name.len() as u8];
    bytes.extend(name.as_bytes());
    bytes.push(7);
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value.as_bytes());
    bytes
}

fn message(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let mut bytes = (total as u32).to_be_bytes().to_vec();
    bytes.extend((headers.len() as u32).to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn event(name: &str, payload: &str) -> Vec<u8> {
    let mut headers = header(":message-type", "event");
    headers.extend(header(":event-type", name));
    headers.extend(header(":content-type", "application/json"));
    message(&headers, payload.as_bytes())
}

fn decode(chunks: &[&[u8]], max_bytes: usize) -> (Vec<DecoderOutput>, bool) {
    let mut decoder = AwsEventstreamDecoder::new(Some("type".into()), max_bytes);
    let mut out = Vec::new();
    let is_too_large = chunks.iter().any(|chunk| decoder.push(chunk, &mut out).is_err());
    decoder.finish(&mut out);
    (out, is_too_large)
}

fn raw(json: &str) -> DecoderOutput {
    DecoderOutput::Raw(Tree::parse(json.as_bytes()).unwrap())
}

#[test]
fn a20_an_event_has_its_type_and_its_payload() {
    let bytes = [event("messageStart", r#"{"role":"assistant"}"#), event("contentBlockStop", "{}")].concat();
    let expected = [raw(r#"{"role":"assistant","type":"messageStart"}"#), raw(r#"{"type":"contentBlockStop"}"#)];
    assert_eq!(decode(&[&bytes], 1 << 16).0, expected);
}

#[test]
fn a20_an_exception_and_an_error_are_events_too() {
    let mut exception = header(":message-type", "exception");
    exception.extend(header(":exception-type", "throttlingException"));
    let mut error = header(":message-type", "error");
    error.extend(header(":error-code", "InternalError"));
    error.extend(header(":error-message", "try again"));
    let bytes = [message(&exception, br#"{"message":"slow down"}"#), message(&error, b"")].concat();
    let expected = [
        raw(r#"{"message":"slow down","type":"throttlingException"}"#),
        raw(r#"{"type":"InternalError","message":"try again"}"#),
    ];
    assert_eq!(decode(&[&bytes], 1 << 16).0, expected);
}

#[test]
fn a20_headers_of_all_types_are_skipped() {
    let mut headers = Vec::new();
    for (kind, length) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
        headers.extend([1, b'h', kind]);
        headers.extend(vec![0; length]);
    }
    headers.extend([1, b'b', 6, 0, 2, 1, 2]);
    headers.extend(header(":event-type", "x"));
    assert_eq!(decode(&[&message(&headers, b"{}")], 1 << 16).0, [raw(r#"{"type":"x"}"#)]);
    assert!(matches!(decode(&[&message(&[1, b'h', 12], b"{}")], 1 << 16).0[..], [DecoderOutput::Corrupt(_)]));
}

#[test]
fn a20_every_flipped_bit_is_noticed() {
    let bytes = event("contentBlockDelta", r#"{"delta":{"text":"Hi"}}"#);
    let (whole, _) = decode(&[&bytes], 1 << 16);
    for at in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        let (out, is_too_large) = decode(&[&damaged], 1 << 16);
        assert_ne!(out, whole, "bit {at}");
        assert!(is_too_large || matches!(out[..], [DecoderOutput::Corrupt(_)]), "bit {at}: {out:?}");
    }
}

#[test]
fn a20_a_message_is_bounded_and_may_not_be_cut_off() {
    let bytes = event("x", &format!("{{\"a\":\"{}\"}}", "a".repeat(1000)));
    assert!(decode(&[&bytes[..PRELUDE]], 1000).1, "the length alone is enough to refuse it");
    let (out, _) = decode(&[&bytes[..bytes.len() - 1]], 1 << 16);
    assert!(matches!(out[..], [DecoderOutput::Ended(StreamEnd::Disconnected(_))]), "{out:?}");
}

proptest! {
    #[test]
    fn a20_any_split_gives_the_same_events(cuts in prop::collection::vec(0usize..200, 0..8)) {
        let bytes = [event("a", r#"{"n":1}"#), event("b", "{}"), event("c", r#"{"n":3}"#)].concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(decode(&chunks, 1 << 16).0, decode(&[&bytes], 1 << 16).0);
    }

    #[test]
    fn a20_arbitrary_bytes_neither_panic_nor_hang(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        decode(&[&bytes], 256);
    }
}
