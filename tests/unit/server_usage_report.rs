use super::*;
use std::fs;

fn query(parameters: &[(&str, &str)]) -> Result<UsageQuery, Fault> {
    let query = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    UsageQuery::of(&RequestHead { query, ..RequestHead::default() })
}

fn report_of(lines: &str, parameters: &[(&str, &str)]) -> UsageReport {
    let dir = tempfile::tempdir().unwrap();
    let file = LogFile { path: dir.path().join("usage.ndjson"), max_bytes: 1 << 20 };
    fs::write(&file.path, lines).unwrap();
    report(&file, &query(parameters).unwrap()).unwrap()
}

/// Three turns: at 0 ms, within the second hour, and on the second day.
const LINES: &str = r#"{"ts_ms":0,"input_tokens":1,"output_tokens":2,"total_tokens":3,"estimated":false}
{"ts_ms":3700000,"input_tokens":10,"output_tokens":20,"estimated":true}
{"ts_ms":
{"ts_ms":86400000,"input_tokens":null,"output_tokens":200,"total_tokens":200}
"#;

#[test]
fn the_turns_of_a_period_are_summed_up() {
    let all = report_of(LINES, &[]);
    assert_eq!(all.sum, UsageSum { requests: 3, estimated: 1, input: 11, output: 222, total: 233 });
    assert_eq!(all.records.as_list().unwrap().len(), 3, "a line that was cut is skipped");
    assert!(all.complete && all.buckets.is_empty());
    let one = report_of(LINES, &[("start", "1"), ("end", "1970-01-01T02:00:00Z")]);
    assert_eq!((one.start, one.end, one.sum.requests), (1, 7_200_000, 1));
    assert_eq!(report_of(LINES, &[("start", "1970-01-02")]).sum.output, 200);
}

#[test]
fn turns_are_grouped_by_hour_or_day() {
    let starts = |report: UsageReport| report.buckets.iter().map(|b| (b.start, b.sum.requests)).collect::<Vec<_>>();
    assert_eq!(starts(report_of(LINES, &[("group", "hour")])), [(0, 1), (3_600_000, 1), (86_400_000, 1)]);
    assert_eq!(starts(report_of(LINES, &[("group", "day")])), [(0, 2), (86_400_000, 1)]);
}

#[test]
fn the_newest_records_are_kept_within_the_limit() {
    let limited = report_of(LINES, &[("limit", "2")]);
    let times: Vec<i64> =
        limited.records.as_list().unwrap().iter().map(|r| r.get("ts_ms").unwrap().as_i64().unwrap()).collect();
    assert_eq!(times, [3_700_000, 86_400_000]);
    assert_eq!(limited.sum.requests, 3);
    for (limit, records) in [("0", 1), ("-7", 1), ("10000000", 3)] {
        assert_eq!(report_of(LINES, &[("limit", limit)]).records.as_list().unwrap().len(), records);
    }
}

#[test]
fn invalid_parameters_are_faults_with_their_name() {
    for (name, value) in [("start", "soon"), ("end", ""), ("group", "week"), ("limit", "many")] {
        let fault = query(&[(name, value)]).unwrap_err();
        assert_eq!((fault.kind, fault.param.as_deref()), (FaultKind::Invalid, Some(name)));
    }
}

#[test]
fn sums_do_not_overflow() {
    let huge = format!("{{\"total_tokens\":{}}}\n", i64::MAX).repeat(2);
    assert_eq!(report_of(&huge, &[]).sum.total, i64::MAX);
}
