//! The cost of a reload: `cargo bench --bench reload`. Only ratios within one run are meaningful.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use divan::{Bencher, black_box};
use reframe::testing::mapping::{Overrides, Plan, SourceFile, load, load_with};
use reframe::testing::reload::{Base, Layers, embedded, read_set};
use reframe::testing::verify;
use std::sync::LazyLock;

static FILES: LazyLock<Vec<SourceFile>> = LazyLock::new(embedded::files);
static PLAN: LazyLock<Plan> = LazyLock::new(|| load(&FILES).plan.expect("the embedded set loads"));

fn main() {
    divan::main();
}

/// Reads all files of the shipped set twice, until two reads agree.
#[divan::bench]
fn read_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings");
    let layers = Layers { base: Base::Folder(folder.into()), add: Vec::new() };
    black_box(read_set(&layers).expect("it can be read"));
}

/// Loads the first generation: every schema is compiled.
#[divan::bench]
fn load_first_generation() {
    black_box(load(&FILES));
}

/// Loads a later generation with unchanged schemas.
#[divan::bench]
fn load_next_generation(bencher: Bencher) {
    let earlier = &*PLAN;
    bencher.bench(|| load_with(&FILES, Some(earlier), &Overrides::default()));
}

/// Runs the tests of the mappings.
#[divan::bench]
fn run_mapping_tests(bencher: Bencher) {
    let plan = &*PLAN;
    bencher.bench(|| {
        verify::suites(plan).iter().flat_map(|s| &s.cases).map(|case| verify::run(case, plan)).collect::<Vec<_>>()
    });
}

/// Verifies the frames, runs the tests and replays the transcripts.
#[divan::bench]
fn verify_the_set(bencher: Bencher) {
    let plan = &*PLAN;
    bencher.bench(|| verify::verify(plan));
}
