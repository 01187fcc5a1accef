//! Unit tests of `engine::render::frame_cache`.

use super::*;
use reframe_json::SchemaSet;
use serde_json::{Value, json};

fn schema(schema: Value) -> Schema {
    SchemaSet::new([("frame.json".to_owned(), schema)]).compile("frame.json").unwrap()
}

fn cached() -> CachedFrame {
    let markers = Markers::for_turn("turn_1");
    let seq = Tree::from((markers.seq + 2) as i64);
    let tree = Tree::map([("type", Tree::from("delta")), ("delta", Tree::from(markers.delta.as_str())), ("seq", seq)]);
    CachedFrame::new(tree, &markers, None).unwrap()
}

#[test]
fn one_valid_frame_proves_the_next_if_the_schema_looks_only_at_types() {
    let schema = schema(json!({
        "properties": {
            "type": { "const": "delta" },
            "delta": { "type": "string" },
            "seq": { "type": "integer", "minimum": 0 }
        }
    }));
    let mut cached = cached();
    assert!(cached.is_valid(&schema, "a", 0) && cached.is_proven);
    assert!(cached.is_valid(&schema, "\"b\"\n", 1));
}

#[test]
fn a_frame_is_checked_each_time_if_the_schema_looks_at_its_delta() {
    let schema = schema(json!({ "properties": { "delta": { "type": "string", "maxLength": 2 } } }));
    let mut cached = cached();
    assert!(cached.is_valid(&schema, "ab", 0) && !cached.is_proven);
    assert!(!cached.is_valid(&schema, "abc", 1));
    assert!(cached.is_valid(&schema, "d", 1));
}

#[test]
fn a_frame_is_checked_each_time_if_the_schema_looks_at_its_number() {
    let schema = schema(json!({ "properties": { "seq": { "maximum": 3 } } }));
    let mut cached = cached();
    assert!(cached.is_valid(&schema, "a", 1) && !cached.is_proven);
    assert!(!cached.is_valid(&schema, "a", 2));
}

#[test]
fn an_invalid_frame_proves_nothing() {
    let schema = schema(json!({ "required": ["other"] }));
    let mut cached = cached();
    assert!(!cached.is_valid(&schema, "a", 0) && !cached.is_proven);
}
