//! Unit tests of `reload::status`.

use super::*;
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn a_time_is_formatted_as_rfc_3339() {
    let at = |seconds: u64, millis: u64| {
        format_time(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
    };
    assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
    assert_eq!(at(951_782_399, 999), "2000-02-28T23:59:59.999Z");
    assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
    assert_eq!(at(1_767_225_600, 7), "2026-01-01T00:00:00.007Z");
    assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
}
