//! Validation of trees: which are rejected, and with which message.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod shared;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reframe_json::{Schema, SchemaSet, SchemaViolation, Tree};
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

/// Pointer, keyword and message of the violation. `is_valid` must agree.
fn violation(schema: &Schema, text: &str) -> (String, String, String) {
    assert!(!schema.is_valid(&tree(text)), "{text} is valid");
    let SchemaViolation { pointer, keyword, message, .. } = schema.check(&tree(text)).unwrap_err();
    (pointer, keyword, message)
}

fn passes(schema: &Schema, text: &str) -> bool {
    let valid = schema.is_valid(&tree(text));
    assert_eq!(valid, schema.check(&tree(text)).is_ok(), "{text}");
    valid
}

fn expected(pointer: &str, keyword: &str, message: &str) -> (String, String, String) {
    (pointer.to_owned(), keyword.to_owned(), message.to_owned())
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
        expected("/choices/1", "additionalProperties", "Additional properties are not allowed ('indx' was unexpected)")
    );
}

#[test]
fn a_missing_property_is_named() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk"}"#),
        expected("", "required", "\"choices\" is a required property")
    );
}

#[test]
fn constants_and_enums_are_compared() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunks","choices":[]}"#),
        expected("/object", "const", "\"chunk\" was expected")
    );
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"finish":"end"}]}"#),
        expected("/choices/0/finish", "enum", "\"end\" is not one of null, \"stop\" or \"length\"")
    );
}

#[test]
fn types_and_bounds_are_checked() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"index":"now"}]}"#),
        expected("/choices/0/index", "type", "\"now\" is not of type \"integer\"")
    );
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[{"index":-1}]}"#),
        expected("/choices/0/index", "minimum", "-1 is less than the minimum of 0")
    );
}

#[test]
fn the_error_of_the_only_plausible_branch_is_reported() {
    assert_eq!(
        violation(&chunk(), r#"{"object":"chunk","choices":[],"usage":{"a~b/c":"x"}}"#),
        expected("/usage/a~0b~1c", "type", "\"x\" is not of type \"integer\"")
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
        expected("/n", "type", "true is not of type \"integer\"")
    );
}

#[test]
fn without_a_plausible_branch_the_keyword_is_reported() {
    let schema = compile(json!({"anyOf": [{"type": "null"}, {"type": "object"}]}));
    let message = "this array is not valid under any of the schemas listed in the 'anyOf' keyword";
    assert_eq!(violation(&schema, "[1]"), expected("", "anyOf", message));
}

#[test]
fn a_long_text_is_not_repeated() {
    let schema = compile(json!({"type": "integer"}));
    let text = format!("\"{}\"", "secret ".repeat(20));
    assert_eq!(violation(&schema, &text), expected("", "type", "this string is not of type \"integer\""));
}

#[test]
fn a_violation_displays_its_pointer_and_message() {
    let schema = chunk();
    let at = |text| schema.check(&tree(text)).unwrap_err().to_string();
    assert_eq!(at(r#"{"object":1,"choices":[]}"#), "at /object: \"chunk\" was expected");
    assert_eq!(at(r#"{"object":"chunk"}"#), "\"choices\" is a required property");
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
    assert_eq!(violation(&schema, &nested("1")).0, "/next".repeat(100));
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
