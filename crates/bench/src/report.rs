//! The table of ratios: median and spread over the rounds, and the verdict.

use crate::measure::{WAYS, Way};
use crate::rows::{Api, Measure, Row};
use crate::targets::Targets;

/// What one row of one round measured for one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// CPU microseconds of the process per frame or request.
    pub cpu_each: f64,
    /// Frames or requests per second.
    pub per_second: f64,
    /// The share of its core.
    pub core: f64,
    /// Median and 99th percentile in microseconds.
    pub latency: (f64, f64),
    pub first_byte: (f64, f64),
    /// MiB when idle, and KiB for each open stream.
    pub memory: (f64, f64),
}

pub type Samples = Vec<(&'static str, Way, usize, Sample)>;

/// Prints the table; false if a row is over its limit.
pub fn print(rows: &[&Row], samples: &Samples, rounds: usize, targets: &Targets, backend: Api) -> bool {
    println!();
    println!(
        "Ratios to the bare pass-through in the same round: median (lowest–highest) of {rounds} rounds. Backend: {}.",
        backend.name()
    );
    println!();
    println!("| row | pass-through | chat | responses | limit | goal | verdict |");
    println!("|---|--:|--:|--:|--:|--:|---|");
    let mut passed = true;
    let mut details = Vec::new();
    for row in rows {
        let of = |way: Way| -> Vec<Sample> {
            samples
                .iter()
                .filter(|(name, w, _, _)| *name == row.name && *w == way)
                .map(|(_, _, _, sample)| *sample)
                .collect()
        };
        let floor = of(Way::Pass);
        let (limit, goal) = (targets.limit(row.name), targets.goal(row.name));
        let mut cells = Vec::new();
        let mut medians = Vec::new();
        for api in [Api::Chat, Api::Responses] {
            let ratios: Vec<f64> = of(Way::Gateway(api))
                .iter()
                .zip(&floor)
                .map(|(ours, floor)| compared(row, ours) / compared(row, floor))
                .collect();
            let ratio = Spread::of(&ratios);
            cells.push(format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.lowest, ratio.highest));
            medians.push((api, ratio.median));
        }
        let over: Vec<&str> = medians
            .iter()
            .filter(|(api, median)| limit(*api).is_some_and(|limit| *median > limit))
            .map(|(api, _)| api.name())
            .collect();
        passed &= over.is_empty();
        let verdict = match goal {
            _ if !over.is_empty() => format!("OVER THE LIMIT ({})", over.join(", ")),
            Some(goal) if medians.iter().all(|(_, median)| *median <= goal) => "goal reached".to_owned(),
            Some(_) => "within the limit".to_owned(),
            None => "no goal".to_owned(),
        };
        let shown = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        println!(
            "| {} | {} | {} | {} | {} · {} | {} | {verdict} |",
            row.name,
            absolute(row, &floor),
            cells[0],
            cells[1],
            shown(limit(Api::Chat)),
            shown(limit(Api::Responses)),
            shown(goal),
        );
        for way in WAYS {
            details.push(detail(row, way, &of(way)));
        }
    }
    println!();
    println!(
        "| row | way | CPU each | per second | of a core | first byte p50 / p99 | frame p50 / p99 | memory idle, per stream |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    for line in details {
        println!("{line}");
    }
    passed
}

/// The number that a row compares. Memory: of 1,000 open streams in all.
fn compared(row: &Row, sample: &Sample) -> f64 {
    match row.measure {
        Measure::CpuPerRequest | Measure::CpuPerFrame => sample.cpu_each,
        Measure::Latency => sample.latency.0,
        Measure::Memory => sample.memory.0 + sample.memory.1 * row.connections as f64 / 1024.0,
    }
}

fn absolute(row: &Row, samples: &[Sample]) -> String {
    let median = Spread::of(&samples.iter().map(|sample| compared(row, sample)).collect::<Vec<_>>()).median;
    match row.measure {
        Measure::Memory => format!("1 ({median:.0} MiB)"),
        _ => format!("1 ({median:.1} µs)"),
    }
}

fn detail(row: &Row, way: Way, samples: &[Sample]) -> String {
    let median = |value: fn(&Sample) -> f64| Spread::of(&samples.iter().map(value).collect::<Vec<_>>()).median;
    let name = match way {
        Way::Pass => "pass-through",
        Way::Gateway(api) => api.name(),
    };
    let begin = format!("| {} | {name} |", row.name);
    if row.measure == Measure::Memory {
        return format!("{begin} | | | | | {:.0} MiB, {:.0} KiB |", median(|s| s.memory.0), median(|s| s.memory.1));
    }
    let frames = match row.measure {
        Measure::CpuPerRequest => String::new(),
        _ => format!("{:.0} / {:.0} µs", median(|s| s.latency.0), median(|s| s.latency.1)),
    };
    let first = match median(|s| s.first_byte.0) {
        0.0 => String::new(),
        first => format!("{first:.0} / {:.0} µs", median(|s| s.first_byte.1)),
    };
    format!(
        "{begin} {:.1} µs | {:.0} | {:.0} % | {first} | {frames} | |",
        median(|s| s.cpu_each),
        median(|s| s.per_second),
        median(|s| s.core * 100.0),
    )
}

struct Spread {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        Spread { median: at(sorted.len() / 2), lowest: at(0), highest: at(sorted.len().saturating_sub(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_and_the_ends() {
        let spread = Spread::of(&[3.0, 1.0, 2.0]);
        assert_eq!((spread.lowest, spread.median, spread.highest), (1.0, 2.0, 3.0));
    }
}
