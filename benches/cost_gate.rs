//! The cost gate: what the whole ways may cost in allocations and instructions, and that cost does not grow with the
//! length of a turn or the size of a set. `tests/all.d/cost-gate` runs it.
//!
//! - `cost_gate check` compares with benches/budget.txt and fails beyond 3 % above it.
//! - `cost_gate update` writes today's numbers into it.
//! - `cost_gate repeat NAME` repeats one way: for `valgrind --tool=callgrind --toggle-collect='*counted*'`.
//!
//! Counts, not times: they are the same on a busy machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

// The benches use the rest of it.
#[allow(dead_code)]
mod end_to_end;
mod gate;

use gate::budget::{Budget, Costs};
use gate::{Subject, growth, instructions};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static ALLOC: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A turn in progress has caches and buffers of its final size after these.
const WARM_UP: usize = 300;
const REPETITIONS: usize = 200;

fn main() -> ExitCode {
    let command = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    match command.as_deref() {
        Some("check") => check(),
        Some("update") => {
            let budget = Budget { rustc: instructions::rustc_version(), costs: measure() };
            budget.write();
            ExitCode::SUCCESS
        }
        // Run by `instructions::count` in valgrind; with a name, for a profile of one way.
        Some("repeat") => {
            let name = std::env::args().skip_while(|argument| argument != "repeat").nth(1).unwrap_or_default();
            for subject in Subject::all().into_iter().filter(|subject| subject.name().starts_with(&name)) {
                let mut repetition = subject.repetition();
                (0..WARM_UP).for_each(|_| repetition());
                instructions::counted(&mut || (0..REPETITIONS).for_each(|_| repetition()));
            }
            ExitCode::SUCCESS
        }
        _ => {
            println!("cost_gate: run it with `check` or `update`, or with tests/all.d/cost-gate");
            ExitCode::SUCCESS
        }
    }
}

fn check() -> ExitCode {
    let budget = Budget::read();
    let costs = measure();
    let mut failures = budget.compare(&costs, &instructions::rustc_version());
    failures.extend(growth::turn_failures());
    failures.extend(growth::set_failures(&costs));
    for failure in &failures {
        println!("{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure() -> Costs {
    let subjects = Subject::all();
    let allocations = subjects.iter().map(|subject| (subject.name(), allocations(subject))).collect();
    Costs { allocations, instructions: instructions::count(&subjects, REPETITIONS) }
}

/// Allocations of one repetition, on average: buffers that double are a fraction.
fn allocations(subject: &Subject) -> f64 {
    let mut repetition = subject.repetition();
    (0..WARM_UP).for_each(|_| repetition());
    let region = Region::new(ALLOC);
    (0..REPETITIONS).for_each(|_| repetition());
    let change = region.change();
    (change.allocations + change.reallocations) as f64 / REPETITIONS as f64
}
