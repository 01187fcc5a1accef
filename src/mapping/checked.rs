//! What of a set was checked before. A dialect with a profile that no route uses is not compiled again, and tests are
//! not run again, if they consist of files that a set without warnings had: the embedded set, or the set before a reload.

use super::config::profile_patch::PatchedDialect;
use super::config::test_file::{TestSubject, tests_of};
use super::config::transcript::Transcript;
use super::load::{Plan, SourceFile, TestFile};
use super::source::files::MappingFiles;
use super::source::layout::SetFile;
use super::source::yaml::{Node, YamlKind};
use crate::diagnostics::{FileId, Source, Sources};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The files of a set that was checked as a whole and had neither errors nor warnings.
#[derive(Debug)]
pub struct CheckedSet<'s> {
    /// By place: their contents.
    files: HashMap<Place<'s>, &'s str>,
    /// What tests read of its gateway; `None`: it is not known.
    gateway: Option<u64>,
}

/// The layer of a file and its path in the set.
type Place<'s> = (usize, &'s str);

impl<'s> CheckedSet<'s> {
    pub fn of_files(files: &'s [SourceFile]) -> CheckedSet<'s> {
        let files = files.iter().map(|file| ((file.layer, file.name.as_str()), content(&file.text))).collect();
        CheckedSet { files, gateway: None }
    }

    pub fn of_plan(plan: &'s Plan) -> CheckedSet<'s> {
        let files = plan.sources.iter().take(plan.written_files).map(|(_, file)| (place(file), content(&file.text)));
        CheckedSet { files: files.collect(), gateway: Some(plan.tested_gateway) }
    }

    fn has(&self, file: &Source) -> bool {
        self.files.get(&place(file)).is_some_and(|known| *known == content(&file.text))
    }

    /// Whether the set consists of the same files.
    pub(super) fn is_same(&self, files: &[SourceFile]) -> bool {
        let has = |file: &SourceFile| self.files.get(&(file.layer, file.name.as_str())) == Some(&content(&file.text));
        files.len() == self.files.len() && files.iter().all(has)
    }

    /// Whether the set has the same files of this kind.
    fn has_all(&self, kind: SetFile, sources: &Sources, written_files: usize) -> bool {
        let now = || sources.iter().take(written_files).map(|(_, file)| file).filter(|file| kind.matches(&file.name));
        let before = self.files.keys().filter(|(_, name)| kind.matches(name)).count();
        now().all(|file| self.has(file)) && now().count() == before
    }

    /// Whether every dialect of the set still exists: profiles may name it.
    fn dialects_exist(&self, sources: &Sources) -> bool {
        let mut dialects = self.files.keys().filter(|(_, name)| SetFile::Dialect.matches(name));
        dialects.all(|known| sources.iter().any(|(_, file)| place(file) == *known))
    }
}

/// A text without its first line, if that names the schema for editors: `reframe init` writes it anew, and nothing here
/// reads it.
fn content(text: &str) -> &str {
    let rest = text.strip_prefix("# yaml-language-server: $schema=").and_then(|rest| rest.split_once('\n'));
    rest.map_or(text, |(_, rest)| rest)
}

fn place(file: &Source) -> Place<'_> {
    (file.layer, file.name.as_str())
}

/// A dialect with a profile.
pub(super) struct DialectPart<'d> {
    pub source: &'d PatchedDialect,
    /// The names of the profile and of those that it extends.
    pub profiles: Vec<&'d str>,
}

impl DialectPart<'_> {
    fn is_subject(&self, named: &TestSubject) -> bool {
        named.dialect == Some(self.source.dialect.as_str()) && named.profile == self.source.profile.as_deref()
    }

    /// Whether one of the tests names it.
    pub fn is_tested(&self, tests: &[TestFile]) -> bool {
        let names_it = |file: &TestFile| {
            tests_of(&file.node).iter().any(|test| self.is_subject(&TestSubject::of(test, &file.name)))
        };
        tests.iter().any(names_it)
    }
}

/// The parts of a set that a checked set has too.
pub(super) struct UnchangedParts<'c> {
    /// The checked sets with the same shared files.
    sets: Vec<UnchangedFiles>,
    profiles: Vec<NamedFiles<'c>>,
    backends: Vec<NamedFiles<'c>>,
    transcripts: &'c [Arc<Transcript>],
}

/// A name, and the files of what it names. A derived backend consists of several.
type NamedFiles<'c> = (&'c str, Vec<FileId>);

/// The files that one checked set has too.
struct UnchangedFiles {
    /// By file id.
    is_same: Vec<bool>,
    /// What tests read of the gateway is the same.
    gateway: bool,
}

impl<'c> UnchangedParts<'c> {
    /// `written_files`: the number of files that were read; those after them are derived. `gateway`: what tests read of
    /// it.
    pub fn new(
        checked: &[CheckedSet],
        sources: &Sources,
        written_files: usize,
        gateway: Option<u64>,
        files: &'c MappingFiles,
    ) -> UnchangedParts<'c> {
        // What every dialect and test may read.
        let shared = [SetFile::Shared, SetFile::Schema, SetFile::Script, SetFile::Transcript];
        let has_shared = |set: &&CheckedSet| {
            shared.iter().all(|kind| set.has_all(*kind, sources, written_files)) && set.dialects_exist(sources)
        };
        let unchanged = |set: &CheckedSet| UnchangedFiles {
            is_same: sources.iter().map(|(_, file)| set.has(file)).collect(),
            gateway: match set.gateway {
                Some(before) => gateway == Some(before),
                None => set.has_all(SetFile::Gateway, sources, written_files),
            },
        };
        let sets: Vec<UnchangedFiles> = checked.iter().filter(has_shared).map(unchanged).collect();
        let named = |kind: SetFile| match sets.is_empty() {
            true => Vec::new(),
            false => {
                files.of(kind).filter_map(|node| Some((node.get(kind.name())?.as_text()?, files_of(node)))).collect()
            }
        };
        let (profiles, backends) = (named(SetFile::Profile), named(SetFile::Backend));
        UnchangedParts { sets, profiles, backends, transcripts: &files.transcripts }
    }

    pub fn has_dialect(&self, part: &DialectPart) -> bool {
        self.sets.iter().any(|set| self.is_unchanged(set, part))
    }

    fn is_unchanged(&self, set: &UnchangedFiles, part: &DialectPart) -> bool {
        set.has(part.source.base.span.file) && part.profiles.iter().all(|name| set.has_named(name, &self.profiles))
    }

    /// Whether all that the tests of a file read is unchanged.
    pub fn has_tests(&self, tests: &TestFile, dialects: &[DialectPart]) -> bool {
        self.sets.iter().any(|set| {
            let is_unchanged = |test: &Node| {
                let named = TestSubject::of(test, &tests.name);
                let has_dialect = named.dialect.is_none()
                    || dialects
                        .iter()
                        .find(|part| part.is_subject(&named))
                        .is_some_and(|part| self.is_unchanged(set, part));
                has_dialect && self.has_backend(set, test, named.backend) && (set.gateway || !reads_gateway(test))
            };
            set.has(tests.node.span.file) && tests_of(&tests.node).iter().all(is_unchanged)
        })
    }

    /// Whether the backend of a test is unchanged: the one that it names, that of its transcript, or else the first one.
    fn has_backend(&self, set: &UnchangedFiles, test: &Node, backend: Option<&str>) -> bool {
        if test.get("backend_entry").is_some() {
            return self.backends.iter().all(|(name, _)| set.has_named(name, &self.backends));
        }
        let transcript = test.get("transcript").and_then(Node::as_text);
        let of_transcript = transcript.and_then(|name| self.transcripts.iter().find(|t| t.name == name));
        let of_transcript = of_transcript.map(|transcript| transcript.backend.as_str());
        let first = || self.backends.first().map(|(name, _)| *name);
        backend.or(of_transcript).or_else(first).is_some_and(|name| set.has_named(name, &self.backends))
    }
}

impl UnchangedFiles {
    fn has(&self, file: FileId) -> bool {
        self.is_same.get(file.0 as usize).copied().unwrap_or(false)
    }

    /// Whether the name exists and all its files are unchanged.
    fn has_named(&self, name: &str, named: &[NamedFiles]) -> bool {
        let found = named.iter().find(|(other, _)| *other == name);
        found.is_some_and(|(_, files)| files.iter().all(|file| self.has(*file)))
    }
}

/// The files that a node consists of.
fn files_of(node: &Node) -> Vec<FileId> {
    let mut files = vec![node.span.file];
    node.visit("", &mut |_, inner| {
        // The files of a node are few, and neighbours are mostly of the same one.
        if !files.contains(&inner.span.file) {
            files.push(inner.span.file);
        }
    });
    files
}

/// Whether a test builds a request to a backend, or names an entry of the gateway.
fn reads_gateway(test: &Node) -> bool {
    let sends = test.get("expect").is_some_and(|expect| expect.get("sent").is_some());
    let has_events = test.get("given").is_some() || test.get("transcript").is_some();
    sends || !has_events || test.get("backend_entry").is_some()
}

/// Identifies what tests read of a gateway: its models and backends.
pub(super) fn tested_gateway(gateway: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    for key in ["models", "backends"] {
        hash_content(gateway.get(key), &mut hasher);
    }
    hasher.finish()
}

fn hash_content(node: Option<&Node>, hasher: &mut DefaultHasher) {
    let Some(node) = node else { return 0_u8.hash(hasher) };
    match &node.kind {
        YamlKind::Null => 1_u8.hash(hasher),
        YamlKind::Bool(value) => (2_u8, value).hash(hasher),
        YamlKind::Int(value) => (3_u8, value).hash(hasher),
        YamlKind::Float(value) => (4_u8, value.to_bits()).hash(hasher),
        YamlKind::Text(value) => (5_u8, value).hash(hasher),
        YamlKind::List(items) => {
            (6_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_content(Some(item), hasher));
        }
        YamlKind::Map(entries) => {
            (7_u8, entries.len()).hash(hasher);
            for entry in entries {
                entry.key.hash(hasher);
                hash_content(Some(&entry.value), hasher);
            }
        }
    }
}
