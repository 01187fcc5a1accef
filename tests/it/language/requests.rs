//! What clients send, and what backends are sent.

mod bugs;
mod head;
mod media;
mod models;
mod reasoning;
mod rejected_values;
mod sent;
mod tool_choice;

use crate::support::suites;
use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;

/// The embedded set with these files (path and text) added, or in place of its own, but without its tests.
fn try_load(files: &[(&str, &str)]) -> Result<Plan, String> {
    let is_kept = |f: &SourceFile| !f.name.ends_with(".test.yaml") && !files.iter().any(|(name, _)| *name == f.name);
    let mut all: Vec<SourceFile> = embedded::files().into_iter().filter(is_kept).collect();
    all.extend(files.iter().map(|(name, text)| SourceFile {
        name: (*name).into(),
        shown: (*name).into(),
        layer: 0,
        text: (*text).into(),
    }));
    let loaded = load(&all);
    loaded.plan.ok_or_else(|| render_all(&loaded.diagnostics, &loaded.sources, false))
}

fn plan(files: &[(&str, &str)]) -> Plan {
    try_load(files).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

/// Why the set does not load.
fn diagnostics(files: &[(&str, &str)]) -> String {
    try_load(files).map_or_else(|diagnostics| diagnostics, |_| panic!("the set loads"))
}

/// The number of tests that pass, and the messages of the others.
fn run_tests(files: &[(&str, &str)]) -> (usize, Vec<String>) {
    let reports = suites::run_all(&plan(files));
    let passed = reports.iter().map(|report| report.passed).sum();
    (passed, reports.into_iter().flat_map(|report| report.failures).collect())
}

fn assert_pass(count: usize, files: &[(&str, &str)]) {
    assert_eq!(run_tests(files), (count, Vec::new()));
}
