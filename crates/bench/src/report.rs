//! The table of ratios: median and spread over the rounds, and the verdict.

use crate::measure::Way;
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

/// What was measured, and how it is judged.
pub struct Table<'t> {
    pub rows: &'t [&'t Row],
    pub samples: &'t Samples,
    pub rounds: usize,
    pub targets: &'t Targets,
    pub backend: Api,
}

impl Table<'_> {
    /// False if a row is over its limit.
    pub fn print(&self) -> bool {
        let has_peer = self.samples.iter().any(|(_, way, _, _)| *way == Way::Peer);
        let (backend, rounds) = (self.backend.name(), self.rounds);
        println!();
        println!(
            "Ratios to the bare pass-through in the same round: median (lowest–highest) of {rounds} rounds. Backend: {backend}."
        );
        println!();
        let (peer, rule) = if has_peer { (" peer |", "--:|") } else { ("", "") };
        println!("| row | pass-through | chat | responses |{peer} limit | goal | verdict |");
        println!("|---|--:|--:|--:|{rule}--:|--:|---|");
        let verdicts: Vec<bool> = self.rows.iter().map(|row| self.print_ratios(row, has_peer)).collect();
        println!();
        println!(
            "| row | way | CPU each | per second | of a core | first byte p50 / p99 | frame p50 / p99 | memory idle, per stream |"
        );
        println!("|---|---|--:|--:|--:|--:|--:|--:|");
        for row in self.rows {
            for way in Way::ALL {
                let samples = self.of(row, way);
                if !samples.is_empty() {
                    println!("{}", detail(row, way, &samples.iter().map(|(_, sample)| *sample).collect::<Vec<_>>()));
                }
            }
        }
        verdicts.into_iter().all(|passed| passed)
    }

    /// Each with its round.
    fn of(&self, row: &Row, way: Way) -> Vec<(usize, Sample)> {
        let of = self.samples.iter().filter(|(name, w, _, _)| *name == row.name && *w == way);
        of.map(|(_, _, round, sample)| (*round, *sample)).collect()
    }

    /// To the pass-through in the same round.
    fn ratio(&self, row: &Row, way: Way) -> Spread {
        let floor = self.of(row, Way::Pass);
        let floor_of = |round: usize| floor.iter().find(|(r, _)| *r == round).map(|(_, sample)| compared(row, sample));
        let ratios: Vec<f64> = self
            .of(row, way)
            .iter()
            .filter_map(|(round, sample)| Some(compared(row, sample) / floor_of(*round)?))
            .collect();
        Spread::of(&ratios)
    }

    fn print_ratios(&self, row: &Row, has_peer: bool) -> bool {
        let (limit, goal) = (self.targets.limit(row.name), self.targets.goal(row.name));
        let medians = [Api::Chat, Api::Responses].map(|api| (api, self.ratio(row, Way::Gateway(api)).median));
        let over: Vec<&str> = medians
            .iter()
            .filter(|(api, median)| limit(*api).is_some_and(|limit| *median > limit))
            .map(|(api, _)| api.name())
            .collect();
        let verdict = match goal {
            _ if !over.is_empty() => format!("OVER THE LIMIT ({})", over.join(", ")),
            Some(goal) if medians.iter().all(|(_, median)| *median <= goal) => "goal reached".to_owned(),
            Some(_) => "within the limit".to_owned(),
            None => "no goal".to_owned(),
        };
        let shown = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let cell = |way: Way| {
            let ratio = self.ratio(row, way);
            match ratio.median.is_nan() {
                true => "fails".to_owned(),
                false => format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.lowest, ratio.highest),
            }
        };
        let peer = if has_peer { format!(" {} |", cell(Way::Peer)) } else { String::new() };
        let floor: Vec<Sample> = self.of(row, Way::Pass).iter().map(|(_, sample)| *sample).collect();
        println!(
            "| {} | {} | {} | {} |{peer} {} · {} | {} | {verdict} |",
            row.name,
            absolute(row, &floor),
            cell(Way::Gateway(Api::Chat)),
            cell(Way::Gateway(Api::Responses)),
            shown(limit(Api::Chat)),
            shown(limit(Api::Responses)),
            shown(goal),
        );
        over.is_empty()
    }
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
        Way::Peer => "peer",
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
