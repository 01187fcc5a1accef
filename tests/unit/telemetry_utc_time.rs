//! Unit tests of `telemetry::utc_time`.

use super::*;

#[test]
fn a_time_has_six_digits_after_its_seconds() {
    let times = [
        (1_795_050_701_000_004, "2026-11-19T01:11:41.000004Z"),
        (1_795_050_701_999_999, "2026-11-19T01:11:41.999999Z"),
        (1_795_050_702_120_000, "2026-11-19T01:11:42.120000Z"),
        (0, "1970-01-01T00:00:00.000000Z"),
    ];
    for (microseconds, expected) in times {
        let mut text = String::new();
        format(Timestamp::from_microsecond(microseconds).unwrap(), &mut text).unwrap();
        assert_eq!(text, expected);
    }
}
