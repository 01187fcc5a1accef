//! Unit tests of `openapi::gateway_schemas`.

use super::*;
use reframe_json::Tree;

#[test]
fn both_schemas_compile() {
    assert!(status_validator().is_some() && metrics_validator().is_some());
}

#[test]
fn a_status_with_an_unknown_member_is_not_valid() {
    let schema = status_validator().unwrap();
    assert!(!schema.is_valid(&Tree::from_value(&serde_json::json!({ "version": "1" }))));
}

#[test]
fn metrics_are_lines_of_openmetrics() {
    let schema = metrics_validator().unwrap();
    let is_valid = |text: &str| schema.is_valid(&Tree::from(text));
    assert!(is_valid("# HELP a b\n# TYPE a gauge\na{b=\"c\"} 1\na 2\n# EOF\n"));
    assert!(!is_valid("# HELP a b\na 1\n"));
    assert!(!is_valid("<html></html>\n# EOF\n"));
}
