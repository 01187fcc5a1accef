//! Unit tests of `mapping::policy::environment`.

use super::*;

#[test]
fn debug_output_contains_no_values() {
    let environment: Environment = [("KEY".to_owned(), "secret".to_owned())].into_iter().collect();
    assert_eq!(format!("{environment:?}"), "Environment(1 variables)");
    assert_eq!(environment.get("KEY"), Some("secret"));
}

#[test]
fn long_values_are_truncated_to_one_line() {
    assert_eq!(truncate_for_message("a\nb"), "a\u{fffd}b");
    assert_eq!(truncate_for_message(&"x".repeat(41)), format!("{}…", "x".repeat(40)));
}
