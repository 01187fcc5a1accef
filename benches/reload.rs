//! What a reload costs: `cargo bench --bench reload`. Only ratios within one run mean anything.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use divan::{Bencher, black_box};
use reframe::mapping::{FileText, Overrides, Plan, load, load_after};
use reframe::reload::{Base, Layers, embedded, read};
use reframe::verify;
use std::sync::LazyLock;

static FILES: LazyLock<Vec<FileText>> = LazyLock::new(embedded::files);
static PLAN: LazyLock<Plan> = LazyLock::new(|| load(&FILES).plan.expect("the embedded set loads"));

fn main() {
    divan::main();
}

/// All files of the shipped set, twice: until two readings agree.
#[divan::bench]
fn read_the_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings");
    let layers = Layers { base: Base::Folder(folder.into()), add: Vec::new() };
    black_box(read(&layers).expect("it can be read"));
}

/// The first generation: every schema is compiled.
#[divan::bench]
fn load_the_first_time() {
    black_box(load(&FILES));
}

/// A later one, whose schemas have not changed.
#[divan::bench]
fn load_again(bencher: Bencher) {
    let earlier = &*PLAN;
    bencher.bench(|| load_after(&FILES, Some(earlier), &Overrides::default()));
}

/// The tests beside the mappings.
#[divan::bench]
fn run_its_tests(bencher: Bencher) {
    let plan = &*PLAN;
    bencher.bench(|| verify::run_all(plan));
}

/// Frames proven, tests run, transcripts rehearsed.
#[divan::bench]
fn try_it_out(bencher: Bencher) {
    let plan = &*PLAN;
    bencher.bench(|| verify::findings(plan));
}
