//! Documents that refer to each other, and the errors of unresolvable references.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe_json::{SchemaError, SchemaSet, Tree};
use serde_json::{Value, json};

fn set<const N: usize>(documents: [(&str, Value); N]) -> SchemaSet {
    SchemaSet::new(documents.map(|(path, document)| (path.to_owned(), document)))
}

fn tree(text: &str) -> Tree {
    Tree::parse(text.as_bytes()).unwrap()
}

fn invalid(document: &str, pointer: &str, message: &str) -> SchemaError {
    SchemaError::Invalid { document: document.to_owned(), pointer: pointer.to_owned(), message: message.to_owned() }
}

fn family() -> SchemaSet {
    set([
        (
            "chat/chunk.json",
            json!({"properties": {
                "usage": {"$ref": "../shared/usage.json"},
                "delta": {"$ref": "delta.json#/$defs/text"}
            }}),
        ),
        ("chat/delta.json", json!({"$defs": {"text": {"type": "string"}}})),
        (
            "shared/usage.json",
            json!({
                "$id": "https://example.com/somewhere/else.json",
                "properties": {"total": {"$ref": "./parts/count.json#/$defs/a%20count"}}
            }),
        ),
        ("shared/parts/count.json", json!({"$defs": {"a count": {"type": "integer"}}})),
        (
            "responses/events.json",
            json!({"$defs": {
                "response.created": {"required": ["response"], "properties": {
                    "response": {"$ref": "#/$defs/response"}
                }},
                "response": {"type": "object"},
                "with/slash and %": {"type": "null"}
            }}),
        ),
    ])
}

#[test]
fn references_between_documents_are_followed() {
    let schema = family().compile("chat/chunk.json").unwrap();
    assert!(schema.is_valid(&tree(r#"{"usage":{"total":1},"delta":"x"}"#)));
    let violation = schema.check(&tree(r#"{"usage":{"total":"1"}}"#)).unwrap_err();
    assert_eq!((&*violation.pointer, &*violation.keyword), ("/usage/total", "type"));
    let violation = schema.check(&tree(r#"{"delta":1}"#)).unwrap_err();
    assert_eq!((&*violation.pointer, &*violation.keyword), ("/delta", "type"));
}

#[test]
fn a_definition_with_dots_in_its_name_is_compiled_in_its_document() {
    let schema = family().compile("responses/events.json#/$defs/response.created").unwrap();
    assert!(schema.is_valid(&tree(r#"{"response":{}}"#)));
    let violation = schema.check(&tree(r#"{"response":1}"#)).unwrap_err();
    assert_eq!((&*violation.pointer, &*violation.keyword), ("/response", "type"));
    assert_eq!(schema.check(&tree("{}")).unwrap_err().keyword, "required");
}

#[test]
fn names_need_no_percent_encoding() {
    let schema = family().compile("responses/events.json#/$defs/with~1slash and %").unwrap();
    assert!(schema.is_valid(&tree("null")));
    assert!(!schema.is_valid(&tree("1")));
}

#[test]
fn missing_schemas_are_not_found() {
    let set = family();
    for (reference, is_there) in [
        ("chat/chunk.json", true),
        ("responses/events.json#/$defs/response.created", true),
        ("responses/events.json#/$defs/response.create", false),
        ("chunk.json", false),
        ("chat/chunk.json#usage", false),
    ] {
        assert_eq!(set.contains(reference), is_there, "{reference}");
        let result = set.compile(reference).map(drop);
        assert_eq!(result == Err(SchemaError::NotFound), !is_there, "{reference}");
    }
}

#[test]
fn a_reference_to_a_missing_document_is_reported() {
    let set = set([
        ("a/one.json", json!({"properties": {"x": {"$ref": "../b/two.json"}}})),
        ("b/two.json", json!({"items": {"$ref": "tree.json#/$defs/x"}})),
        ("c.json", json!({"type": "null"})),
    ]);
    let fault = invalid("b/two.json", "/items/$ref", "there is no schema `b/tree.json`");
    assert_eq!(set.compile("a/one.json").unwrap_err(), fault);
    assert_eq!(set.compile("b/two.json").unwrap_err(), fault);
    assert_eq!(fault.to_string(), "b/two.json#/items/$ref: there is no schema `b/tree.json`");
    // An error in one document does not affect unrelated ones.
    assert!(set.compile("c.json").unwrap().is_valid(&Tree::Null));
}

#[test]
fn a_reference_to_a_missing_definition_is_reported() {
    let set = set([("a.json", json!({"$defs": {"x": {"allOf": [{"$ref": "#/$defs/y"}]}}}))]);
    let fault = invalid("a.json", "/$defs/x/allOf/0/$ref", "`a.json` has no `/$defs/y`");
    assert_eq!(set.compile("a.json#/$defs/x").unwrap_err(), fault);
}

#[test]
fn remote_references_are_rejected() {
    let set = set([("a.json", json!({"$ref": "https://example.com/b.json"}))]);
    let message = "`https://example.com/b.json` is a remote schema, and remote schemas are not fetched";
    assert_eq!(set.compile("a.json").unwrap_err(), invalid("a.json", "/$ref", message));
}

#[test]
fn data_that_looks_like_a_reference_is_data() {
    let set = set([(
        "a.json",
        json!({
            "properties": {"$ref": {"type": "string"}},
            "const": {"$ref": "nowhere.json"}
        }),
    )]);
    let schema = set.compile("a.json").unwrap();
    assert!(schema.is_valid(&tree(r#"{"$ref":"nowhere.json"}"#)));
    assert!(!schema.is_valid(&tree(r#"{"$ref":"elsewhere.json"}"#)));
}

#[test]
fn circular_references_are_followed_once() {
    let set = set([
        ("a.json", json!({"properties": {"b": {"$ref": "b.json"}}, "additionalProperties": false})),
        ("b.json", json!({"items": {"$ref": "a.json"}})),
    ]);
    let schema = set.compile("a.json").unwrap();
    assert!(schema.is_valid(&tree(r#"{"b":[{"b":[{}]}]}"#)));
    assert!(!schema.is_valid(&tree(r#"{"b":[{"b":[{"c":1}]}]}"#)));
}

#[test]
fn an_invalid_schema_is_reported_with_its_pointer() {
    let set = set([
        ("a.json", json!({"properties": {"x": {"minLength": "3"}}})),
        ("b.json", json!({"$schema": "http://json-schema.org/draft-07/schema#"})),
        ("c.json", json!({"$defs": {"x": {"$id": "other.json"}}})),
        ("d.json", json!({"items": {"pattern": "("}})),
        ("e.json", json!({"patternProperties": {"/[": true}})),
    ]);
    assert_eq!(
        set.compile("a.json").unwrap_err(),
        invalid("a.json", "/properties/x/minLength", "\"3\" is not of type \"integer\"")
    );
    let dialect = "unsupported schema dialect `http://json-schema.org/draft-07/schema#`; \
                   use `https://json-schema.org/draft/2020-12/schema`";
    assert_eq!(set.compile("b.json").unwrap_err(), invalid("b.json", "/$schema", dialect));
    let inner = "`$id` is allowed only at the root: here it would change the base of all references under it";
    assert_eq!(set.compile("c.json").unwrap_err(), invalid("c.json", "/$defs/x/$id", inner));
    assert_eq!(
        set.compile("d.json").unwrap_err(),
        invalid("d.json", "/items/pattern", "`(` is not a valid regular expression")
    );
    assert_eq!(
        set.compile("e.json").unwrap_err(),
        invalid("e.json", "/patternProperties/~1[", "`/[` is not a valid regular expression")
    );
}

#[test]
fn a_location_outside_the_known_keywords_can_be_compiled() {
    let set = set([(
        "api.json",
        json!({"components": {
            "good": {"$ref": "#/components/text"},
            "text": {"type": "string"},
            "bad": {"$ref": "#/components/none"}
        }}),
    )]);
    let schema = set.compile("api.json#/components/good").unwrap();
    assert!(schema.is_valid(&tree(r#""x""#)));
    assert!(!schema.is_valid(&tree("1")));
    assert_eq!(
        set.compile("api.json#/components/bad").unwrap_err(),
        invalid("api.json", "/components/bad/$ref", "`api.json` has no `/components/none`")
    );
}

#[test]
fn open_objects_are_listed_and_closed_ones_are_not() {
    let closed = json!({"type": "object", "additionalProperties": false});
    let set = set([(
        "a.json",
        json!({
            "type": "object",
            "properties": {
                "closed": closed,
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "unevaluated": {"properties": {}, "unevaluatedProperties": false},
                "explicitly": {"type": "object", "additionalProperties": true},
                "nullable": {"type": ["object", "null"]},
                "a/b": {"properties": {"x": {"type": "string"}}},
                "text": {"type": "string"},
                "data": {"const": {"type": "object"}},
                "list": {"items": closed}
            },
            "$defs": {"open": {"type": "object"}}
        }),
    )]);
    assert_eq!(
        set.open_objects("a.json"),
        ["", "/properties/explicitly", "/properties/nullable", "/properties/a~1b", "/$defs/open"]
    );
    assert_eq!(set.open_objects("b.json"), Vec::<String>::new());
}

#[test]
fn branches_of_a_closed_object_may_be_open() {
    let branches = json!([{"properties": {"x": {"type": "object"}}}]);
    let set = set([
        ("closed.json", json!({"allOf": branches, "unevaluatedProperties": false})),
        ("open.json", json!({"allOf": branches})),
        ("condition.json", json!({"if": {"properties": {"x": {"const": 1}}}})),
    ]);
    let inside = "/allOf/0/properties/x";
    assert_eq!(set.open_objects("closed.json"), [inside]);
    assert_eq!(set.open_objects("open.json"), ["/allOf/0", inside]);
    assert_eq!(set.open_objects("condition.json"), Vec::<String>::new());
}

/// `levels` definitions that each refer twice to the next one.
fn doubled(keyword: &str, levels: usize) -> Value {
    let reference = |level: usize| json!({"$ref": format!("#/$defs/level{level}")});
    let mut definitions: serde_json::Map<String, Value> = (0..levels)
        .map(|level| (format!("level{level}"), json!({keyword: [reference(level + 1), reference(level + 1)]})))
        .collect();
    definitions.insert(format!("level{levels}"), json!({"type": "string"}));
    json!({"$defs": definitions, "properties": {"name": reference(0)}})
}

#[test]
fn a_schema_that_multiplies_itself_is_refused_at_its_place() {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let error = set([("it.json", doubled(keyword, 12))]).compile("it.json").unwrap_err();
        let message = "validating one value here takes more than 2000 evaluations of subschemas";
        let SchemaError::Invalid { pointer, message: found, .. } = &error else { panic!("{error}") };
        assert_eq!(found, message);
        assert!(pointer.starts_with("/$defs/level"), "{pointer}");
        let error = set([("it.json", doubled(keyword, 30))]).compile("it.json").unwrap_err();
        assert!(error.to_string().contains("more than 32 schemas in a row"), "{error}");
        let small = set([("it.json", doubled(keyword, 5))]).compile("it.json").unwrap();
        assert_eq!(small.is_valid(&tree(r#"{"name":"a"}"#)), keyword != "oneOf");
    }
}

#[test]
fn a_schema_that_multiplies_with_each_level_of_a_value_is_refused() {
    let deeper = json!({"properties": {"inner": {"$ref": "#"}}});
    let error = set([("it.json", json!({"anyOf": [deeper, deeper]}))]).compile("it.json").unwrap_err();
    assert!(error.to_string().contains("takes more than 2000 evaluations"), "{error}");
    // By anchors and in lists as well.
    let deeper = json!({"items": {"$ref": "#it"}, "contains": {"$dynamicRef": "#it"}});
    let error = set([("it.json", json!({"$dynamicAnchor": "it", "allOf": [deeper]}))]).compile("it.json").unwrap_err();
    assert!(error.to_string().contains("takes more than 2000 evaluations"), "{error}");
}

#[test]
fn recursion_with_one_schema_for_each_part_is_no_multiplication() {
    let tree_schema = json!({
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "string"}},
        "additionalProperties": false,
    });
    let schema = set([("it.json", tree_schema)]).compile("it.json").unwrap();
    assert!(schema.is_valid(&tree(r#"{"left":{"left":{"value":"a"}},"right":{"right":{}}}"#)));
    let filters = json!({
        "properties": {"and": {"items": {"$ref": "#"}}, "or": {"items": {"$ref": "#"}}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": {"$ref": "#"},
    });
    set([("it.json", filters)]).compile("it.json").unwrap();
}

#[test]
fn a_long_row_of_schemas_is_refused() {
    let row = |length: usize| {
        let level = |n: usize| json!({"properties": {"next": {"$ref": format!("#/$defs/level{}", n + 1)}}});
        let mut all: serde_json::Map<String, Value> = (0..length).map(|n| (format!("level{n}"), level(n))).collect();
        all.insert(format!("level{length}"), json!(true));
        set([("it.json", json!({"$ref": "#/$defs/level0", "$defs": all}))]).compile("it.json")
    };
    row(100).unwrap();
    let message = "this schema contains and refers to more than 8000 subschemas";
    assert_eq!(row(5_000).unwrap_err(), invalid("it.json", "", message));
}

#[test]
fn a_schema_that_refers_to_itself_for_the_same_value_is_refused() {
    let definitions = json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, true]}, "b": {"$ref": "#/$defs/a"}}});
    let error = set([("it.json", definitions)]).compile("it.json#/$defs/a").unwrap_err();
    assert_eq!(error, invalid("it.json", "/$defs/a", "this schema refers to itself for the same value"));
}
