//! Unit tests of `mapping::source::simple_yaml`.

use super::*;
use crate::mapping::source::yaml::parse_any;
use std::fs;
use std::path::{Path, PathBuf};

const FILE: FileId = FileId(7);

/// Whether it was simple. The node must be the one of serde-saphyr.
fn is_simple(name: &str, text: &str) -> bool {
    let Some(node) = parse(FILE, text) else { return false };
    let expected = parse_any(FILE, text);
    assert_eq!(format!("{:?}", Ok::<_, ()>(node)), format!("{expected:?}"), "{name}: {text}");
    true
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "yaml" || e == "json") {
            found.push(path);
        }
    }
}

#[test]
fn all_shipped_files_are_simple_and_parsed_as_by_the_library() {
    let mut paths = Vec::new();
    ["mappings", "schemas"].iter().for_each(|folder| files(Path::new(folder), &mut paths));
    assert!(paths.len() > 80);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        assert!(is_simple(&path.display().to_string(), &text), "{}", path.display());
    }
}

#[test]
fn the_files_of_the_tests_are_parsed_as_by_the_library() {
    let mut paths = Vec::new();
    files(Path::new("tests"), &mut paths);
    let simple = paths
        .iter()
        .filter(|path| fs::read_to_string(path).is_ok_and(|text| is_simple(&path.display().to_string(), &text)));
    let simple = simple.count();
    assert!(simple > 400, "{simple} of {} files are simple", paths.len());
}

#[test]
fn every_form_is_parsed_as_by_the_library_or_left_to_it() {
    let scalars = [
        "",
        "~",
        "null",
        "Null",
        "nULL",
        "nullx",
        "true",
        "TRUE",
        "False",
        "yes",
        "no",
        "on",
        "y",
        "=",
        "0",
        "-0",
        "+0",
        "00",
        "007",
        "-7",
        "+7",
        "12",
        "999999999999999",
        "9999999999999999",
        "99999999999999999999",
        "-99999999999999999999",
        "1_000",
        "0x1F",
        "0X1f",
        "0o17",
        "0b11",
        "0xZZ",
        "1.5",
        "-1.5",
        "+1.5",
        "01.5",
        "1.",
        ".5",
        "1e5",
        "1E5",
        "1e",
        "1e999",
        "e5",
        ".inf",
        "-.INF",
        ".nan",
        "nan",
        "inf",
        "-inf",
        "+infinity",
        "infinity",
        "-nan",
        "15m",
        "600s",
        "16MiB",
        "0.0",
        "127.0.0.1:8080",
        "1.2.3",
        "2024-01-01",
        "1-2",
        "-",
        "- a",
        "-a",
        "--",
        "+",
        ".",
        "..",
        "...",
        "---",
        "a: b",
        "a:b",
        "a #b",
        "a#b",
        "\"a\\n\\u00e9\"",
        "'it''s'",
        "'1'",
        "\"true\"",
        "| \n  a",
        "|\n  a\n  b\n",
        ">\n  a\n  b\n\n  c\n",
        "|+\n  a\n\n",
        "&x 1",
        "*x",
        "!!str 1",
        "!a b",
        "[1, 'a', [], {}]",
        "{a: 1, b: {c: }}",
        "{a, b: 1}",
        "[a: 1]",
        "{a: 1, a: 2}",
        "{1: a, '1': b}",
        "{1: a, 01: b}",
        "{true: 1}",
        "{~: 1}",
        "{<<: {a: 1}}",
        "{'<<': 1}",
        "{? a : b}",
        "{[1]: 2}",
        "a\n b\n c",
        "é🙂",
        "\"é🙂\" ",
        "[1, 2",
        "{a",
        "'a",
        "\"a",
        "@a",
        "`a",
        "%a",
        "{{ a }}",
        "0 1",
        "\t1",
    ];
    let forms = [
        "{}",
        "k: {}",
        "k: {}\n",
        "- {}\n- 2\n",
        "k:\n  - {}\n  - l: {}\n    m: 1\n",
        "{}: v\n",
        "a: 1\n{}: v\n",
        "---\n{}\n",
        "--- {}",
        "{}\n...\n",
        "{}\n---\nb\n",
        "%YAML 1.2\n---\n{}\n",
        "# c\n\n{} # d\n# e",
        "\u{feff}k: {}\n",
        "é: {} # ü\nz: {}\n",
        "k: [{}, 1]",
        "k: {q: {}}",
        "k: {}\r\nl: 1\r\n",
        "k: {}\nk: 1\n",
        "  k: {}\n  l: {}\n",
        "k:\n- {}\n",
        "k: a\n {}\n",
    ];
    let (mut simple, mut all) = (0, 0);
    for scalar in scalars {
        for form in forms {
            all += 1;
            let text = form.replacen("{}", scalar, 1).replacen("{}", scalar, 1);
            simple += usize::from(is_simple(form, &text));
        }
    }
    assert!(simple * 3 > all, "{simple} of {all} are simple");
}

#[test]
fn what_is_near_a_limit_is_left_to_the_library() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(is_simple("deep", &deep(MOST_LEVELS)) && !is_simple("deep", &deep(MOST_LEVELS + 1)));
    assert!(is_simple("long", &"- 1\n".repeat(MOST_EVENTS - 6)) && !is_simple("long", &"- 1\n".repeat(MOST_EVENTS)));
    assert!(is_simple("comments", &format!("{}a: 1\n", "# c\n".repeat(2_000))));
}
