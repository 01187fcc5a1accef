//! Golden transcripts: `tests/transcripts/BACKEND/CASE/` holds `events.jsonl`, `request.json` (one body per dialect) and
//! the output of each dialect: `chat.sse`, `chat.json`; with another profile `chat@PROFILE.sse`. A prefix such as
//! `a03-` or `b063-` is the number of the case and has no other meaning: tests/transcripts/README.md.
//!
//! A new case needs no compilation. `UPDATE_GOLDEN=1 cargo test --test it golden::` writes files that are missing or
//! differ: review the diff before you commit it.

use crate::support::replay::{self, LoadedSet, StreamOutput};
use reframe::testing::engine::pipeline::RenderMode;
use std::fs;
use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut cases = Vec::new();
    for backend in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for case in fs::read_dir(backend).unwrap() {
            cases.push(case.unwrap().path());
        }
    }
    cases.sort();
    cases
}

/// Profiles that are compared in every case.
const MAIN_PROFILES: [&str; 2] = ["openai", "codex-proxy"];

/// A profile that is compared in every case of a backend.
const WITH_ITS_BACKEND: [(&str, &str); 1] = [("codex-completions-api", "codex-legacy")];

/// The others are compared in the cases of two backends that every backend has. They have a golden only where they differ
/// from `openai`.
fn is_compared(case: &Path, profile: &str) -> bool {
    let (name, backend) = (case.file_name().unwrap(), case.parent().unwrap());
    let is_common = name.to_str().unwrap().starts_with("matrix-");
    MAIN_PROFILES.contains(&profile)
        || is_common && ["openai-chat", "codex-app-server"].iter().any(|name| backend.ends_with(name))
        || WITH_ITS_BACKEND.iter().any(|(name, with)| *name == profile && backend.ends_with(with))
}

/// A case is run in every dialect that its request has a body for, with every profile.
#[test]
fn every_transcript_gives_its_golden_output() {
    let set = LoadedSet::embedded();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in cases() {
        let readme = fs::read_to_string(case.join("README.md")).unwrap_or_else(|_| {
            wrong.push(format!("{}: a case needs a README.md that describes it", case.display()));
            String::new()
        });
        let transcript = replay::transcript(&case.join("events.jsonl"));
        let requests = replay::requests(&case.join("request.json"));
        for (dialect, profile) in set.pairs() {
            let Some(body) = requests.get(&dialect).filter(|_| is_compared(&case, &profile)) else { continue };
            let stem = if profile == "openai" { dialect.clone() } else { format!("{dialect}@{profile}") };
            let stream = set.stream(&transcript, &dialect, &profile, body);
            let json = set.body(&transcript, &dialect, &profile, body);
            for (file, got) in [(format!("{stem}.sse"), stream.text()), (format!("{stem}.json"), json)] {
                let mut path = case.join(&file);
                let own = case.join(file.replace(&format!("@{profile}"), ""));
                if !MAIN_PROFILES.contains(&&*profile) && fs::read_to_string(&own).is_ok_and(|text| text == got) {
                    assert!(!path.exists(), "{}: it is the same as {}", path.display(), own.display());
                    path = own;
                } else {
                    compared += 1;
                }
                let golden = fs::read_to_string(&path).unwrap_or_default();
                if golden == got {
                    continue;
                }
                if update {
                    fs::write(&path, &got).unwrap();
                } else {
                    wrong.push(report(&path, &readme, &golden, &got, &stream));
                }
            }
        }
    }
    println!("{compared} goldens compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let is_golden =
        |path: &Path| !path.ends_with("request.json") && path.extension().is_some_and(|e| e == "sse" || e == "json");
    let in_case =
        |case: &PathBuf| fs::read_dir(case).unwrap().filter(|e| is_golden(&e.as_ref().unwrap().path())).count();
    let goldens: usize = cases().iter().map(in_case).sum();
    assert!(compared > 800 && compared == goldens, "{compared} of {goldens} goldens were compared");
}

/// Frames from the cache, and frames written directly as bytes, equal those of the interpreter byte for byte.
#[test]
fn cached_frames_equal_those_of_the_interpreter() {
    let set = LoadedSet::embedded();
    let mut compared = 0;
    for case in cases() {
        let transcript = replay::transcript(&case.join("events.jsonl"));
        let requests = replay::requests(&case.join("request.json"));
        for (dialect, profile) in set.pairs() {
            let Some(body) = requests.get(&dialect) else { continue };
            let frames = set.stream(&transcript, &dialect, &profile, body).bytes;
            let [cached, interpreted] = [RenderMode::Cached, RenderMode::Interpreted]
                .map(|render_mode| set.bytes(render_mode, &transcript, &dialect, &profile, body));
            assert_eq!(text(&cached), text(&interpreted), "{} {dialect}@{profile}", case.display());
            assert_eq!(text(&cached), text(&frames), "{} {dialect}@{profile}", case.display());
            compared += usize::from(!cached.is_empty());
        }
    }
    assert!(compared > 100, "only {compared} streams were compared");
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The case's README, the first frame that differs, and the mapping line that produced it.
fn report(path: &Path, readme: &str, golden: &str, got: &str, stream: &StreamOutput) -> String {
    let separator = if path.extension().is_some_and(|e| e == "sse") { "\n\n" } else { "\n" };
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (golden.split(separator).collect(), got.split(separator).collect());
    let at = expected.iter().zip(&actual).position(|(e, a)| e != a).unwrap_or(expected.len().min(actual.len()));
    let rule = stream.rules.get(at).cloned().unwrap_or_default();
    format!(
        "{}\n{}\n  differs at {at} (made by {rule})\n  expected {}\n  got      {}",
        path.display(),
        readme.trim(),
        expected.get(at).unwrap_or(&"nothing"),
        actual.get(at).unwrap_or(&"nothing"),
    )
}
