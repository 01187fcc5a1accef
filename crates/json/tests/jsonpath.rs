//! JSONPath queries give the same results on a tree and on a `serde_json::Value`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jsonpath_rust::JsonPath;
use reframe_json::Tree;
use serde_json::Value;

const EVENT: &str = r#"{"items":[{"id":"a","n":1,"ok":true,"tags":["x","y"]},{"id":"b","n":2.5},
    {"id":"c","n":10,"ok":false,"tags":[]}],"limit":5,"odd key":{"z":null}}"#;

#[test]
fn queries_of_a_tree_and_a_value_agree() {
    let tree = Tree::parse(EVENT.as_bytes()).unwrap();
    let value: Value = serde_json::from_str(EVENT).unwrap();
    for path in [
        "$",
        "$.items[*].id",
        "$.items[-1].n",
        "$.items[0:2]",
        "$..n",
        "$['odd key'].z",
        "$.items[?@.n > 2]",
        "$.items[?@.n == 1.0].id",
        "$.items[?@.ok == false].id",
        "$.items[?@.id == 'b']",
        "$.items[?@.tags].id",
        "$.items[?length(@.tags) == 2].id",
        "$.items[?@.n < $.limit].id",
        "$.items[?match(@.id, '[ab]')].n",
        "$.nothing",
    ] {
        let found: Vec<Value> = tree.query(path).unwrap().into_iter().map(Tree::to_value).collect();
        let expected: Vec<Value> = value.query(path).unwrap().into_iter().cloned().collect();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn a_query_finds_nodes() {
    let tree = Tree::parse(EVENT.as_bytes()).unwrap();
    let ids = tree.query("$.items[?@.n > 2].id").unwrap();
    assert_eq!(ids, [&Tree::from("b"), &Tree::from("c")]);
}
