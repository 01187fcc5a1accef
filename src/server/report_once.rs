//! Reports that are worth one log line, however often they occur: what a backend sends once, it sends in every chunk.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// What was reported since the current generation is in use. An edit of the mappings may have changed what is reported.
#[derive(Debug, Default)]
pub struct ReportOnce(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    generation: u64,
    reports: HashSet<String>,
}

/// A backend can invent any number of names.
const MAX_REPORTS: usize = 200;

impl ReportOnce {
    /// Whether this was not reported yet in this generation. Indexes do not distinguish reports.
    pub fn is_first(&self, generation: u64, backend: &str, detail: &str) -> bool {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generation > reported.generation {
            *reported = Reported { generation, reports: HashSet::new() };
        }
        reported.reports.len() < MAX_REPORTS
            && reported.reports.insert(format!("{backend}: {}", without_indexes(detail)))
    }
}

/// `choices[3].delta` → `choices[].delta`
fn without_indexes(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|c| {
            match c {
                '[' => inside = true,
                ']' => inside = false,
                _ => {}
            }
            !(inside && c.is_ascii_digit())
        })
        .collect()
}

#[cfg(test)]
#[path = "../../tests/unit/server_report_once.rs"]
mod tests;
