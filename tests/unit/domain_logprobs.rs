//! Which log-probabilities are well formed, and what they cost.

use super::*;

fn read(json: &str) -> Logprobs {
    Logprobs::read(Tree::parse(json.as_bytes()).unwrap())
}

/// Token, log-probability and bytes of each, with its alternatives in brackets.
fn summary(tokens: &[TokenLogprob]) -> String {
    let one = |t: &TokenLogprob| {
        let top = if t.top.is_empty() { String::new() } else { format!("[{}]", summary(&t.top)) };
        format!("{} {} {:?}{top}", t.token.to_json(), t.logprob.to_json(), t.bytes())
    };
    tokens.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_well_formed_is_kept_as_it_was_written() {
    let read = read(
        r#"[{"token":"é","logprob":-0.50,"bytes":[195,169],"top_logprobs":[{"token":"e","logprob":-1e3,"bytes":null}]},
            {"token":"\ud83d","logprob":0,"bytes":[240,159],"top_logprobs":[],"more":1}]"#,
    );
    let expected = r#""é" -0.50 Some([195, 169])["e" -1e3 None], "\ud83d" 0 Some([240, 159])"#;
    assert_eq!((summary(&read.tokens).as_str(), read.malformed), (expected, 0));
}

#[test]
fn a_malformed_value_does_not_cost_the_others() {
    for (json, kept, malformed) in [
        (r#"[{"token":"a","logprob":null},{"token":"b","logprob":-1}]"#, r#""b" -1 None"#, 1),
        (r#"[{"token":"a","logprob":"-Infinity"}]"#, "", 1),
        (r#"[{"token":"a","logprob":1e999}]"#, "", 1),
        (r#"[{"token":1,"logprob":-1}]"#, "", 1),
        (r#"[{"logprob":-1},null,7,"a"]"#, "", 4),
        (r#"[{"token":"a","logprob":-1,"bytes":[256]}]"#, r#""a" -1 None"#, 1),
        (r#"[{"token":"a","logprob":-1,"bytes":"a"}]"#, r#""a" -1 None"#, 1),
        (r#"[{"token":"a","logprob":-1,"top_logprobs":[{"token":"b","logprob":null}]}]"#, r#""a" -1 None"#, 1),
        (r#"[{"token":"a","logprob":-1,"top_logprobs":{}}]"#, r#""a" -1 None"#, 1),
        (r#"{"tokens":["a"]}"#, "", 1),
        ("[]", "", 0),
    ] {
        let read = read(json);
        assert_eq!((summary(&read.tokens).as_str(), read.malformed), (kept, malformed), "{json}");
    }
}

#[test]
fn small_tokens_cost_more_than_their_json() {
    let json = format!("[{}]", vec![r#"{"token":"a","logprob":-1.5}"#; 1000].join(","));
    let cost = read(&json).heap_bytes();
    assert!(cost > 2 * json.len() && cost < 8 * json.len(), "{cost} bytes for {} bytes of JSON", json.len());
}
