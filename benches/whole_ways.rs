//! The whole ways, for every backend and dialect: `cargo bench --bench whole_ways`. Only ratios within one run are
//! meaningful. Where each measurement begins and ends: benches/end_to_end/mod.rs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The cost gate uses the rest of it.
#[allow(dead_code)]
mod end_to_end;

use divan::{AllocProfiler, Bencher};
use end_to_end::{Case, PLAN, Way, cases};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn bench(bencher: Bencher, case: Case) {
    let repetition = case.repetition(&PLAN);
    bencher.bench_local(repetition);
}

#[divan::bench(args = cases(Way::TextDelta))]
fn text_delta(bencher: Bencher, case: Case) {
    bench(bencher, case);
}

#[divan::bench(args = cases(Way::UnknownDelta))]
fn unknown_delta(bencher: Bencher, case: Case) {
    bench(bencher, case);
}

#[divan::bench(args = cases(Way::ArgumentDelta))]
fn argument_delta(bencher: Bencher, case: Case) {
    bench(bencher, case);
}

#[divan::bench(args = cases(Way::Request))]
fn request(bencher: Bencher, case: Case) {
    bench(bencher, case);
}

#[divan::bench(args = cases(Way::Answer))]
fn answer(bencher: Bencher, case: Case) {
    bench(bencher, case);
}

/// The yardstick: the same text deltas without cached frames.
#[divan::bench(args = cases(Way::TextDelta))]
fn text_delta_interpreted(bencher: Bencher, case: Case) {
    let repetition = case.interpreted(&PLAN);
    bencher.bench_local(repetition);
}
