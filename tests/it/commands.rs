//! Golden output of the commands: one folder per case in tests/commands/.
//!
//! `command.txt` holds the arguments of `reframe`, run in tests/commands/. `expected.txt` holds the output (standard
//! output, then standard error) and the exit code; times are replaced by N. A new case needs no compilation.
//! UPDATE_GOLDEN=1 writes the output into expected.txt.

use crate::support::in_parallel;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that are not cases but are used by cases.
const SHARED_FOLDERS: [&str; 2] = ["sets", "captures"];

#[test]
fn every_command_prints_its_golden_output() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let difference = |case: &PathBuf| {
        let printed = printed(case);
        let file = case.join("expected.txt");
        if update {
            fs::write(&file, &printed).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        (printed != expected).then(|| format!("{}\n--- expected\n{expected}\n--- printed\n{printed}", case.display()))
    };
    let wrong = in_parallel(&cases(), difference);
    assert!(wrong.is_empty(), "{}\nUPDATE_GOLDEN=1 accepts what is printed", wrong.join("\n"));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/commands")
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> =
        entries.filter(|path| path.is_dir() && !SHARED_FOLDERS.iter().any(|set| path.ends_with(set))).collect();
    cases.sort();
    assert!(cases.len() > 30, "the walk found only {} cases", cases.len());
    cases
}

fn printed(case: &Path) -> String {
    let arguments = fs::read_to_string(case.join("command.txt")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
    command
        .current_dir(root())
        .env("NO_COLOR", "1")
        .env_remove("REFRAME_API_KEY")
        .env_remove("PORT")
        .env_remove("REFRAME_ADMIN_TOKEN");
    // NAME=VALUE before the arguments is the environment, as in a shell. Arguments have no spaces.
    let mut words = arguments.split_whitespace().peekable();
    while let Some((name, value)) = words.peek().and_then(|w| w.split_once('=')).filter(|(n, _)| !n.starts_with('-')) {
        command.env(name, value);
        words.next();
    }
    let output = command.args(words).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    format!("{}exit {}\n", without_times(&text), output.status.code().unwrap())
}

/// Replaces the numbers in `12 ms`, `1.5 s`, `time="0.003"` and `"duration_ms": 0.3` by N.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let end = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest.len(), |n| at + n);
            let (before, number, after) = (&rest[..at], &rest[at..end], &rest[end..]);
            let unit = after.strip_prefix(' ').unwrap_or(after);
            let is_unit = |u: &str| unit.strip_prefix(u).is_some_and(|r| !r.starts_with(char::is_alphanumeric));
            let named = before.ends_with("time=\"") || before.ends_with("_ms\": ");
            let is_time = is_unit("ms") || is_unit("s") || is_unit("µs") || named;
            out.push_str(before);
            out.push_str(if is_time { "N" } else { number });
            rest = after;
        }
        out.push_str(rest);
    }
    out
}
