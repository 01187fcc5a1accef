//! The schemas of mapping files say what the loader says, as far as a schema can; the shipped files name theirs and satisfy
//! it; and what is generated is current.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe::diagnostics::{Code, Diagnostic, FileId, Findings};
use reframe::domain::Tree;
use reframe::mapping::source::{field_reader, yaml};
use reframe::mapping::spec::{KINDS, Kind};
use reframe::mapping::{FileText, Overrides, Plan, load, load_after};
use reframe::reload::{Base, Layers, embedded};
use reframe_json::{Schema, SchemaSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter, thread};

/// How much of a diagnostic's code a schema can see.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sight {
    /// All of it, but for the cases in `BLIND`.
    Seen,
    /// Some of it: a line break that stands there as it is, a selector without its sign.
    Some,
    /// It takes another file, an expression, a path, or what comes out.
    Unseen,
    /// There is no tree to look at.
    NoTree,
}

/// What a schema sees of the mistakes in tests/diagnostics/.
const SIGHT: &[(Code, Sight)] = &[
    (Code::OpenSchema, Sight::Unseen),
    (Code::Unreadable, Sight::NoTree),
    (Code::Syntax, Sight::NoTree),
    (Code::DuplicateKey, Sight::NoTree),
    (Code::Budget, Sight::NoTree),
    (Code::UnknownKey, Sight::Seen),
    (Code::MissingKey, Sight::Seen),
    (Code::WrongType, Sight::Seen),
    (Code::UnknownValue, Sight::Seen),
    (Code::DuplicateName, Sight::Unseen),
    (Code::UnknownReference, Sight::Unseen),
    (Code::BadSelector, Sight::Some),
    (Code::BadExpression, Sight::Unseen),
    (Code::BadHole, Sight::Some),
    (Code::UnknownVariable, Sight::Unseen),
    (Code::UnknownFilter, Sight::Unseen),
    (Code::UnknownTable, Sight::Unseen),
    (Code::UnknownPart, Sight::Unseen),
    (Code::PartCycle, Sight::Unseen),
    (Code::BadDirective, Sight::Some),
    (Code::PartialTable, Sight::Unseen),
    (Code::PartialSwitch, Sight::Unseen),
    (Code::UnknownWord, Sight::Seen),
    (Code::UnknownField, Sight::Seen),
    (Code::UnknownMoment, Sight::Seen),
    (Code::UnknownPolicy, Sight::Seen),
    (Code::BadPolicyValue, Sight::Seen),
    (Code::BadOrder, Sight::Unseen),
    (Code::BadPatch, Sight::Some),
    (Code::BadFrame, Sight::Some),
    (Code::BadSchema, Sight::Unseen),
    (Code::BadTranscript, Sight::Unseen),
    (Code::UnsafeText, Sight::Some),
    (Code::PlainSecret, Sight::Seen),
    (Code::TooManyVariants, Sight::Unseen),
    (Code::FailedTest, Sight::Unseen),
    (Code::NeverValid, Sight::Unseen),
    (Code::FailedRehearsal, Sight::Unseen),
    (Code::UnreachableRule, Sight::Unseen),
    (Code::UnframedMoment, Sight::Unseen),
    (Code::ViolableOrder, Sight::Unseen),
    (Code::UnusedPart, Sight::Unseen),
    (Code::OpenTable, Sight::Unseen),
    (Code::IdlePolicy, Sight::Unseen),
    (Code::Loss, Sight::Unseen),
];

/// Mistakes of a kind that a schema can see, in a place where it cannot.
const BLIND: &[(&str, &str)] = &[
    ("a-default-with-a-typo", "inside an expression"),
    ("a-replay-without-a-script", "the transport stands in another file"),
    ("a-row-with-a-typo", "which words a table is asked for stands in an expression"),
    ("a-script-that-may-have-nothing-to-play", "a schema cannot speak of the last element of a list"),
    ("a-table-that-gives-a-foreign-word", "which field a table fills stands in another place"),
    ("a-test-that-is-given-nothing", "what is needed depends on what is expected"),
    ("a-test-of-nobodys-events", "a file in backends/ need not name its own"),
    ("a-test-with-a-slip-in-a-kind", "below `body:` any map is a value to compare with"),
    ("a-typo-in-a-kind-of-value", "any text is a value to compare with; only the loader knows what is near"),
    ("a-typo-in-a-policy-value-of-a-condition", "inside an expression"),
    ("a-word-that-a-variable-never-is", "inside an expression"),
    ("an-unknown-policy-in-a-route", "which policies a dialect has of its own stands in its file"),
    ("a-url-with-a-secret-beside-a-mistake", "whether a backend can be asked stands in its file"),
    ("an-admin-listener-that-others-could-reach", "an address is text"),
    ("an-own-policy-for-another-dialect", "which policies a dialect has of its own stands in its file"),
    ("an-own-policy-in-an-environment", "the same"),
    ("an-unknown-policy-in-an-environment", "the same"),
    ("an-unknown-policy-in-an-expression", "inside an expression"),
    ("an-unknown-policy-of-a-header", "which policies a dialect has of its own stands in its file"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All schemas, compiled once.
struct Schemas(BTreeMap<&'static str, Schema>);

impl Schemas {
    fn new() -> Schemas {
        let set = SchemaSet::new(KINDS.iter().map(|kind| (format!("{}.json", kind.name), kind.schema())));
        let compile =
            |kind: &Kind| set.compile(&format!("{}.json", kind.name)).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
        Schemas(KINDS.iter().map(|kind| (kind.name, compile(kind))).collect())
    }

    /// What is wrong with a file, by the schema of its kind.
    fn check(&self, kind: &Kind, tree: &Tree) -> Result<(), String> {
        self.0[kind.name].check(tree).map_err(|breach| format!("{breach:?}"))
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
        let kind = Kind::of(&name).unwrap_or_else(|| panic!("{name} is of no kind"));
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

/// The files that docs/mappings.md shows use the whole language.
#[test]
fn every_file_in_the_docs_satisfies_its_schema() {
    let schemas = Schemas::new();
    let mut count = 0;
    for file in docs().iter().filter(|file| file.name.ends_with(".yaml")) {
        let checked = schemas.check(Kind::of(&file.name).unwrap(), &tree(&file.text).unwrap());
        assert_eq!(checked, Ok(()), "docs/mappings.md: {}", file.name);
        count += 1;
    }
    assert!(count >= 8, "the docs show only {count} files");
}

#[test]
fn a_schema_refuses_what_the_loader_refuses_as_far_as_it_can_see() {
    let schemas = Schemas::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap();
        let expected = fs::read_to_string(case.join("expected.txt")).unwrap();
        for (file, path) in mappings(&case) {
            let Some(kind) = Kind::of(&file) else { continue };
            let codes = codes_at(&expected, &format!("{name}/{file}"));
            // What is not text, or not YAML, has no tree.
            let Some(tree) = fs::read_to_string(&path).ok().as_deref().and_then(tree) else { continue };
            let refused = schemas.check(kind, &tree).err();
            let sights: Vec<Sight> = codes.iter().map(|code| sight(code)).collect();
            let blind = BLIND.iter().any(|(case, _)| *case == name);
            let must = sights.contains(&Sight::Seen) && !blind;
            let may = must || sights.contains(&Sight::Some);
            match refused {
                None if must => wrong.push(format!("{name}/{file}: the loader says {codes:?}, the schema nothing")),
                Some(why) if !may => wrong.push(format!("{name}/{file}: {codes:?}, but the schema says {why}")),
                None | Some(_) => {}
            }
        }
    }
    wrong.extend(
        BLIND
            .iter()
            .filter(|(case, _)| !cases().iter().any(|c| c.ends_with(case)))
            .map(|(case, _)| format!("there is no case {case}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sight(code: &str) -> Sight {
    SIGHT.iter().find(|(c, _)| c.as_str() == code).unwrap_or_else(|| panic!("{code} is not listed")).1
}

#[test]
fn every_code_is_listed() {
    let bare: Vec<&str> =
        Code::ALL.iter().filter(|code| !SIGHT.iter().any(|(c, _)| c == *code)).map(|code| code.as_str()).collect();
    assert!(bare.is_empty(), "can a schema see {}?", bare.join(", "));
}

/// The folders of tests/diagnostics/, each with its mistake.
fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/diagnostics")).unwrap().map(|e| e.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|p| p.is_dir() && !p.ends_with("mappings")).collect();
    cases.sort();
    cases
}

/// The codes of the errors and warnings whose place is in a file.
fn codes_at(expected: &str, file: &str) -> Vec<String> {
    let mut codes = Vec::new();
    let mut code = "";
    for line in expected.lines() {
        if let Some(rest) = line.strip_prefix("error[").or(line.strip_prefix("warning[")) {
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
fn what_is_generated_is_current() {
    let (said, code) = reframe(&["schema", "--check"], &root());
    assert_eq!(code, 0, "{said}\nrun `cargo run -- schema --write`");
}

#[test]
fn the_program_lists_prints_writes_and_checks() {
    let folder = tempfile::tempdir().unwrap();
    let (list, code) = reframe(&["schema"], folder.path());
    assert_eq!((list.lines().count(), code), (KINDS.len(), 0), "{list}");
    let (printed, code) = reframe(&["schema", "dialect"], folder.path());
    let value: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((value, code), (Kind::find("dialect").unwrap().schema(), 0));
    assert_eq!(reframe(&["schema", "dialekt"], folder.path()).1, 2);
    assert_eq!(reframe(&["schema", "--check"], folder.path()).1, 1);
    assert_eq!(reframe(&["schema", "--write"], folder.path()).1, 0);
    assert_eq!(reframe(&["schema", "--check"], folder.path()).1, 0);
    fs::write(folder.path().join("schemas/mapping/test.json"), "{}").unwrap();
    let (said, code) = reframe(&["schema", "--check"], folder.path());
    assert_eq!((said.contains("stale: schemas/mapping/test.json"), code), (true, 1), "{said}");
    assert_eq!(reframe(&["schema", "test", "--write"], folder.path()).1, 0);
    assert_eq!(reframe(&["schema", "test", "--check"], folder.path()).1, 0);
}

/// Neither in the binary nor in a set that is read from a checkout.
#[test]
fn schemas_of_mappings_are_no_dialects() {
    assert!(root().join("schemas/mapping/dialect.json").is_file());
    let checkout = Layers { base: Base::Folder(root().join("mappings")), add: Vec::new() }.read(&[]).unwrap();
    let shipped = embedded::files();
    let read = checkout.iter().chain(&shipped).find(|file| file.name.starts_with("schemas/mapping/"));
    assert_eq!(read.map(|file| &file.name), None);
}

/// Where the loader knows more: what stands in another place or file decides.
const ELSEWHERE: &[(&str, &str)] = &[
    ("/backends/desk", "whether a backend needs a script stands in its file"),
    ("/tables/", "which words a table is asked for, and which it may give, stands where it is used"),
    ("/routes/1/policies", "which policies a dialect has of its own stands in its file"),
    ("/by_user_agent/1/policies", "the same"),
    ("/policies", "beside policies of the dialect's own, any name may be one"),
    ("/own_policies", "which of them are set stands elsewhere"),
    ("/patch/", "what a patch may hold depends on what it changes"),
];

/// The set in docs/mappings.md has every key of the language. Each key is misspelt, and each value becomes a number, one at a
/// time: loader and schema must agree on whether that is a mistake of the kind that a schema sees.
#[test]
fn loader_and_schema_agree_on_every_slip() {
    let schemas = Schemas::new();
    let files = docs();
    let sound = load(&files).plan.expect("the docs show a sound set");
    let mut slips = Vec::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.name.ends_with(".yaml")) {
        let kind = Kind::of(&file.name).unwrap();
        if kind.name != "test" {
            let value = serde_json::from_str(&tree(&file.text).unwrap().to_json()).unwrap();
            // Below these stands what a client or a backend gets: any key is one.
            let free = |place: &str| ["/body/", "/parts/", "/errors/"].iter().any(|below| place.starts_with(below));
            let slips_here = slips_in(&value).into_iter().filter(|(place, _)| !free(place));
            slips.extend(slips_here.map(|(place, slip)| Slip { at, kind, place, slip }));
        }
    }
    assert!(slips.len() > 400, "only {} slips", slips.len());
    let judge = |slip: &Slip| slip.disagreement(&files, &sound, &schemas);
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = slips
            .chunks(slips.len().div_ceil(4))
            .map(|chunk| scope.spawn(|| chunk.iter().filter_map(judge).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One mistake in one file of a set.
struct Slip {
    at: usize,
    kind: &'static Kind,
    place: String,
    slip: Value,
}

impl Slip {
    fn disagreement(&self, files: &[FileText], sound: &Plan, schemas: &Schemas) -> Option<String> {
        let text = self.slip.to_string();
        let refused = schemas.check(self.kind, &Tree::parse(text.as_bytes()).unwrap()).err();
        let excused = ELSEWHERE.iter().any(|(below, _)| self.place.starts_with(below));
        // Nothing that the loader could say would be a disagreement, and to ask it takes longest.
        if refused.is_none() && excused {
            return None;
        }
        let mut files = files.to_vec();
        let file = &mut files[self.at];
        file.text = text.into();
        let (name, place) = (file.name.clone(), &self.place);
        let loaded = load_after(&files, Some(sound), &Overrides::default());
        let here = |d: &&Diagnostic| loaded.sources.show(d.span).starts_with(name.as_str());
        let codes: Vec<&str> = loaded.diagnostics.iter().filter(here).map(|d| d.code.as_str()).collect();
        let sees = |sight_of: Sight| codes.iter().any(|code| sight(code) == sight_of);
        match refused {
            None if sees(Sight::Seen) => Some(format!("{name} {place}: the loader says {codes:?}, the schema nothing")),
            Some(why) if !sees(Sight::Seen) && !sees(Sight::Some) => {
                Some(format!("{name} {place}: {codes:?}, but the schema says {why}"))
            }
            None | Some(_) => None,
        }
    }
}

/// The set that docs/mappings.md shows.
fn docs() -> Vec<FileText> {
    let docs = fs::read_to_string(root().join("docs/mappings.md")).unwrap();
    let blocks = docs.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let named = blocks.filter_map(|(head, text)| Some((head.split_once(" file=")?.1, text)));
    named.map(|(name, text)| FileText { name: name.into(), shown: name.into(), text: text.into() }).collect()
}

/// Every way to make one mistake, and where.
fn slips_in(value: &Value) -> Vec<(String, Value)> {
    let mut slips = Vec::new();
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let misspelt = |k: &String| if k == key { format!("{k}x") } else { k.clone() };
                let renamed = members.iter().map(|(k, v)| (misspelt(k), v.clone())).collect();
                slips.push((format!("/{key}"), Value::Object(renamed)));
                for (place, inner) in iter::once((String::new(), json!(7))).chain(slips_in(member)) {
                    let mut members = members.clone();
                    members[key] = inner;
                    slips.push((format!("/{key}{place}"), Value::Object(members)));
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for (place, inner) in iter::once((String::new(), json!(7))).chain(slips_in(item)) {
                    let mut items = items.clone();
                    items[at] = inner;
                    slips.push((format!("/{at}{place}"), Value::Array(items)));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    slips
}
