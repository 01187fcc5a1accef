//! What the mapping language can express: constructs (`a01` to `a20`), combinations of policies (`b01` to `b06`), and
//! mistakes that must not come back (`c01` to `c24`). Each has tests with its number in their names.

mod advice;
mod answers;
mod calls;
mod combinations;
mod contract;
mod index_law;
mod inline;
mod layers;
mod renames;
mod requests;
mod rules;
mod set_commands;
mod turns;
mod unread_members;
mod witnesses;

use crate::tidy::rust_files;
use std::collections::BTreeSet;
use std::path::Path;

fn numbers() -> impl Iterator<Item = String> {
    [('a', 20), ('b', 6), ('c', 24)]
        .into_iter()
        .flat_map(|(letter, last)| (1..=last).map(move |number| format!("{letter}{number:02}")))
}

/// The beginnings of the names of all tests, up to the first `_`.
fn tested() -> BTreeSet<String> {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut files);
    let texts = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts
        .flat_map(|text| {
            let tests = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split_once('_'));
            tests.map(|(number, _)| number.to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_number_has_a_test() {
    let tested = tested();
    let missing: Vec<String> = numbers().filter(|number| !tested.contains(number)).collect();
    assert!(missing.is_empty(), "without a test: {missing:?}");
}
