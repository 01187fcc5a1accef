//! The report of a usage log, for static routes that read `usage_log`: its period, its groups and its newest records, by
//! the query of the request.

use super::app_state::AppState;
use crate::domain::{Fault, FaultKind, RequestHead, Tree, UsageBucket, UsageGroup, UsageReport, UsageSum};
use crate::mapping::config::telemetry::UsageLogPlan;
use crate::telemetry::LogFile;
use crate::telemetry::usage_reader::{ReadExtent, ReadLimits, read_lines};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

const LIMITS: ReadLimits = ReadLimits { log_bytes: 64 << 20, line_bytes: 64 << 10 };
/// Records of a response, if the client does not request another number, and at most.
const DEFAULT_RECORDS: usize = 200;
const MAX_RECORDS: i64 = 10_000;
/// Bytes of the records of a response.
const MAX_RECORD_BYTES: usize = 8 << 20;

/// What a client requests.
#[derive(Debug)]
struct UsageQuery {
    start: i64,
    end: i64,
    group: Option<UsageGroup>,
    limit: usize,
}

/// A record, as far as it is summed up. Other programs may have written to the file: every member may be missing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordedTurn {
    ts_ms: i64,
    estimated: bool,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    total_tokens: Option<i64>,
}

/// Reads the log on a thread for blocking work. One client at a time: the others wait.
pub async fn read(log: &UsageLogPlan, app_state: &AppState, head: &RequestHead) -> Result<UsageReport, Fault> {
    let query = UsageQuery::of(head)?;
    let internal = |detail: String| {
        tracing::error!(path = log.path, error = detail, "the usage log cannot be read");
        Fault::new(FaultKind::Internal, "the usage log cannot be read")
    };
    let file = file_of(log);
    let reader = app_state.usage_log_reader.clone().acquire_owned().await.map_err(|e| internal(e.to_string()))?;
    let read = tokio::task::spawn_blocking(move || {
        let report = report(&file, &query);
        drop(reader);
        report
    });
    match read.await {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(error)) => Err(internal(error.to_string())),
        Err(error) => Err(internal(error.to_string())),
    }
}

fn report(file: &LogFile, query: &UsageQuery) -> std::io::Result<UsageReport> {
    let mut sum = UsageSum::default();
    let mut buckets: BTreeMap<i64, UsageSum> = BTreeMap::new();
    let mut newest: VecDeque<Vec<u8>> = VecDeque::new();
    let mut newest_bytes = 0;
    let extent = read_lines(file, LIMITS, |line| {
        // A line that is not a record, such as one that was cut by a full disk, is skipped.
        let Ok(turn) = serde_json::from_slice::<RecordedTurn>(line) else { return };
        if turn.ts_ms < query.start || turn.ts_ms > query.end {
            return;
        }
        let tokens = turn.tokens();
        sum.add(&tokens);
        if let Some(group) = query.group {
            buckets.entry(group.bucket_of(turn.ts_ms)).or_default().add(&tokens);
        }
        newest_bytes += line.len();
        newest.push_back(line.to_vec());
        while newest.len() > query.limit || newest_bytes > MAX_RECORD_BYTES {
            newest_bytes -= newest.pop_front().map_or(newest_bytes, |oldest| oldest.len());
        }
    })?;
    let records: Vec<Tree> = newest.iter().filter_map(|line| Tree::parse(line).ok()).collect();
    Ok(UsageReport {
        start: query.start,
        end: query.end,
        group: query.group,
        sum,
        buckets: buckets.into_iter().map(|(start, sum)| UsageBucket { start, sum }).collect(),
        records: Tree::from(records),
        complete: extent == ReadExtent::Complete,
    })
}

impl RecordedTurn {
    fn tokens(&self) -> UsageSum {
        let (input, output) = (self.input_tokens.unwrap_or(0), self.output_tokens.unwrap_or(0));
        let total = self.total_tokens.unwrap_or_else(|| input.saturating_add(output));
        UsageSum { requests: 1, estimated: i64::from(self.estimated), input, output, total }
    }
}

impl UsageQuery {
    fn of(head: &RequestHead) -> Result<UsageQuery, Fault> {
        let parameter = |name: &str| head.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let time = |name: &str| parameter(name).map(|text| parse_time(text).ok_or_else(|| invalid(name, TIME)));
        let group = parameter("group").map(|text| UsageGroup::from_name(text).ok_or_else(|| invalid("group", GROUP)));
        let limit = parameter("limit").map(|text| text.parse::<i64>().map_err(|_| invalid("limit", "a whole number")));
        let start = time("start").transpose()?.unwrap_or(0);
        let end = time("end").transpose()?;
        if end.is_some_and(|end| end < start) {
            return Err(invalid("end", "at or after `start`"));
        }
        Ok(UsageQuery {
            start,
            end: end.unwrap_or_else(|| Timestamp::now().as_millisecond()),
            group: group.transpose()?,
            limit: limit.transpose()?.map_or(DEFAULT_RECORDS, |limit| limit.clamp(1, MAX_RECORDS) as usize),
        })
    }
}

const TIME: &str = "a date, such as `2026-01-31` or `2026-01-31T09:00:00Z`, or milliseconds since 1970";
const GROUP: &str = "`hour` or `day`";

fn invalid(name: &str, expected: &str) -> Fault {
    Fault::new(FaultKind::Invalid, format!("`{name}` must be {expected}")).param(name)
}

/// Milliseconds since 1970. A time without a zone is in UTC.
fn parse_time(text: &str) -> Option<i64> {
    let of_utc = |time: DateTime| time.to_zoned(TimeZone::UTC).ok().map(|time: Zoned| time.timestamp());
    let time = text.parse::<Timestamp>().ok();
    let time = time.or_else(|| text.parse::<Date>().ok().and_then(|date| of_utc(date.at(0, 0, 0, 0))));
    let time = time.or_else(|| text.parse::<DateTime>().ok().and_then(of_utc));
    text.parse::<i64>().ok().or_else(|| time.map(Timestamp::as_millisecond))
}

/// The file that records are written to and read from.
pub fn file_of(log: &UsageLogPlan) -> LogFile {
    LogFile { path: PathBuf::from(&log.path), max_bytes: log.max_bytes }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/server_usage_report.rs"]
mod tests;
