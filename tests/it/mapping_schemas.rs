//! The JSON Schemas of mapping files agree with the loader as far as a schema can; the shipped files name their schema
//! and satisfy it; and the generated files are current.

use crate::support::docs;
use reframe::testing::diagnostics::{Code, Diagnostic, FileId, Findings};
use reframe::testing::domain::Tree;
use reframe::testing::mapping::source::{field_reader, yaml};
use reframe::testing::mapping::spec::{FILE_KINDS, FileKind};
use reframe::testing::mapping::{Overrides, Plan, SourceFile, load, load_with};
use reframe::testing::reload::{Base, Layers, embedded};
use reframe_json::{Schema, SchemaSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, iter, thread};

/// Which mistakes of a diagnostic code a schema can detect.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Coverage {
    /// All, except for the cases in `NOT_DETECTABLE`.
    Full,
    /// Some, such as a literal line break, or a selector without its `$`.
    Partial,
    /// None: they depend on another file, an expression, a path, or the output.
    Nothing,
    /// The file has no tree to validate.
    NoTree,
}

const COVERAGE: &[(Code, Coverage)] = &[
    (Code::OpenSchema, Coverage::Nothing),
    (Code::Unreadable, Coverage::NoTree),
    (Code::Syntax, Coverage::NoTree),
    (Code::DuplicateKey, Coverage::NoTree),
    (Code::LimitExceeded, Coverage::NoTree),
    (Code::UnknownKey, Coverage::Full),
    (Code::MissingKey, Coverage::Full),
    (Code::WrongType, Coverage::Full),
    (Code::UnknownValue, Coverage::Full),
    (Code::DuplicateName, Coverage::Nothing),
    (Code::UnknownReference, Coverage::Nothing),
    (Code::BadSelector, Coverage::Partial),
    (Code::BadExpression, Coverage::Nothing),
    (Code::BadPlaceholder, Coverage::Partial),
    (Code::UnknownVariable, Coverage::Nothing),
    (Code::UnknownFilter, Coverage::Nothing),
    (Code::UnknownTable, Coverage::Nothing),
    (Code::UnknownFragment, Coverage::Nothing),
    (Code::FragmentCycle, Coverage::Nothing),
    (Code::BadDirective, Coverage::Partial),
    (Code::PartialTable, Coverage::Nothing),
    (Code::PartialSwitch, Coverage::Nothing),
    (Code::UnknownEmit, Coverage::Full),
    (Code::UnknownField, Coverage::Full),
    (Code::UnknownMoment, Coverage::Full),
    (Code::UnknownPolicy, Coverage::Full),
    (Code::BadPolicyValue, Coverage::Full),
    (Code::BadOrder, Coverage::Nothing),
    (Code::BadPatch, Coverage::Partial),
    (Code::BadFrame, Coverage::Partial),
    (Code::BadSchema, Coverage::Nothing),
    (Code::BadTranscript, Coverage::Nothing),
    (Code::UnsafeText, Coverage::Partial),
    (Code::InlineSecret, Coverage::Full),
    (Code::TooManyVariants, Coverage::Nothing),
    (Code::TooMuchWork, Coverage::Nothing),
    (Code::IndexLawBroken, Coverage::Nothing),
    (Code::FailedTest, Coverage::Nothing),
    (Code::UnsatisfiableFrame, Coverage::Nothing),
    (Code::TranscriptFailed, Coverage::Nothing),
    (Code::UnreachableRule, Coverage::Nothing),
    (Code::UnframedMoment, Coverage::Nothing),
    (Code::OrderNotGuaranteed, Coverage::Nothing),
    (Code::UnusedFragment, Coverage::Nothing),
    (Code::TableWithoutDefault, Coverage::Nothing),
    (Code::IneffectivePolicy, Coverage::Nothing),
    (Code::Loss, Coverage::Nothing),
    (Code::UnservedDialect, Coverage::Nothing),
    (Code::UnvalidatedDialect, Coverage::Nothing),
    (Code::ChangedIndexLaw, Coverage::Nothing),
    (Code::UnreadMember, Coverage::Nothing),
    (Code::UnmatchedScope, Coverage::Nothing),
];

/// Cases with a detectable kind of mistake in a place where a schema cannot detect it, with the reason.
const NOT_DETECTABLE: &[(&str, &str)] = &[
    ("a-pattern-with-two-tests", "the kinds of patterns are not exclusive in a schema"),
    ("a-shared-table-that-extends-another", "a table of another file may extend one"),
    ("a-test-with-an-unknown-policy", "the custom policies of a dialect are in its file"),
    ("metadata-lines-by-an-unknown-policy", "an expression is text"),
    ("a-test-with-policies-and-no-dialect", "the name of a test file is that of its dialect"),
    ("a-condition-with-an-operator", "a condition may compare with any other text"),
    ("a-test-of-what-a-backend-without-a-template-is-sent", "whether a backend has a template is in another file"),
    ("a-default-with-a-typo", "inside an expression"),
    ("a-mistake-in-the-patch-of-a-backend", "what a patch changes is in another file"),
    ("a-replay-without-a-script", "the transport is in another file"),
    ("a-row-with-a-typo", "the keys that a table is looked up with are in an expression"),
    ("a-status-that-is-no-error", "a skeleton may have any members"),
    ("a-status-of-a-table-that-is-no-error", "what a table is for is in an expression"),
    ("a-text-frame-before-the-first-frame", "the frames of all moments have the same keys"),
    ("a-script-that-may-have-nothing-to-play", "a schema cannot constrain the last element of an array"),
    ("a-table-that-gives-a-foreign-word", "the field that a table fills is in another place"),
    ("a-test-that-is-given-nothing", "what is needed depends on what is expected"),
    ("a-test-without-a-backend", "a file in backends/ need not name its own"),
    ("a-test-with-a-typo-in-a-kind", "below `body:` any map is a value to compare with"),
    ("a-typo-in-a-kind-of-value", "any text is a value to compare with; only the loader knows what is near"),
    ("a-typo-in-a-policy-value-of-a-condition", "inside an expression"),
    ("a-word-that-a-variable-never-is", "inside an expression"),
    ("an-unknown-policy-in-a-route", "the custom policies of a dialect are in its file"),
    ("a-url-with-a-secret-next-to-a-mistake", "whether a backend has a transport is in its file"),
    ("an-admin-listener-that-others-could-reach", "an address is text"),
    ("a-custom-policy-for-another-dialect", "the custom policies of a dialect are in its file"),
    ("a-custom-policy-in-an-environment", "the same"),
    ("an-unknown-policy-in-an-environment", "the same"),
    ("an-unknown-policy-in-an-expression", "inside an expression"),
    ("an-unknown-policy-of-a-header", "the custom policies of a dialect are in its file"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All schemas, compiled once.
struct Schemas(BTreeMap<&'static str, Schema>);

impl Schemas {
    fn new() -> Schemas {
        let set = SchemaSet::new(FILE_KINDS.iter().map(|kind| (format!("{}.json", kind.name), kind.schema())));
        let compile = |kind: &FileKind| {
            set.compile(&format!("{}.json", kind.name)).unwrap_or_else(|e| panic!("{}: {e}", kind.name))
        };
        Schemas(FILE_KINDS.iter().map(|kind| (kind.name, compile(kind))).collect())
    }

    /// Validates a file with the schema of its kind.
    fn check(&self, kind: &FileKind, tree: &Tree) -> Result<(), String> {
        self.0[kind.name].check(tree).map_err(|violation| format!("{violation:?}"))
    }
}

fn tree(text: &str) -> Option<Tree> {
    yaml::parse(FileId(0), text, &Findings::default()).map(|node| field_reader::constant(&node))
}

/// The mapping files below a folder, by their names in the set.
fn mappings(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(next) = ahead.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                ahead.push(path);
            } else if path.extension().is_some_and(|e| e == "yaml") {
                found.push((path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned(), path));
            }
        }
    }
    found.sort();
    found
}

fn sets() -> Vec<PathBuf> {
    let examples = fs::read_dir(root().join("examples")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    [root().join("mappings")].into_iter().chain(examples).collect()
}

#[test]
fn every_shipped_mapping_names_its_schema_and_satisfies_it() {
    let schemas = Schemas::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, path) in sets().iter().flat_map(|set| mappings(set)) {
        count += 1;
        let kind = FileKind::of(&name).unwrap_or_else(|| panic!("{name} is of no kind"));
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root()).unwrap();
        let up = "../".repeat(shown.components().count() - 1);
        let line = format!("# yaml-language-server: $schema={up}schemas/mapping/{}.json", kind.name);
        if text.lines().next() != Some(&line) {
            wrong.push(format!("{}:1: the first line is `{line}`", shown.display()));
        }
        if let Err(why) = schemas.check(kind, &tree(&text).unwrap()) {
            wrong.push(format!("{}: {why}", shown.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 25, "the walk found only {count} files");
}

/// The files in docs/mappings/ use the whole language.
#[test]
fn every_file_in_the_docs_satisfies_its_schema() {
    let schemas = Schemas::new();
    let mut count = 0;
    for file in documented_set().iter().filter(|file| file.name.ends_with(".yaml")) {
        let checked = schemas.check(FileKind::of(&file.name).unwrap(), &tree(&file.text).unwrap());
        assert_eq!(checked, Ok(()), "docs/mappings/: {}", file.name);
        count += 1;
    }
    assert!(count >= 8, "the docs show only {count} files");
}

#[test]
fn a_schema_rejects_what_the_loader_rejects_as_far_as_it_can() {
    let schemas = Schemas::new();
    let mut wrong = Vec::new();
    let (mut valid, mut rejected) = (0, 0);
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap();
        let expected = fs::read_to_string(case.join("expected.txt")).unwrap();
        for (file, path) in mappings(&case) {
            let Some(kind) = FileKind::of(&file) else { continue };
            let codes = codes_at(&expected, &format!("{name}/{file}"));
            // A file that is not text or not YAML has no tree.
            let Some(tree) = fs::read_to_string(&path).ok().as_deref().and_then(tree) else { continue };
            let violation = schemas.check(kind, &tree).err();
            let coverages: Vec<Coverage> = codes.iter().map(|code| coverage(code)).collect();
            let not_detectable = NOT_DETECTABLE.iter().any(|(case, _)| *case == name);
            let must = coverages.contains(&Coverage::Full) && !not_detectable;
            let may = must || coverages.contains(&Coverage::Partial);
            valid += usize::from(!may && violation.is_none());
            rejected += usize::from(must && violation.is_some());
            match violation {
                None if must => wrong.push(format!("{name}/{file}: the loader reports {codes:?}, the schema nothing")),
                Some(why) if !may => wrong.push(format!("{name}/{file}: {codes:?}, but the schema reports {why}")),
                None | Some(_) => {}
            }
        }
    }
    wrong.extend(
        NOT_DETECTABLE
            .iter()
            .filter(|(case, _)| !cases().iter().any(|c| c.ends_with(case)))
            .map(|(case, _)| format!("there is no case {case}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("both reject {rejected} files, and the schema accepts {valid} without a mistake that it could detect");
    assert!(rejected > 50 && valid > 50, "{rejected} and {valid}");
}

fn coverage(code: &str) -> Coverage {
    COVERAGE.iter().find(|(c, _)| c.as_str() == code).unwrap_or_else(|| panic!("{code} is not listed")).1
}

#[test]
fn every_code_is_listed() {
    let unlisted: Vec<&str> =
        Code::ALL.iter().filter(|code| !COVERAGE.iter().any(|(c, _)| c == *code)).map(|code| code.as_str()).collect();
    assert!(unlisted.is_empty(), "can a schema see {}?", unlisted.join(", "));
}

/// The case folders of tests/diagnostics/.
fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/diagnostics")).unwrap().map(|e| e.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|p| p.is_dir() && !p.ends_with("mappings")).collect();
    cases.sort();
    cases
}

/// The codes of the errors and warnings located in a file.
fn codes_at(expected: &str, file: &str) -> Vec<String> {
    let mut codes = Vec::new();
    let mut code = "";
    for line in expected.lines() {
        if let Some(rest) = ["error[", "warning[", "note["].iter().find_map(|severity| line.strip_prefix(severity)) {
            code = rest.split(']').next().unwrap();
        }
        let at = line.trim_start().strip_prefix("--> ").map(|place| place.split(':').next().unwrap());
        if at == Some(file) && !code.is_empty() {
            codes.push(code.to_owned());
        }
    }
    codes
}

fn reframe(arguments: &[&str], folder: &Path) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_reframe")).args(arguments).current_dir(folder).output().unwrap();
    (String::from_utf8([output.stdout, output.stderr].concat()).unwrap(), output.status.code().unwrap())
}

#[test]
fn the_generated_files_are_current() {
    let (output, code) = reframe(&["schema", "--check"], &root());
    assert_eq!(code, 0, "{output}\nrun `cargo run -- schema --write`");
}

#[test]
fn reframe_schema_lists_prints_writes_and_checks() {
    let folder = tempfile::tempdir().unwrap();
    let (list, code) = reframe(&["schema"], folder.path());
    assert_eq!((list.lines().count(), code), (FILE_KINDS.len(), 0), "{list}");
    let (printed, code) = reframe(&["schema", "dialect"], folder.path());
    let value: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((value, code), (FileKind::find("dialect").unwrap().schema(), 0));
    assert_eq!(reframe(&["schema", "dialekt"], folder.path()).1, 2);
    assert_eq!(reframe(&["schema", "--check"], folder.path()).1, 1);
    assert_eq!(reframe(&["schema", "--write"], folder.path()).1, 0);
    assert_eq!(reframe(&["schema", "--check"], folder.path()).1, 0);
    fs::write(folder.path().join("schemas/mapping/test.json"), "{}").unwrap();
    let (output, code) = reframe(&["schema", "--check"], folder.path());
    assert_eq!((output.contains("stale: schemas/mapping/test.json"), code), (true, 1), "{output}");
    assert_eq!(reframe(&["schema", "test", "--write"], folder.path()).1, 0);
    assert_eq!(reframe(&["schema", "test", "--check"], folder.path()).1, 0);
}

/// They are neither embedded nor read from a checkout.
#[test]
fn schemas_of_mappings_are_not_served_as_dialect_schemas() {
    assert!(root().join("schemas/mapping/dialect.json").is_file());
    let checkout = Layers { base: Base::Folder(root().join("mappings")), add: Vec::new() }.read(&[]).unwrap();
    let shipped = embedded::files();
    let read = checkout.iter().chain(&shipped).find(|file| file.name.starts_with("schemas/mapping/"));
    assert_eq!(read.map(|file| &file.name), None);
}

/// Places where only the loader can decide, because it depends on another place or file.
const ELSEWHERE: &[(&str, &str)] = &[
    ("/backends/desk", "whether a backend needs a script is in its file"),
    ("/tables/", "the allowed keys and values of a table depend on its uses"),
    ("/routes/1/policies", "the custom policies of a dialect are in its file"),
    ("/by_user_agent/1/policies", "the same"),
    ("/policies", "any name may be a custom policy of the dialect"),
    ("/custom_policies", "where they are set is elsewhere"),
    ("/patch/", "what a patch may hold depends on what it changes"),
];

/// The set in docs/mappings/ has every key of the language. Each key is misspelt and each value is replaced by a
/// number, one at a time: loader and schema must agree on whether that is a mistake that a schema can detect.
#[test]
fn loader_and_schema_agree_on_every_typo() {
    let schemas = Schemas::new();
    let files = documented_set();
    let valid = load(&files).plan.expect("the docs show a sound set");
    let mut typos = Vec::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.name.ends_with(".yaml")) {
        let kind = FileKind::of(&file.name).unwrap();
        if kind.name != "test" {
            let value = serde_json::from_str(&tree(&file.text).unwrap().to_json()).unwrap();
            // Below these any key is valid: they are sent to a client or a backend.
            let free = |place: &str| ["/body/", "/fragments/", "/errors/"].iter().any(|below| place.starts_with(below));
            let typos_here = typos_in(&value).into_iter().filter(|(place, _)| !free(place));
            typos.extend(typos_here.map(|(place, value)| Typo { at, kind, place, value }));
        }
    }
    let rejected = AtomicUsize::new(0);
    let check = |typo: &Typo| typo.disagreement(&files, &valid, &schemas, &rejected);
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = typos
            .chunks(typos.len().div_ceil(4))
            .map(|chunk| scope.spawn(|| chunk.iter().filter_map(check).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rejected = rejected.into_inner();
    println!("both reject {rejected} of {} typos", typos.len());
    assert!(typos.len() > 400 && rejected > 400, "{rejected} of {}", typos.len());
}

/// One mistake in one file of a set.
struct Typo {
    at: usize,
    kind: &'static FileKind,
    place: String,
    value: Value,
}

impl Typo {
    /// Counts in `rejected` what both reject.
    fn disagreement(
        &self,
        files: &[SourceFile],
        valid: &Plan,
        schemas: &Schemas,
        rejected: &AtomicUsize,
    ) -> Option<String> {
        let text = self.value.to_string();
        let violation = schemas.check(self.kind, &Tree::parse(text.as_bytes()).unwrap()).err();
        let excused = ELSEWHERE.iter().any(|(below, _)| self.place.starts_with(below));
        // Any result of the loader would agree, and loading is the slowest step.
        if violation.is_none() && excused {
            return None;
        }
        let mut files = files.to_vec();
        let file = &mut files[self.at];
        file.text = text.into();
        let (name, place) = (file.name.clone(), &self.place);
        let loaded = load_with(&files, Some(valid), &Overrides::default());
        let here = |d: &&Diagnostic| loaded.sources.show(d.span).starts_with(name.as_str());
        let codes: Vec<&str> = loaded.diagnostics.iter().filter(here).map(|d| d.code.as_str()).collect();
        let has_coverage = |wanted: Coverage| codes.iter().any(|code| coverage(code) == wanted);
        rejected.fetch_add(usize::from(violation.is_some() && !codes.is_empty()), Ordering::Relaxed);
        match violation {
            None if has_coverage(Coverage::Full) => {
                Some(format!("{name} {place}: the loader reports {codes:?}, the schema nothing"))
            }
            Some(why) if !has_coverage(Coverage::Full) && !has_coverage(Coverage::Partial) => {
                Some(format!("{name} {place}: {codes:?}, but the schema reports {why}"))
            }
            None | Some(_) => None,
        }
    }
}

/// The set in docs/mappings/.
fn documented_set() -> Vec<SourceFile> {
    let text = docs::mapping_chapters();
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let named = blocks.filter_map(|(head, text)| Some((head.split_once(" file=")?.1, text)));
    named
        .map(|(name, text)| SourceFile { name: name.into(), shown: name.into(), layer: 0, text: text.into() })
        .collect()
}

/// Every single mistake and its place.
fn typos_in(value: &Value) -> Vec<(String, Value)> {
    let mut typos = Vec::new();
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let misspelt = |k: &String| if k == key { format!("{k}x") } else { k.clone() };
                let renamed = members.iter().map(|(k, v)| (misspelt(k), v.clone())).collect();
                typos.push((format!("/{key}"), Value::Object(renamed)));
                for (place, inner) in iter::once((String::new(), json!(7))).chain(typos_in(member)) {
                    let mut members = members.clone();
                    members[key] = inner;
                    typos.push((format!("/{key}{place}"), Value::Object(members)));
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for (place, inner) in iter::once((String::new(), json!(7))).chain(typos_in(item)) {
                    let mut items = items.clone();
                    items[at] = inner;
                    typos.push((format!("/{at}{place}"), Value::Array(items)));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    typos
}
