//! Unit tests of `telemetry::plain_metrics`.

use super::*;

#[test]
fn counters_and_infos_are_declared_as_their_samples_are_named() {
    let openmetrics = "# HELP turns Turns so far.\n# TYPE turns counter\nturns_total{route=\"/v1\"} 2\n\
        # HELP build The version.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n\
        # HELP wait_seconds Time.\n# TYPE wait_seconds histogram\n# UNIT wait_seconds seconds\n\
        wait_seconds_sum 0.5\nwait_seconds_count 1\nwait_seconds_bucket{le=\"+Inf\"} 1\n# EOF\n";
    let plain = "# HELP turns_total Turns so far.\n# TYPE turns_total counter\nturns_total{route=\"/v1\"} 2\n\
        # HELP build_info The version.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
        # HELP wait_seconds Time.\n# TYPE wait_seconds histogram\n\
        wait_seconds_sum 0.5\nwait_seconds_count 1\nwait_seconds_bucket{le=\"+Inf\"} 1\n# EOF\n";
    assert_eq!(plain_text(openmetrics), plain);
}
