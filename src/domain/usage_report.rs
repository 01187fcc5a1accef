//! What a usage log recorded in a period, for the endpoints that report it.

use super::{Tree, named_enum};

named_enum! {
    /// The length of the buckets of a report.
    pub enum UsageGroup {
        Hour = "hour",
        Day = "day",
    }
}

/// The turns of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageReport {
    /// The period, in milliseconds since 1970.
    pub start: i64,
    pub end: i64,
    /// How the turns are grouped into buckets, if the client requests it.
    pub group: Option<UsageGroup>,
    pub sum: UsageSum,
    /// The buckets that have turns, by time.
    pub buckets: Vec<UsageBucket>,
    /// The newest records of the period, by time.
    pub records: Tree,
    /// Whether the whole log was read. Of a large one, only its newest part is.
    pub complete: bool,
}

/// The turns that begin in one hour or on one day, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageBucket {
    /// In milliseconds since 1970.
    pub start: i64,
    pub sum: UsageSum,
}

/// The tokens of several turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSum {
    pub requests: i64,
    /// How many of them have estimated counts.
    pub estimated: i64,
    pub input: i64,
    pub output: i64,
    pub total: i64,
}

impl UsageGroup {
    /// The start of the bucket that contains a time.
    pub fn bucket_of(self, time_ms: i64) -> i64 {
        let length = match self {
            UsageGroup::Hour => 3_600_000,
            UsageGroup::Day => 86_400_000,
        };
        time_ms.saturating_sub(time_ms.rem_euclid(length))
    }
}

impl UsageSum {
    /// A file may contain any number, so sums do not overflow.
    pub fn add(&mut self, turn: &UsageSum) {
        let add = |sum: &mut i64, more: i64| *sum = sum.saturating_add(more);
        add(&mut self.requests, turn.requests);
        add(&mut self.estimated, turn.estimated);
        add(&mut self.input, turn.input);
        add(&mut self.output, turn.output);
        add(&mut self.total, turn.total);
    }
}
