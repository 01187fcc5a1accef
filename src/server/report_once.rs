//! Reports that are worth one log line, however often they occur: what a backend sends once, it sends in every chunk.

use crate::engine::unread::without_indexes;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was reported since the current generation is in use. An edit of the mappings may have changed what is reported.
#[derive(Debug, Default)]
pub struct ReportOnce(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    generation: u64,
    reports: HashSet<String>,
    /// How many turns of each backend were examined.
    examined: HashMap<String, usize>,
}

/// A backend can invent any number of names.
const MAX_REPORTS: usize = 200;
/// How many turns of a backend are compared with what its rules read. It takes as long as decoding them.
const EXAMINED_TURNS: usize = 20;

impl ReportOnce {
    /// Whether the events of this turn are examined for members that no rule reads: those of the first turns of each
    /// backend in a generation.
    pub fn examines_turn(&self, generation: u64, backend: &str) -> bool {
        let mut reported = self.of_generation(generation);
        let examined = reported.examined.entry(backend.to_owned()).or_default();
        *examined += 1;
        *examined <= EXAMINED_TURNS
    }

    fn of_generation(&self, generation: u64) -> MutexGuard<'_, Reported> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generation > reported.generation {
            *reported = Reported { generation, ..Reported::default() };
        }
        reported
    }

    /// Whether this was not reported yet in this generation. Indexes do not distinguish reports.
    pub fn is_first(&self, generation: u64, backend: &str, detail: &str) -> bool {
        let mut reported = self.of_generation(generation);
        reported.reports.len() < MAX_REPORTS
            && reported.reports.insert(format!("{backend}: {}", without_indexes(detail)))
    }
}

#[cfg(test)]
#[path = "../../tests/unit/server_report_once.rs"]
mod tests;
