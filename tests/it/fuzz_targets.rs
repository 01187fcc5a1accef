//! The fuzz targets of `fuzz/` as properties: random bytes, and mutated seeds from the shipped mappings and the tests.
//!
//! `LAWS_CASES` sets the number of inputs per target; the default is a few hundred.

use crate::laws::cases;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use reframe::testing::fuzz::{self, Target};
use std::fs;
use std::path::{Path, PathBuf};

/// One change of a seed.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// Copies a range to another place.
    Copy(Index, usize, Index),
    Truncate(Index),
}

/// What often matters to a parser.
const TOKENS: &[&str] = &[
    "{", "}", "[", "]", "(", ")", "\"", "'", ":", ",", "\n", "\r", "\0", "\u{feff}", "{{", "}}", "$", "@", "^", "..",
    "*", "?", "|", "#", "&", "*a", "!!", "---", "\\u", "\\ud800", "1e999", "-0", "null", "data: ", "event: ", "[DONE]",
    "é🙂", "$use", "$each", "$ref", "not ", "**",
];

fn change() -> impl Strategy<Value = Change> {
    let token = proptest::sample::select(TOKENS).prop_map(|token| token.as_bytes().to_vec());
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        (at(), token).prop_map(|(at, token)| Change::Insert(at, token)),
        (at(), 1usize..40).prop_map(|(at, length)| Change::Remove(at, length)),
        (at(), 1usize..200, at()).prop_map(|(from, length, to)| Change::Copy(from, length, to)),
        at().prop_map(Change::Truncate),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let size = bytes.len().max(1);
        match self {
            Change::Flip(at, value) => {
                if let Some(byte) = bytes.get_mut(at.index(size)) {
                    *byte ^= value;
                }
            }
            Change::Insert(at, token) => {
                let at = at.index(size).min(bytes.len());
                bytes.splice(at..at, token.iter().copied());
            }
            Change::Remove(at, length) => {
                let at = at.index(size).min(bytes.len());
                bytes.drain(at..(at + length).min(bytes.len()));
            }
            Change::Copy(from, length, to) => {
                let from = from.index(size).min(bytes.len());
                let copy = bytes[from..(from + length).min(bytes.len())].to_vec();
                let to = to.index(size).min(bytes.len());
                bytes.splice(to..to, copy);
            }
            Change::Truncate(at) => bytes.truncate(at.index(size)),
        }
    }
}

/// The files below a folder with one of these endings.
fn files(folder: &str, endings: &[&str]) -> Vec<Vec<u8>> {
    fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, endings, found),
                false if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), endings, &mut found);
    found.sort();
    found.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The texts between two marks in the shipped mappings.
fn between(start: &str, end: &str) -> Vec<Vec<u8>> {
    let texts = files("mappings", &[".yaml"]);
    let texts = texts.iter().map(|text| String::from_utf8_lossy(text).into_owned());
    let found = texts.flat_map(|text| {
        let parts = text.split(start).skip(1).filter_map(|rest| rest.split(end).next());
        parts.map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>()
    });
    found.collect()
}

/// Valid inputs of a target, in its own format.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let with_first = |first: u8, texts: Vec<Vec<u8>>| texts.into_iter().map(move |text| [vec![first], text].concat());
    match target {
        "loader" => {
            let kinds =
                [(0, ""), (2, "dialects"), (3, "backends"), (4, "profiles"), (5, "scripts"), (7, "transcripts")];
            let of_kind = |(kind, folder): (u8, &str)| {
                with_first(kind, files(&format!("mappings/{folder}"), &[".yaml", ".jsonl"])).collect::<Vec<_>>()
            };
            kinds.into_iter().flat_map(of_kind).chain(with_first(8, files("schemas/chat", &[".json"]))).collect()
        }
        "expression" => between("{{", "}}"),
        "order" => {
            between("order:\n    turn: >-\n", "\n    item").into_iter().chain(between("choice: ", "\n")).collect()
        }
        "selector" => {
            let document = r#"{ "a": [ { "type": "x", "text": "é" } ], "b": { "c": null } }"#.as_bytes();
            let selectors = between("\"@", "\"").into_iter().map(|rest| [b"@".as_slice(), &rest].concat());
            let selectors =
                selectors.chain(between("$.", " ").into_iter().map(|rest| [b"$.".as_slice(), &rest].concat()));
            let queries = ["$..*", "$.a[?@.type=='x']", "$.a[-1:]", "$['a','b']", "$.a[?match(@.text,'a.*')]"];
            let queries = queries.into_iter().map(|query| query.as_bytes().to_vec());
            selectors.chain(queries).map(|selector| [&selector, b"\n".as_slice(), document].concat()).collect()
        }
        "sse_reader" => with_first(3, files("tests/transcripts", &[".sse"])).collect(),
        "json_parser" => files("tests/requests", &[".json"]),
        "client_body" => {
            let requests = crate::laws::requests();
            requests.map(|body| body.to_json().into_bytes()).collect()
        }
        "raw_event" => {
            let transcripts = files("tests/transcripts", &["events.jsonl"]);
            let events = transcripts.iter().map(|text| String::from_utf8_lossy(text).replace("{\"raw\":", ""));
            // Without its wrapper a line ends in one brace too many.
            events
                .map(|text| {
                    text.lines().map(|l| l.strip_suffix('}').unwrap_or(l)).collect::<Vec<_>>().join("\n").into()
                })
                .collect()
        }
        other => panic!("no seeds for {other}"),
    }
}

fn check(target: &str, cases: u32) {
    let (name, run): &Target = fuzz::TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let seeds = seeds(name);
    assert!(seeds.len() >= 3, "{name} has only {} seeds", seeds.len());
    for seed in &seeds {
        run(seed);
    }
    let mutated = (any::<Index>(), proptest::collection::vec(change(), 1..6)).prop_map(|(at, changes)| {
        let mut bytes = at.get(&seeds).clone();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    });
    let random = proptest::collection::vec(any::<u8>(), 0..200);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let checked = TestRunner::new(config).run(&prop_oneof![4 => mutated, 1 => random], |bytes| {
        run(&bytes);
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    println!("{name}: {} seeds, {cases} inputs", seeds.len());
}

macro_rules! targets {
    ($($name:ident: $cases:expr;)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), $cases);
        })*

        #[test]
        fn every_target_is_a_property_and_a_fuzzer() {
            let names: Vec<&str> = fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            let manifest = crate::support::repo("fuzz/Cargo.toml");
            for name in names {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml has no {name}");
                let fuzzer = crate::support::repo(&format!("fuzz/fuzz_targets/{name}.rs"));
                assert!(fuzzer.contains(&format!("fuzz::{name}(")), "{fuzzer}");
            }
        }
    };
}

targets! {
    loader: cases();
    expression: cases() * 10;
    order: cases() * 10;
    selector: cases() * 10;
    sse_reader: cases() * 2;
    json_parser: cases() * 5;
    client_body: cases() / 2;
    raw_event: cases() / 8;
}
