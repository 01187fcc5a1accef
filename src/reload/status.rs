//! What the gateway tells about itself: the generation that serves, those that still have turns, what was refused last.

use super::{Cause, Generation, NeedsRestart, Outcome, Refused, Store};
use crate::diagnostics;
use crate::diagnostics::{Diagnostic, Severity, Sources};
use reframe_json::Tree;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a store remembers beside the generation that serves.
pub struct History {
    started: SystemTime,
    /// All that may still have turns; those without are gone.
    generations: Vec<Weak<Generation>>,
    /// The last set that was refused, by the hash of its texts, or of why they cannot be read.
    refused: Option<(u64, Arc<Refused>)>,
    /// Since then the files are those of a generation again.
    mended: Option<SystemTime>,
    reloads: Reloads,
}

/// How often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloads {
    pub applied: u64,
    pub refused: u64,
    pub unchanged: u64,
}

impl History {
    pub fn new(first: &Arc<Generation>) -> History {
        History {
            started: SystemTime::now(),
            generations: vec![Arc::downgrade(first)],
            refused: None,
            mended: None,
            reloads: Reloads::default(),
        }
    }

    /// How many turns stay on an earlier generation.
    pub fn applied(&mut self, next: &Arc<Generation>) -> usize {
        self.reloads.applied += 1;
        self.mend();
        self.generations.retain(|g| g.strong_count() > 0);
        let staying = self.alive().iter().map(|g| g.turns()).sum();
        self.generations.push(Arc::downgrade(next));
        staying
    }

    /// True if something bad was taken back. A watch looks whenever it may have to, which is not worth counting.
    pub fn unchanged(&mut self, cause: Cause) -> bool {
        self.reloads.unchanged += u64::from(cause != Cause::Watch);
        let bad = self.refused.is_some() && self.mended.is_none();
        self.mend();
        bad && cause == Cause::Watch
    }

    pub fn refused(&mut self, hash: u64, refused: &Arc<Refused>) {
        self.reloads.refused += 1;
        self.refused = Some((hash, refused.clone()));
        self.mended = None;
    }

    /// Whether this is the set that was refused last, and nothing good came after it.
    pub fn is_refused(&self, hash: u64) -> Option<Arc<Refused>> {
        let (known, refused) = self.refused.as_ref().filter(|_| self.mended.is_none())?;
        (*known == hash).then(|| refused.clone())
    }

    fn mend(&mut self) {
        if self.refused.is_some() && self.mended.is_none() {
            self.mended = Some(SystemTime::now());
        }
    }

    fn alive(&self) -> Vec<Arc<Generation>> {
        self.generations.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Store {
    pub fn reloads(&self) -> Reloads {
        self.history().reloads
    }

    /// Turns under way, over all generations.
    pub fn turns(&self) -> usize {
        self.history().alive().iter().map(|g| g.turns()).sum()
    }

    /// Generations that are still in memory.
    pub fn alive(&self) -> usize {
        self.history().generations.iter().filter(|g| g.strong_count() > 0).count()
    }

    /// The set that stands in the files and cannot be used; none once it is mended.
    pub fn refused_now(&self) -> Option<Arc<Refused>> {
        let history = self.history();
        history.refused.as_ref().filter(|_| history.mended.is_none()).map(|(_, refused)| refused.clone())
    }

    /// All of it, as one document.
    pub fn status(&self, version: &str) -> Tree {
        let current = self.current();
        let history = self.history();
        let Reloads { applied, refused, unchanged } = history.reloads;
        let alive = history.alive();
        let generations: Vec<Tree> = alive.iter().map(|g| brief(g)).collect();
        let turns: usize = alive.iter().map(|g| g.turns()).sum();
        let last_refused = history.refused.as_ref().map_or(Tree::Null, |(_, refused)| {
            let mut told = refusal(refused);
            told.insert("mended_at", history.mended.map_or(Tree::Null, |at| Tree::from(time_of(at))));
            told
        });
        let broken = history.refused.is_some() && history.mended.is_none();
        Tree::map([
            ("version", Tree::from(version)),
            ("started_at", Tree::from(time_of(history.started))),
            // Is what stands in the files what serves?
            ("files", Tree::from(if broken { "refused" } else { "applied" })),
            ("generation", whole(&current)),
            ("last_refused", last_refused),
            ("needs_restart", restarts(&current.needs_restart)),
            ("turns", Tree::from(turns as i64)),
            ("generations", Tree::from(generations)),
            (
                "reloads",
                Tree::map([
                    ("applied", Tree::from(applied as i64)),
                    ("refused", Tree::from(refused as i64)),
                    ("unchanged", Tree::from(unchanged as i64)),
                ]),
            ),
        ])
    }
}

impl Outcome {
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Applied(_) => "applied",
            Outcome::Unchanged(_) => "unchanged",
            Outcome::Refused(_) => "refused",
        }
    }

    /// For whoever asked. `serving` is the generation that serves now.
    pub fn told(&self, serving: &Generation) -> Tree {
        let mut told = Tree::map([("outcome", Tree::from(self.word()))]);
        told.insert("generation", brief(serving));
        match self {
            Outcome::Applied(generation) | Outcome::Unchanged(generation) => {
                told.insert("needs_restart", restarts(&generation.needs_restart));
            }
            Outcome::Refused(refused) => told.insert("refused", refusal(refused)),
        }
        told
    }
}

fn brief(generation: &Generation) -> Tree {
    Tree::map([
        ("number", Tree::from(generation.number as i64)),
        ("hash", Tree::from(generation.digest.as_str())),
        ("applied_at", Tree::from(time_of(generation.applied_at))),
        ("turns", Tree::from(generation.turns() as i64)),
    ])
}

fn whole(generation: &Generation) -> Tree {
    let mut told = brief(generation);
    told.insert("cause", Tree::from(generation.cause.word()));
    told.insert("took_ms", Tree::from(generation.took_ms as i64));
    let sources = &generation.plan.sources;
    let files = sources.iter().map(|(_, s)| Tree::from(s.shown.as_str())).collect::<Vec<_>>();
    told.insert("files", Tree::from(files));
    told.insert("warnings", findings(&generation.warnings, sources));
    told
}

fn refusal(refused: &Refused) -> Tree {
    let refusal = &refused.refusal;
    let errors = refusal.diagnostics.iter().filter(|d| d.severity() == Severity::Error).count();
    Tree::map([
        ("at", Tree::from(time_of(refused.at))),
        ("cause", Tree::from(refused.cause.word())),
        ("hash", refused.digest.as_deref().map_or(Tree::Null, Tree::from)),
        ("took_ms", Tree::from(refused.took_ms as i64)),
        ("reason", Tree::from(refusal.brief())),
        ("errors", Tree::from(errors as i64)),
        ("diagnostics", findings(&refusal.diagnostics, &refusal.sources)),
    ])
}

/// More than this is one mistake told many times; the log has them all.
const MOST: usize = 100;

fn findings(diagnostics: &[Diagnostic], sources: &Sources) -> Tree {
    Tree::from(diagnostics.iter().take(MOST).map(|d| diagnostics::told(d, sources)).collect::<Vec<_>>())
}

fn restarts(needs: &[NeedsRestart]) -> Tree {
    let told = |need: &NeedsRestart| {
        Tree::map([
            ("what", Tree::from(need.what.as_str())),
            ("place", need.place.as_deref().map_or(Tree::Null, Tree::from)),
            ("running", Tree::from(need.running.as_str())),
            ("wanted", Tree::from(need.wanted.as_str())),
        ])
    };
    Tree::from(needs.iter().map(told).collect::<Vec<_>>())
}

/// `2026-01-01T00:00:00.007Z`
fn time_of(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their odd day at the end; 719 468 days before 1970 the first of them began.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_time_is_told_as_people_and_machines_read_it() {
        let at = |seconds: u64, millis: u64| {
            time_of(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399, 999), "2000-02-28T23:59:59.999Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_767_225_600, 7), "2026-01-01T00:00:00.007Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }
}
