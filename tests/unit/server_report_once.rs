//! Unit tests of `server::report_once`.

use super::*;

#[test]
fn a_report_is_the_first_once_per_generation() {
    let once = ReportOnce::default();
    assert!(once.is_first(1, "a", "no rule matches `choices[0]`"));
    assert!(!once.is_first(1, "a", "no rule matches `choices[17]`"), "another index");
    assert!(once.is_first(1, "a", "no rule matches `parts[0]`"));
    assert!(once.is_first(1, "b", "no rule matches `choices[0]`"), "another backend");
    assert!(once.is_first(2, "a", "no rule matches `choices[0]`"), "another generation");
    assert!(!once.is_first(1, "a", "no rule matches `choices[0]`"), "a turn of an earlier generation");
}

#[test]
fn the_number_of_reports_is_limited() {
    let once = ReportOnce::default();
    let first = (0..10_000).filter(|number| once.is_first(1, "a", &format!("x{number}"))).count();
    assert_eq!(first, MAX_REPORTS);
}
