//! Parses the files of a set. YAML is parsed on two threads: it takes a third of a reload.

use super::field_reader::LoadContext;
use super::files::MappingFiles;
use super::layout::SetFile;
use super::yaml::{self, Node};
use crate::diagnostics::{Diagnostic, FileId, Findings, Sources};
use crate::domain::WorkBudget;
use crate::mapping::load::SourceFile;
use crate::mapping::two_threads;
use std::collections::HashMap;

/// How many bytes of a file are parsed in one step of the budget.
const BYTES_PER_STEP: u64 = 8;

/// Fewer bytes are parsed sooner than a thread is started.
const WORTH_A_THREAD: usize = 16 * 1024;

/// The parsed files, by id.
pub type ParsedFiles = HashMap<FileId, Result<Node, Diagnostic>>;

/// Adds files to the sources, and parses them.
pub fn parse(
    files: &[SourceFile],
    sources: &mut Sources,
    parsed: &mut MappingFiles,
    findings: &Findings,
    budget: &WorkBudget,
) {
    let add = |file: &SourceFile| {
        sources.add_to_layer(file.layer, file.name.as_str(), file.shown.as_str(), file.text.clone())
    };
    let ids: Vec<FileId> = files.iter().map(add).collect();
    let cx = LoadContext { sources, findings, budget, selectors: Default::default() };
    let is_affordable = |(file, _): &(&SourceFile, FileId)| {
        budget.begin(&file.name, "parsing this file");
        budget.spend(file.text.len() as u64 / BYTES_PER_STEP)
    };
    let files: Vec<(&SourceFile, FileId)> = files.iter().zip(ids).filter(is_affordable).collect();
    let is_yaml = |file: &SourceFile| match SetFile::of(&file.name) {
        Some(SetFile::Schema | SetFile::Transcript) | None => false,
        Some(SetFile::Test) => !parsed.without_tests,
        Some(_) => true,
    };
    let texts = files.iter().filter(|(file, _)| is_yaml(file)).map(|(file, id)| (*id, &*file.text));
    let mut yaml = parse_yaml(&texts.collect::<Vec<_>>());
    for (file, id) in files {
        parsed.add(file, id, &mut yaml, cx);
    }
}

fn parse_yaml(files: &[(FileId, &str)]) -> ParsedFiles {
    // The largest first, so that both threads end at the same time.
    let mut files = files.to_vec();
    files.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    let parse = |at: usize| (files[at].0, yaml::try_parse(files[at].0, files[at].1));
    let in_turn = || (0..files.len()).map(parse).collect();
    if files.iter().map(|(_, text)| text.len()).sum::<usize>() < WORTH_A_THREAD {
        return in_turn();
    }
    two_threads::results(files.len(), parse).map_or_else(in_turn, |parsed| parsed.into_iter().collect())
}
