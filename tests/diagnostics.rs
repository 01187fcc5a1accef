//! What a person is told about a mistake, word for word: a folder per mistake in tests/diagnostics/.
//!
//! A folder holds the files that are laid over the small set tests/diagnostics/mappings, as `reframe check --add FOLDER`
//! does when it is run there, and `expected.txt`, what that prints. `arguments.txt` replaces the arguments. Adding a
//! case compiles nothing; UPDATE_GOLDEN=1 writes what is printed into expected.txt.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe::cli::check;
use reframe::diag::{Code, FileId, Findings};
use reframe::mapping::yaml;
use reframe::reload::{Base, Layers};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SET: &str = "mappings";
/// The cases that are not about one mistake: several, or none.
const SEVERAL: &[&str] = &[
    "eight-mistakes-in-three-files",
    "nothing-is-wrong",
    "what-a-dialect-cannot-say",
    "what-is-meant-is-not-warned-of",
];

#[test]
fn every_mistake_is_told_as_expected() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let (text, code) = printed(&case);
        if update {
            fs::write(case.join("expected.txt"), &text).unwrap();
        }
        let expected = expected(&case);
        if text != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- printed\n{text}", case.display()));
        }
        let meaning = match text.lines().last().unwrap_or_default() {
            line if line.contains(": 0 errors, ") => 0,
            line if line.contains(" error") && line.contains(" warning") => 1,
            _ => 2,
        };
        if code != meaning {
            wrong.push(format!("{}: exit {code}, and not {meaning}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\nUPDATE_GOLDEN=1 accepts what is printed", wrong.join("\n"));
}

#[test]
fn every_code_has_a_case() {
    let texts: Vec<String> = cases().iter().map(|case| expected(case)).collect();
    let bare: Vec<&str> = Code::ALL
        .iter()
        .map(|code| code.as_str())
        // A loss is no finding, and has lines of its own.
        .map(|code| (code, if code == Code::Loss.as_str() { "loss: ".to_owned() } else { format!("[{code}]") }))
        .filter(|(_, shown)| !texts.iter().any(|text| text.contains(shown)))
        .map(|(code, _)| code)
        .collect();
    assert!(bare.is_empty(), "no case shows {}", bare.join(", "));
}

#[test]
fn one_mistake_is_one_finding() {
    let several: Vec<String> = cases()
        .iter()
        .filter(|case| !SEVERAL.iter().any(|name| case.ends_with(name)))
        .map(|case| (case, findings(&expected(case)).len()))
        .filter(|(_, found)| *found != 1)
        .map(|(case, found)| format!("{}: {found} findings", case.display()))
        .collect();
    assert!(several.is_empty(), "{}", several.join("\n"));
}

#[test]
fn all_mistakes_are_told_at_once_by_file_and_place() {
    let (text, _) = printed(&root().join(SEVERAL[0]));
    let places: Vec<(&str, usize, usize)> = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--> "))
        .map(|place| {
            let [column, line, file] = place.rsplitn(3, ':').collect::<Vec<_>>()[..] else { panic!("{place}") };
            (file, line.parse().unwrap(), column.parse().unwrap())
        })
        .collect();
    let mut files: Vec<&str> = places.iter().map(|(file, ..)| *file).collect();
    files.dedup();
    let mut codes: Vec<&str> = findings(&text);
    codes.sort_unstable();
    codes.dedup();
    assert_eq!((places.len(), files.len()), (8, 3), "{text}");
    assert!(codes.len() >= 6, "{codes:?}");
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn an_alias_bomb_is_stopped_at_once() {
    let text = fs::read_to_string(root().join("an-alias-bomb/dialects/pirate.yaml")).unwrap();
    let (wall, start) = (Instant::now(), busy());
    assert!(yaml::parse(FileId(0), &text, &Findings::default()).is_none());
    let spent = match (start, busy()) {
        (Some(start), Some(end)) => end - start,
        _ => wall.elapsed(),
    };
    assert!(spent < Duration::from_millis(200), "{spent:?}");
}

/// How long this thread has run, without the time in which others did: the machine that tests is a busy one.
fn busy() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[test]
fn a_file_of_two_mebibytes_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("dialects")).unwrap();
    fs::write(folder.path().join("dialects/big.yaml"), vec![b'#'; 2 << 20]).unwrap();
    let (text, code) = check::report(&over_the_set(folder.path()), false);
    let path = format!("{}/dialects/big.yaml", folder.path().display());
    let expected = format!("error[RF004]: {path} has 2097152 bytes, and at most 1048576 are read\n--> {path}\n");
    assert_eq!((text, code), (expected, 2));
}

#[test]
fn what_reframe_comes_with_is_right() {
    let (text, code) = check::report(&Layers { base: Base::Embedded, add: Vec::new() }, false);
    assert_eq!((code, text.contains(": 0 errors, 0 warnings")), (0, true), "{text}");
}

#[test]
fn what_reframe_comes_with_is_right_under_every_profile_and_with_every_example() {
    let (example, house) = ("examples/parrot", "examples/house-rules");
    let all: [&[&str]; 5] = [
        &["--profile", "codex-proxy"],
        &["--add", example],
        &["--add", house],
        &["--add", house, "--profile", "house"],
        &["--add", example, "--profile", "codex-proxy"],
    ];
    for arguments in all {
        let (text, code) = program_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments);
        assert_eq!((code, text.contains(": 0 errors, 0 warnings")), (0, true), "{arguments:?}\n{text}");
    }
}

/// The program prints the same, and its exit code says the same.
#[test]
fn the_program_says_what_the_library_says() {
    for case in ["an-unknown-variable", "nothing-is-wrong", "not-utf-8"] {
        let case = root().join(case);
        let name = case.file_name().unwrap().to_str().unwrap();
        assert_eq!(program(&["--add", name]), printed(&case));
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !path.ends_with(SET))
        .collect();
    cases.sort();
    assert!(cases.len() > 100, "the walk found only {} cases", cases.len());
    cases
}

fn expected(case: &Path) -> String {
    fs::read_to_string(case.join("expected.txt")).unwrap_or_default()
}

/// What `reframe check` prints, and its exit code.
fn printed(case: &Path) -> (String, u8) {
    match fs::read_to_string(case.join("arguments.txt")) {
        Ok(arguments) => program(&arguments.split_whitespace().collect::<Vec<_>>()),
        Err(_) => check::report(&over_the_set(Path::new(case.file_name().unwrap())), false),
    }
}

/// Paths are relative, so that what is printed depends on no machine. All tests of this file stand in one folder.
fn over_the_set(folder: &Path) -> Layers {
    std::env::set_current_dir(root()).unwrap();
    Layers { base: Base::Folder(PathBuf::from(SET)), add: vec![folder.to_owned()] }
}

fn program(arguments: &[&str]) -> (String, u8) {
    program_in(&root(), arguments)
}

fn program_in(folder: &Path, arguments: &[&str]) -> (String, u8) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_reframe")).arg("check").args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code().unwrap() as u8)
}

/// The codes of the errors and warnings in a text.
fn findings(text: &str) -> Vec<&str> {
    let found = |line: &'_ str| line.starts_with("error") || line.starts_with("warning");
    text.lines().filter(|line| found(line)).map(|line| line.split(']').next().unwrap()).collect()
}
