//! Validation of trees: which are rejected, and with which message.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod shared;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reframe_json::{Draft, Schema, SchemaSet, SchemaViolation, Tree, ViolationKind};
use serde_json::{Value, json};
use shared::plain_tree;
use std::cell::Cell;

fn compile(schema: Value) -> Schema {
    let set = SchemaSet::new([("it.json".to_owned(), schema)]);
    set.compile("it.json").unwrap()
}

fn tree(text: &str) -> Tree {
    Tree::parse(text.as_bytes()).unwrap()
}

/// `is_valid` must agree.
fn violation(schema: &Schema, text: &str) -> SchemaViolation {
    assert!(!schema.is_valid(&tree(text)), "{text} is valid");
    // `the_keyword_is_located_behind_a_reference` is about the location.
    SchemaViolation { keyword_at: None, ..schema.check(&tree(text)).unwrap_err() }
}

fn passes(schema: &Schema, text: &str) -> bool {
    let valid = schema.is_valid(&tree(text));
    assert_eq!(valid, schema.check(&tree(text)).is_ok(), "{text}");
    valid
}

fn expected(pointer: &str, keyword: &str, kind: ViolationKind) -> SchemaViolation {
    SchemaViolation { pointer: pointer.to_owned(), keyword: keyword.to_owned(), kind, keyword_at: None }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn chunk() -> Schema {
    compile(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["object", "choices"],
        "additionalProperties": false,
        "properties": {
            "object": {"const": "chunk"},
            "choices": {"type": "array", "items": {"$ref": "#/$defs/choice"}},
            "usage": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/usage"}]}
        },
        "$defs": {
            "choice": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "index": {"type": "integer", "minimum": 0},
                    "finish": {"enum": [null, "stop", "length"]}
                }
            },
            "usage": {
                "type": "object",
                "additionalProperties": false,
                "properties": {"a~b/c": {"type": "integer"}}
            }
        }
    }))
}

#[test]
fn a_good_tree_passes() {
    let text = r#"{"object":"chunk","choices":[{"index":0,"finish":null}],"usage":{"a~b/c":3}}"#;
    assert!(passes(&chunk(), text));
}

#[test]
fn an_unknown_property_is_reported_with_its_pointer() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"index":0},{"indx":1}]}"#),
        expected("/choices/1", "additionalProperties", ViolationKind::NotAllowed(strings(&["indx"])))
    );
}

#[test]
fn a_missing_property_is_named() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk"}"#),
        expected("", "required", ViolationKind::Missing("choices".to_owned()))
    );
}

#[test]
fn constants_and_enums_are_compared() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunks","choices":[]}"#),
        expected("/object", "const", ViolationKind::NotEqual("\"chunk\"".to_owned()))
    );
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"finish":"end"}]}"#),
        expected("/choices/0/finish", "enum", ViolationKind::NotOneOf(strings(&["null", "\"stop\"", "\"length\""])))
    );
}

#[test]
fn types_and_bounds_are_checked() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"index":"now"}]}"#),
        expected("/choices/0/index", "type", ViolationKind::WrongType(strings(&["integer"])))
    );
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"index":-1}]}"#),
        expected("/choices/0/index", "minimum", ViolationKind::Unmet("be at least 0".to_owned()))
    );
}

#[test]
fn the_error_of_the_only_plausible_branch_is_reported() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[],"usage":{"a~b/c":"x"}}"#),
        expected("/usage/a~0b~1c", "type", ViolationKind::WrongType(strings(&["integer"])))
    );
}

#[test]
fn branches_are_distinguished_by_a_constant() {
    let form =
        |kind: &str| json!({"type": "object", "properties": {"type": {"const": kind}, "n": {"type": "integer"}}});
    let schema = compile(json!({"oneOf": [form("a"), form("b"), form("c")]}));
    assert!(passes(&schema, r#"{"type":"b","n":1}"#));
    assert_eq!(
        violation(&schema, r#"{"type":"b","n":true}"#),
        expected("/n", "type", ViolationKind::WrongType(strings(&["integer"])))
    );
}

#[test]
fn without_a_plausible_branch_the_alternatives_are_reported() {
    let schema = compile(json!({"anyOf": [{"type": "null"}, {"type": "object"}]}));
    let alternatives = |names: &[&str]| ViolationKind::NoAlternative(strings(names));
    assert_eq!(violation(&schema, "[1]"), expected("", "anyOf", alternatives(&["an object"])));
    let schema = compile(json!({"anyOf": [{"type": "string"}, {"type": ["array", "null"]}, {"enum": [1, 2]}]}));
    assert_eq!(violation(&schema, "{}"), expected("", "anyOf", alternatives(&["a string", "an array", "1", "2"])));
    let schema = compile(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    let members = alternatives(&["an object with the member \"a\"", "an object with the member \"b\""]);
    assert_eq!(violation(&schema, "{}"), expected("", "oneOf", members));
}

#[test]
fn a_constant_that_no_branch_has_is_reported_with_those_of_the_branches() {
    let form = |kind: &str| json!({"type": "object", "properties": {"type": {"const": kind}}, "required": ["type"]});
    let schema = compile(json!({"anyOf": [{"type": "string"}, form("a"), form("b")]}));
    let values = ViolationKind::NotOneOf(strings(&["\"a\"", "\"b\""]));
    assert_eq!(violation(&schema, r#"{"type":"c"}"#), expected("/type", "anyOf", values));
}

#[test]
fn the_branch_that_matches_most_deeply_is_reported() {
    let list = |inner: Value| json!({"type": "array", "items": {"type": "object", "properties": {"x": inner}}});
    let schema = compile(json!({"anyOf": [{"minItems": 3}, list(json!({"type": "string"}))]}));
    let wrong = ViolationKind::WrongType(strings(&["string"]));
    assert_eq!(violation(&schema, r#"[{"x":1}]"#), expected("/0/x", "type", wrong));
}

#[test]
fn a_requirement_is_named_without_the_value() {
    let unmet = |schema, text: &str| match violation(&compile(schema), text).kind {
        ViolationKind::Unmet(requirement) => requirement,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(unmet(json!({"maximum": 1.5}), "2"), "be at most 1.5");
    assert_eq!(unmet(json!({"exclusiveMinimum": 0}), "0"), "be greater than 0");
    assert_eq!(unmet(json!({"multipleOf": 2}), "3"), "be a multiple of 2");
    assert_eq!(unmet(json!({"maxLength": 1}), "\"secret\""), "have at most 1 character");
    assert_eq!(unmet(json!({"minItems": 2}), "[]"), "have at least 2 items");
    assert_eq!(unmet(json!({"uniqueItems": true}), "[1,1]"), "have no item twice");
    let short_names = json!({"propertyNames": {"maxLength": 2}});
    assert_eq!(unmet(short_names, r#"{"secret":1}"#), "have only names that have at most 2 characters");
    assert_eq!(unmet(json!({"pattern": "^a"}), "\"secret\""), "match the pattern `^a`");
}

#[test]
fn a_long_text_is_not_repeated() {
    let schema = compile(json!({"propertyNames": {"enum": ["a", "b"]}}));
    let long = format!("{{\"{}\":1}}", "secret ".repeat(20));
    let message = "this string is not one of \"a\" or \"b\"";
    assert_eq!(violation(&schema, &long).kind, ViolationKind::Other(message.to_owned()));
}

#[test]
fn a_name_with_quotes_is_reported_as_it_is() {
    let schema = compile(json!({"required": ["a\"b"], "additionalProperties": false, "properties": {"a\"b": true}}));
    assert_eq!(violation(&schema, "{}"), expected("", "required", ViolationKind::Missing("a\"b".to_owned())));
    let names = ViolationKind::NotAllowed(strings(&["it's"]));
    assert_eq!(violation(&schema, r#"{"a\"b":1,"it's":2}"#), expected("", "additionalProperties", names));
}

#[test]
fn numbers_are_compared_by_value() {
    let schema = compile(json!({"type": "integer", "maximum": 1e300}));
    assert!(passes(&schema, "1.0"));
    assert!(passes(&schema, "1e3"));
    assert!(!passes(&schema, "1.5"));
    assert!(!passes(&schema, "1e400"));
    let one = compile(json!({"const": {"n": [1]}}));
    assert!(passes(&one, r#"{"n":[1.0]}"#));
    assert!(!passes(&one, r#"{"n":[1.1]}"#));
    assert!(!passes(&one, r#"{"n":[true]}"#));
    assert!(!passes(&one, "{}"));
    assert!(!passes(&one, r#"{"n":[1],"m":1}"#));
}

#[test]
fn property_names_are_checked() {
    let schema = compile(json!({"propertyNames": {"maxLength": 2}}));
    assert!(passes(&schema, r#"{"ab":1,"éé":2}"#));
    assert!(!passes(&schema, r#"{"ab":1,"abc":2}"#));
}

#[test]
fn recursive_schemas_are_followed() {
    let schema = compile(json!({
        "type": "object", "additionalProperties": false,
        "properties": {"next": {"$ref": "#"}}
    }));
    let nested = |end: &str| r#"{"next":"#.repeat(100) + end + &"}".repeat(100);
    assert!(passes(&schema, &nested("{}")));
    assert_eq!(violation(&schema, &nested("1")).pointer, "/next".repeat(100));
}

/// Schemas for the random trees of `shared`, which often have the keys `a` to `e`.
fn schemas() -> Vec<Value> {
    vec![
        json!({"type": ["object", "array"]}),
        json!({"properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["a"]}),
        json!({"required": ["a", "b", "c"]}),
        json!({"additionalProperties": {"type": "integer"}}),
        json!({"patternProperties": {"^[ab]$": {"type": "number"}}, "additionalProperties": false}),
        json!({"unevaluatedProperties": false, "anyOf": [{"properties": {"a": true}}, {"required": ["b"]}]}),
        json!({"items": {"type": ["integer", "null"]}, "uniqueItems": true}),
        json!({"contains": {"type": "number", "multipleOf": 2}, "minContains": 1}),
        json!({"minLength": 2, "maxLength": 5, "minimum": 0, "exclusiveMaximum": 10.5}),
        json!({"enum": [null, true, 0, 1, 2.0, "", [], {}]}),
        json!({"not": {"const": {}}, "minProperties": 1, "maxItems": 2}),
        json!({"propertyNames": {"pattern": "^[a-e]$"}}),
        json!({"$ref": "#/$defs/deep", "$defs": {"deep": {
            "additionalProperties": {"$ref": "#/$defs/deep"}, "items": {"$ref": "#/$defs/deep"},
            "maximum": 1000
        }}}),
    ]
}

#[test]
fn a_tree_and_its_value_validate_alike() {
    let validators: Vec<(Value, Schema, jsonschema::Validator)> = schemas()
        .into_iter()
        .map(|schema| {
            let validator = jsonschema::validator_for(&schema).unwrap();
            (schema.clone(), compile(schema), validator)
        })
        .collect();
    // How many trees each schema rejected and accepted.
    let outcomes: Vec<[Cell<usize>; 2]> = validators.iter().map(|_| Default::default()).collect();
    let checked = TestRunner::new(ProptestConfig::with_cases(300)).run(&plain_tree(), |tree| {
        let value = tree.to_value();
        for ((schema, ours, theirs), outcomes) in validators.iter().zip(&outcomes) {
            let expected = theirs.is_valid(&value);
            prop_assert_eq!(ours.is_valid(&tree), expected, "{}", schema);
            prop_assert_eq!(ours.check(&tree).is_ok(), expected, "{}", schema);
            let count = &outcomes[usize::from(expected)];
            count.set(count.get() + 1);
        }
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
    for ((schema, ..), [rejected, accepted]) in validators.iter().zip(&outcomes) {
        assert!(rejected.get() > 0 && accepted.get() > 0, "every tree gave the same result: {schema}");
    }
}

/// Whatever was valid before, what is accepted is what is valid.
#[test]
fn a_document_of_a_known_shape_validates_as_any_other() {
    let member = |schema: Value| {
        let definitions = schema["$defs"].clone();
        let mut within =
            json!({"properties": {"a": schema, "b": {"items": {"properties": {"a": {"type": "string"}}}}}});
        if !definitions.is_null() {
            within["$defs"] = definitions;
        }
        compile(within)
    };
    let schemas: Vec<(Value, Schema)> = schemas().into_iter().map(|schema| (schema.clone(), member(schema))).collect();
    let trees = proptest::collection::vec((plain_tree(), plain_tree()), 1..20);
    let (accepted, rejected) = (Cell::new(0), Cell::new(0));
    let checked = TestRunner::new(ProptestConfig::with_cases(100)).run(&trees, |trees| {
        for (a, b) in trees {
            let tree = Tree::map([("a", a), ("b", b)]);
            for (schema, compiled) in &schemas {
                let expected = compiled.is_valid(&tree);
                prop_assert_eq!(compiled.accepts(&tree), expected, "{}", schema);
                prop_assert_eq!(compiled.accepts_draft(&Draft::Tree(&tree)), expected, "{}", schema);
                let count = if expected { &accepted } else { &rejected };
                count.set(count.get() + 1);
            }
        }
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(accepted.get() > 1_000 && rejected.get() > 1_000, "{} and {}", accepted.get(), rejected.get());
}

#[test]
fn a_value_that_the_schema_looks_at_is_part_of_the_shape() {
    let schema = compile(json!({
        "type": "object",
        "required": ["type"],
        "additionalProperties": false,
        "properties": {
            "type": {"enum": ["text", "call"]},
            "text": {"type": "string"},
            "id": {"type": "string", "minLength": 1},
            "opened": {"type": ["string", "number"], "maxLength": 0},
            "count": {"type": "integer", "minimum": 0},
            "open": {"const": true},
            "tags": {"type": "array", "items": {"maxLength": 3}},
            "distinct": {"uniqueItems": true},
            "metadata": {"additionalProperties": {"pattern": "^a"}}
        }
    }));
    let sequence = [
        (r#"{"type":"text","text":"a","count":1}"#, true),
        (r#"{"type":"text","text":"bcd","count":200}"#, true),
        (r#"{"type":"text","text":"bcd","count":-1}"#, false),
        (r#"{"type":"text","text":"bcd","count":1.5}"#, false),
        (r#"{"type":"text","text":"bcd","count":1.0}"#, true),
        (r#"{"type":"text","text":null,"count":1}"#, false),
        (r#"{"type":"other","text":"a","count":1}"#, false),
        (r#"{"type":"call","text":"a","count":1}"#, true),
        (r#"{"type":"call","texts":"a","count":1}"#, false),
        (r#"{"type":"call","id":"a"}"#, true),
        (r#"{"type":"call","id":"bcd"}"#, true),
        (r#"{"type":"call","id":""}"#, false),
        (r#"{"type":"call","id":7}"#, false),
        (r#"{"type":"call","opened":""}"#, true),
        (r#"{"type":"call","opened":"a"}"#, false),
        (r#"{"type":"call","opened":7}"#, true),
        (r#"{"type":"call","opened":-1.5}"#, true),
        (r#"{"type":"call","open":true}"#, true),
        (r#"{"type":"call","open":false}"#, false),
        (r#"{"type":"call","tags":["abc"]}"#, true),
        (r#"{"type":"call","tags":["abcd"]}"#, false),
        (r#"{"type":"call","tags":["abc","abcd"]}"#, false),
        (r#"{"type":"call","distinct":["\ud83d","\ud83e"]}"#, true),
        (r#"{"type":"call","distinct":["\ud83d","\ud83d"]}"#, false),
        (r#"{"type":"call","metadata":{"text":"a"}}"#, true),
        (r#"{"type":"call","metadata":{"text":"b"}}"#, false),
    ];
    for (text, expected) in sequence.iter().chain(&sequence) {
        assert_eq!(schema.accepts(&tree(text)), *expected, "{text}");
    }
}

#[test]
fn the_keyword_is_located_behind_a_reference() {
    let documents = [
        ("a/it.json", r##"{ "properties": { "x": { "$ref": "other.json#/$defs/a~1b" } } }"##),
        ("a/other.json", r##"{ "$defs": { "a/b": { "properties": { "é": { "enum": [1] } } } } }"##),
    ];
    let documents = documents.map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()));
    let schema = SchemaSet::new(documents).compile("a/it.json").unwrap();
    let violation = schema.check(&tree(r#"{ "x": { "é": 2 } }"#)).unwrap_err();
    let expected = ("a/other.json".to_owned(), "/$defs/a~1b/properties/é/enum".to_owned());
    assert_eq!(violation.keyword_at.as_deref(), Some(&expected));
}
