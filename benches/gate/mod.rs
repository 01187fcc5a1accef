//! The parts of the cost gate.

pub mod budget;
pub mod growth;
pub mod instructions;

use crate::end_to_end::{Case, PLAN, Repetition, Way, cases};

/// What the gate counts: a case, in the shipped set or in one that is ten times as large.
#[derive(Clone, Copy)]
pub struct Subject {
    pub case: Case,
    pub in_large_set: bool,
}

impl Subject {
    pub fn all() -> Vec<Subject> {
        let shipped = Way::ALL.into_iter().flat_map(cases).map(|case| Subject { case, in_large_set: false });
        shipped.chain(growth::CASES.into_iter().map(|case| Subject { case, in_large_set: true })).collect()
    }

    pub fn name(&self) -> String {
        let suffix = if self.in_large_set { growth::LARGE_SET } else { "" };
        format!("{}{suffix}", self.case)
    }

    pub fn repetition(&self) -> Repetition<'static> {
        self.case.repetition(if self.in_large_set { &growth::LARGE_PLAN } else { &PLAN })
    }
}
