//! Parsing of valid texts, and the errors of invalid ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe_json::{Limits, Num, SurrogateString, Tree};

fn parse(text: &str) -> Tree {
    Tree::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    match Tree::parse(text.as_bytes()) {
        Ok(tree) => panic!("{text} became {tree}"),
        Err(error) => error.to_string(),
    }
}

fn string(leading_low: Option<u16>, text: &str, trailing_high: Option<u16>) -> Tree {
    Tree::SurrogateString(Box::new(SurrogateString { leading_low, text: text.to_owned(), trailing_high }))
}

#[test]
fn every_kind_of_value_is_parsed() {
    let tree = parse(r#" { "a" : [ null , true , false , -7 , "x\n" ] , "b" : { } } "#);
    let list = vec![Tree::Null, Tree::Bool(true), Tree::Bool(false), Tree::from(-7_i64), Tree::from("x\n")];
    let expected = Tree::Map(vec![("a".into(), Tree::List(list)), ("b".into(), Tree::Map(Vec::new()))]);
    assert_eq!(tree, expected);
}

#[test]
fn a_number_is_an_int_only_if_it_prints_back() {
    for token in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"] {
        let Tree::Num(Num::Int(int)) = parse(token) else {
            panic!("{token} is not an Int");
        };
        assert_eq!(int.to_string(), token);
    }
    for token in ["-0", "1.0", "1e3", "1E+3", "9223372036854775808", "0.10", "1e400"] {
        let Tree::Num(Num::Token(kept)) = parse(token) else {
            panic!("{token} is not a Token");
        };
        assert_eq!(&*kept, token);
    }
}

#[test]
fn a_byte_order_mark_may_lead() {
    assert_eq!(Tree::parse(b"\xEF\xBB\xBF[1]").unwrap().to_json(), "[1]");
    let error = Tree::parse(b"\xEF\xBB\xBF[x]").unwrap_err();
    assert_eq!((error.offset, error.line, error.column), (4, 1, 2));
}

#[test]
fn a_duplicate_key_keeps_the_first_position_and_the_last_value() {
    let tree = parse(r#"{"a":1,"b":2,"a":3,"\u0061":4}"#);
    assert_eq!(tree.to_json(), r#"{"a":4,"b":2}"#);
}

#[test]
fn duplicate_keys_are_found_in_large_maps_too() {
    let entries: Vec<String> = (0..100).map(|n| format!(r#""k{}":{n}"#, n % 40)).collect();
    let tree = parse(&format!("{{{}}}", entries.join(",")));
    let expected: Vec<String> =
        (0..40).map(|key| format!(r#""k{key}":{}"#, if key < 20 { key + 80 } else { key + 40 })).collect();
    assert_eq!(tree.to_json(), format!("{{{}}}", expected.join(",")));
}

#[test]
fn pairs_of_surrogates_are_one_character() {
    assert_eq!(parse(r#""\ud83d\ude00""#), Tree::from("😀"));
    assert_eq!(parse(r#""a\uD83D\uDE00b""#), Tree::from("a😀b"));
}

#[test]
fn a_lone_surrogate_at_an_end_is_kept() {
    assert_eq!(parse(r#""\ude00""#), string(Some(0xDE00), "", None));
    assert_eq!(parse(r#""\ud83d""#), string(None, "", Some(0xD83D)));
    assert_eq!(parse(r#""\ude00é\n\ud83d""#), string(Some(0xDE00), "é\n", Some(0xD83D)));
    assert_eq!(parse(r#""\ude00\ud83d""#), string(Some(0xDE00), "", Some(0xD83D)));
}

#[test]
fn a_lone_surrogate_elsewhere_becomes_a_replacement_character() {
    assert_eq!(parse(r#""a\ude00""#), Tree::from("a\u{FFFD}"));
    assert_eq!(parse(r#""\ud83da""#), Tree::from("\u{FFFD}a"));
    assert_eq!(parse(r#""\ud83d\u0041""#), Tree::from("\u{FFFD}A"));
    assert_eq!(parse(r#""\ud83d\n""#), Tree::from("\u{FFFD}\n"));
    assert_eq!(parse(r#""\ud83d\ud83d""#), string(None, "\u{FFFD}", Some(0xD83D)));
    assert_eq!(parse(r#""\ude00\ude00""#), string(Some(0xDE00), "\u{FFFD}", None));
}

#[test]
fn a_lone_surrogate_in_a_key_becomes_a_replacement_character() {
    let tree = parse(r#"{"\ud83d":1}"#);
    assert_eq!(tree, Tree::map([("\u{FFFD}", Tree::from(1_i64))]));
}

#[test]
fn a_surrogate_string_has_no_str() {
    let tree = string(Some(0xDE00), "x", Some(0xD83D));
    assert_eq!((tree.type_name(), tree.as_str()), ("string", None));
    assert_eq!(tree.to_value(), serde_json::json!("\u{FFFD}x\u{FFFD}"));
}

#[test]
fn errors_name_the_expectation_and_the_position() {
    assert_eq!(error(""), "line 1 column 1: expected a value");
    assert_eq!(error(r#"{"a":1, "b": oops}"#), "line 1 column 14: expected a value");
    assert_eq!(error("[1,]"), "line 1 column 4: expected a value");
    assert_eq!(error("[1 2]"), "line 1 column 4: expected `,` or `]`");
    assert_eq!(error("{\"é\"\n 1}"), "line 2 column 2: expected `:`");
    assert_eq!(error(r#"{"é" 1}"#), "line 1 column 6: expected `:`");
    assert_eq!(error(r#"{"a":1 "b""#), "line 1 column 8: expected `,` or `}`");
    assert_eq!(error(r#"{"a":1,}"#), "line 1 column 8: expected a key in quotes");
    assert_eq!(error("1 2"), "line 1 column 3: expected the end of the text");
    assert_eq!(error("01"), "line 1 column 2: a number must not have leading zeros");
    assert_eq!(error("1."), "line 1 column 3: expected a digit");
    assert_eq!(error(r#""abc"#), "line 1 column 5: unterminated string");
    assert_eq!(error(r#""\x""#), "line 1 column 3: unknown escape sequence");
    assert_eq!(error(r#""\u12g4""#), "line 1 column 6: expected four hexadecimal digits");
    assert_eq!(error("\"a\nb\""), "line 1 column 3: a control character in a string must be escaped");
    let not_utf8 = Tree::parse(b"[\n\"\xFF\"]").unwrap_err();
    assert_eq!(not_utf8.to_string(), "line 2 column 2: the text is not UTF-8");
    assert_eq!(not_utf8.offset, 3);
}

#[test]
fn a_hundred_thousand_brackets_are_an_error_and_not_a_crash() {
    for open in ["[", r#"{"a":"#] {
        let deep = open.repeat(100_000);
        let error = Tree::parse(deep.as_bytes()).unwrap_err();
        assert_eq!(error.message, "nested too deeply");
        assert_eq!(error.offset, open.len() * 128);
    }
}

#[test]
fn no_setting_allows_more_depth_than_the_stack_has() {
    let limits = Limits { max_depth: usize::MAX, ..Limits::default() };
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Tree::parse_with(nested(512).as_bytes(), &limits).is_ok());
    let error = Tree::parse_with(nested(513).as_bytes(), &limits).unwrap_err();
    assert_eq!(error.message, "nested too deeply");
}

#[test]
fn limits_are_inclusive() {
    let limits = Limits { max_bytes: 12, max_depth: 2, max_nodes: 4 };
    let message = |text: &str| match Tree::parse_with(text.as_bytes(), &limits) {
        Ok(_) => "fine",
        Err(error) => error.message,
    };
    assert_eq!(message("[[1,2]]     "), "fine");
    assert_eq!(message("[[1,2]]      "), "the text exceeds the maximum length");
    assert_eq!(message("[[1],[]]"), "fine");
    assert_eq!(message("[[[]]]"), "nested too deeply");
    assert_eq!(message("[1,2,3]"), "fine");
    assert_eq!(message("[1,2,3,4]"), "too many values");
}
