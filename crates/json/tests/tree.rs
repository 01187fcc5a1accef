//! Building, reading, comparing and writing trees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe_json::{NotFinite, Num, Tree, write_str};
use serde_json::json;

fn parse(text: &str) -> Tree {
    Tree::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn members_and_elements_are_found() {
    let tree = parse(r#"{"a":[1,"x"],"b":null}"#);
    assert_eq!(tree.get("a").unwrap().at(1).unwrap().as_str(), Some("x"));
    assert!(tree.get("b").unwrap().is_null());
    assert_eq!(tree.get("c"), None);
    assert_eq!(tree.at(0), None);
    assert_eq!(tree.get("a").unwrap().at(2), None);
    assert_eq!(tree.get("a").unwrap().get("a"), None);
}

#[test]
fn inserting_replaces_in_place_or_adds_at_the_end() {
    let mut tree = Tree::map([("a", Tree::Null), ("b", Tree::Null)]);
    tree.insert("a", Tree::from(true));
    tree.insert("c", Tree::from(1_u64));
    assert_eq!(tree.to_json(), r#"{"a":true,"b":null,"c":1}"#);
    let mut list = Tree::List(Vec::new());
    list.insert("a", Tree::Null);
    assert_eq!(list.to_json(), "[]");
}

#[test]
fn a_map_built_with_a_key_twice_keeps_the_last_value() {
    let tree = Tree::map([("a", Tree::from(1_i64)), ("b", Tree::Null), ("a", Tree::from(2_i64))]);
    assert_eq!(tree.to_json(), r#"{"a":2,"b":null}"#);
}

#[test]
fn numbers_are_equal_by_value_and_never_by_rounding() {
    for (left, right) in [
        ("1", "1.0"),
        ("100", "1e2"),
        ("0.1", "1.0E-1"),
        ("-0", "0.00e7"),
        ("1e400", "10e399"),
        ("12345678901234567890123", "12345678901234567890123.0"),
    ] {
        assert_eq!(parse(left), parse(right), "{left} {right}");
    }
    for (left, right) in [
        ("1", "-1"),
        ("1", "10"),
        ("9007199254740993", "9007199254740992.0"),
        ("0.1", "0.10000000000000000000001"),
        ("12345678901234567890123", "12345678901234567890124"),
        ("1e99999999999999999999", "1e99999999999999999998"),
    ] {
        assert_ne!(parse(left), parse(right), "{left} {right}");
    }
}

#[test]
fn maps_are_equal_in_any_order_and_lists_are_not() {
    assert_eq!(parse(r#"{"a":1,"b":[2]}"#), parse(r#"{"b":[2.0],"a":1}"#));
    assert_ne!(parse(r#"{"a":1,"b":2}"#), parse(r#"{"b":1,"a":2}"#));
    assert_ne!(parse(r#"{"a":1}"#), parse(r#"{"a":1,"b":2}"#));
    assert_ne!(parse(r#"{"a":1,"b":2}"#), parse(r#"{"a":1,"c":2}"#));
    assert_ne!(parse(r#"{"a":1,"b":2}"#), parse(r#"{"a":1,"b":3}"#));
    assert_ne!(parse("[1,2]"), parse("[2,1]"));
    assert_ne!(parse("0"), parse("false"));
}

#[test]
fn integers_are_read_only_where_they_are_written() {
    let read = |token| {
        let tree = parse(token);
        (tree.as_i64(), tree.as_u64(), tree.as_f64())
    };
    assert_eq!(read("7"), (Some(7), Some(7), Some(7.0)));
    assert_eq!(read("-7"), (Some(-7), None, Some(-7.0)));
    assert_eq!(read("1.0"), (None, None, Some(1.0)));
    assert_eq!(read("1e3"), (None, None, Some(1000.0)));
    assert_eq!(read("-0"), (None, None, Some(-0.0)));
    assert_eq!(read("18446744073709551615"), (None, Some(u64::MAX), Some(u64::MAX as f64)));
    assert_eq!(read("18446744073709551616"), (None, None, Some(18446744073709551616.0)));
    assert_eq!(read("1e400"), (None, None, None));
    assert_eq!(read("true"), (None, None, None));
}

#[test]
fn floats_become_the_shortest_token_and_no_float_becomes_garbage() {
    assert_eq!(Tree::from(1.0).to_json(), "1.0");
    assert_eq!(Tree::from(0.1).to_json(), "0.1");
    assert_eq!(Tree::from(f64::NAN), Tree::Null);
    assert!(matches!(Num::try_from(f64::INFINITY), Err(NotFinite)));
}

#[test]
fn only_required_escapes_are_written() {
    let mut out = Vec::new();
    write_str("a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é\u{2028}😀", &mut out);
    let expected = "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é\u{2028}😀\"";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn surrogate_strings_are_written_as_they_were_read() {
    let text = r#"["\ude00x","x\ud83d","\ude00\ud83d"]"#;
    assert_eq!(parse(text).to_json(), text);
}

#[test]
fn extreme_integers_print() {
    let text = "[-9223372036854775808,9223372036854775807,0,-1,10]";
    assert_eq!(parse(text).to_json(), text);
}

#[test]
fn pretty_printing_indents_by_two_spaces() {
    let value = json!({"a": [1, {"b": "x"}], "c": [], "d": {}, "e": null});
    let tree = Tree::from_value(&value);
    assert_eq!(tree.to_json_pretty(), serde_json::to_string_pretty(&value).unwrap());
    assert_eq!(Tree::Null.to_json_pretty(), "null");
}

#[test]
fn numbers_no_value_can_hold_become_the_nearest_one() {
    assert_eq!(parse("1e400").to_value(), json!(f64::MAX));
    assert_eq!(parse("-1e400").to_value(), json!(f64::MIN));
    assert_eq!(parse("18446744073709551616").to_value(), json!(18446744073709551616.0));
}

#[test]
fn every_value_has_the_name_of_its_type() {
    let tree = parse(r#"[null,true,1,"x","\ud83d",[],{}]"#);
    let names: Vec<_> = tree.as_list().unwrap().iter().map(Tree::type_name).collect();
    let expected = ["null", "boolean", "number", "string", "string", "array", "object"];
    assert_eq!(names, expected);
}

#[test]
fn display_is_compact_json() {
    assert_eq!(parse(r#"{ "a" : [ 1.0 ] }"#).to_string(), r#"{"a":[1.0]}"#);
}
