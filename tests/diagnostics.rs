//! What a person is told about a mistake, word for word: a folder per mistake in tests/diagnostics/.
//!
//! A folder holds the files that are laid over the small set tests/diagnostics/mappings, as `reframe check --add FOLDER`
//! does when it is run there, and `expected.txt`, what that prints. `arguments.txt` replaces the arguments. Adding a
//! case compiles nothing; UPDATE_GOLDEN=1 writes what is printed into expected.txt. How far the set got and where to
//! read on is left out of it: that is the same for every mistake of a kind, and stands in tests/commands/.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe::cli::check;
use reframe::diagnostics::{Code, FileId, Findings, Page, Phase};
use reframe::mapping::source::yaml;
use reframe::reload::{Base, Layers};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SET: &str = "mappings";
/// The cases that are not about one mistake: several, or none.
const SEVERAL: &[&str] = &[
    "eight-mistakes-in-three-files",
    "an-order-that-a-transcript-violates",
    "nothing-is-wrong",
    "what-a-client-is-not-told-by-its-own-choice",
    "what-a-dialect-cannot-say",
    "what-is-meant-is-not-warned-of",
];

#[test]
fn every_mistake_is_told_as_expected() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let (text, code) = printed(&case);
        let text = findings(&text);
        if update {
            fs::write(case.join("expected.txt"), &text).unwrap();
        }
        let expected = expected(&case);
        if text != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- printed\n{text}", case.display()));
        }
        let meaning = match text.lines().last().unwrap_or_default() {
            line if line.contains(": 0 errors, ") => 0,
            line if line.contains(" error") && line.contains(" file") => 1,
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
        .map(|case| (case, mistakes(&expected(case)).len()))
        .filter(|(_, found)| *found != 1)
        .map(|(case, found)| format!("{}: {found} findings", case.display()))
        .collect();
    assert!(several.is_empty(), "{}", several.join("\n"));
}

/// A phase fails if and only if something of it is found; what was not reached is not ticked.
#[test]
fn the_phases_agree_with_what_is_found() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (text, exit) = printed(&case);
        let ticks: Vec<(char, &str)> = text.lines().filter_map(phase).collect();
        let names: Vec<&str> = ticks.iter().map(|(_, name)| *name).collect();
        // Bad arguments are no set.
        if names.is_empty() && text.starts_with("error: ") && exit == 2 {
            continue;
        }
        assert_eq!(names, Phase::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>(), "{text}");
        let in_test =
            [".test.yaml:", ".test.yaml\n"].iter().any(|file| text.contains(file)) && !text.contains("✗ parse");
        let found = errors(&text).into_iter().map(|code| match exit {
            2 => Phase::Read,
            _ if in_test => Phase::Test,
            _ => Code::ALL.iter().find(|c| code == format!("[{}", c.as_str())).unwrap().phase(),
        });
        let mut found: Vec<&str> = found.map(Phase::as_str).collect();
        found.sort_unstable();
        found.dedup();
        let mut failed: Vec<&str> = ticks.iter().filter(|(tick, _)| *tick == '✗').map(|(_, name)| *name).collect();
        failed.sort_unstable();
        let passed = ticks.iter().all(|(tick, _)| ['✓', '!'].contains(tick));
        if found != failed || (exit == 0) != passed {
            wrong.push(format!("{}: errors of {found:?}\n{text}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The four formats differ in their look, and in nothing else.
#[test]
fn every_format_tells_the_same_findings() {
    for case in [
        "eight-mistakes-in-three-files",
        "an-unknown-variable-after-wide-characters",
        "windows-line-ends",
        "an-empty-transcript",
        "a-broken-gateway",
        "a-schema-that-lets-anything-pass",
        "not-utf-8",
        "nothing-is-wrong",
    ] {
        let (human, exit) = printed(&root().join(case));
        let places = human.lines().filter_map(|line| line.trim_start().strip_prefix("--> "));
        let mut places: Vec<String> = places.map(str::to_owned).collect();
        let told = |format| program(&["--add", case, "--format", format]);
        let ((json, code), (github, _), (sarif, _)) = (told("json"), told("github"), told("sarif"));
        let (json, sarif) = (parsed(&json), parsed(&sarif));
        assert_eq!((json["summary"]["exit"].as_u64(), code), (Some(exit.into()), exit), "{case}");

        let spot = |at: &Value, [file, line, column]: [&str; 3]| {
            let file = at[file].as_str().unwrap();
            // A file as a whole has no line.
            at[line].as_u64().map_or(file.to_owned(), |line| format!("{file}:{line}:{}", at[column]))
        };
        let findings = json["findings"].as_array().unwrap();
        let in_json: Vec<String> = findings.iter().map(|f| spot(f, ["file", "line", "column"])).collect();
        assert_eq!(in_json, places, "{case}");

        let run = &sarif["runs"][0];
        let in_sarif = run["results"].as_array().unwrap().iter().map(|result| {
            let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"], "{case}");
            assert_eq!(rule["defaultConfiguration"]["level"], result["level"], "{case}");
            let place = &result["locations"][0]["physicalLocation"];
            let mut at = place["region"].clone();
            at["file"] = place["artifactLocation"]["uri"].clone();
            spot(&at, ["file", "startLine", "startColumn"])
        });
        assert_eq!(in_sarif.collect::<Vec<_>>(), places, "{case}");

        let in_github = github.lines().filter(|line| line.starts_with("::")).map(|line| {
            let of = |name: &str| line.split([',', ' ', ':']).find_map(|p| p.strip_prefix(&format!("{name}=")));
            [of("file"), of("line"), of("col")].into_iter().flatten().collect::<Vec<_>>().join(":")
        });
        places.sort();
        let mut in_github: Vec<String> = in_github.collect();
        in_github.sort();
        assert_eq!(in_github, places, "{case}");
    }
}

/// A place in the binary is no file: it is said in the text, and what has to name a file names one of the person's own.
#[test]
fn a_place_in_the_binary_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("own")).unwrap();
    fs::write(folder.path().join("own/shared.yaml"), "parts: { model: { id: \"{{ model.id }}\" } }\n").unwrap();
    let told = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
        let output = command.args(["check", "--add", "own", "--format", format]).current_dir(folder.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let github = told("github");
    assert!(github.starts_with("::error title=RF107::no part is called `openai_error`%0A"), "{github}");
    assert!(github.contains("%0Ain (embedded) mappings/dialects/chat.yaml:"), "{github}");
    let result = &parsed(&told("sarif"))["runs"][0]["results"][0];
    let expected = serde_json::json!([{ "physicalLocation": { "artifactLocation": { "uri": "own/shared.yaml" } } }]);
    assert_eq!(result["locations"], expected);
    assert!(result["message"]["text"].as_str().unwrap().contains("\nin (embedded) "), "{result}");
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The example of a page is wrong in some case of this folder, and what the page says instead makes that case right.
#[test]
fn every_mend_mends() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let page = Page::of(*code);
        let blocks = ["Example", "Mend"].map(|name| block(page.section(name).unwrap()));
        let [Some(example), Some(mend)] = blocks else { continue };
        tried += 1;
        let shows = |case: &PathBuf| expected(case).contains(&format!("[{}]", code.as_str()));
        let of_code: Vec<PathBuf> = cases().into_iter().filter(shows).collect();
        let outcomes: Vec<String> = of_code.iter().filter_map(|case| mended(case, example, mend)).collect();
        if !outcomes.iter().any(|text| text.contains(": 0 errors, ") && !text.contains(code.as_str())) {
            wrong.push(format!("{}: `{example}` → `{mend}`\n{}", code.as_str(), outcomes.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 30, "only {tried} pages show the mistake and what to write instead");
}

/// What is said of a case in which `wrong` is replaced; nothing if it does not stand there.
fn mended(case: &Path, wrong: &str, right: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut replaced = false;
    for file in files_of(case) {
        let text = fs::read_to_string(&file).unwrap();
        let copy = folder.path().join(file.strip_prefix(case).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        replaced |= text.contains(wrong);
        fs::write(copy, text.replacen(wrong, right, 1)).unwrap();
    }
    replaced.then(|| check::report(&over_the_set(folder.path()), false).0)
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

/// The first block of code, if it is one that a file could hold.
fn block(markdown: &str) -> Option<&str> {
    let (_, after) = markdown.split_once("```")?;
    let (language, after) = after.split_once('\n')?;
    let (code, _) = after.split_once("\n```")?;
    ["yaml", "json", "jsonl"].contains(&language).then_some(code)
}

/// docs/diagnostics.md is made from the pages and the cases. UPDATE_GOLDEN=1 writes it.
#[test]
fn the_list_of_diagnostics_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md");
    let text = reference();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let now = fs::read_to_string(&path).unwrap_or_default();
    assert!(now == text, "docs/diagnostics.md is stale; UPDATE_GOLDEN=1 cargo test --test diagnostics writes it");
}

fn reference() -> String {
    let mut text = String::from(
        "# Diagnostics\n\nEverything that `reframe check` can find. `reframe check --explain CODE` prints the same pages, without \
         \"What is printed\". \
         A code is never used again for something else.\nMade from `src/diag/pages/`, the lints in `src/mapping/lint/` \
         and `tests/diagnostics/`: do not edit.\n\n| code | severity | phase | about |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let (name, severity, phase) = (code.as_str(), code.severity().as_str(), code.phase().as_str());
        let anchor = name.to_lowercase();
        text.push_str(&format!("| [{name}](#{anchor}) | {severity} | {phase} | {} |\n", code.about()));
    }
    for code in Code::ALL {
        let page = Page::of(*code);
        text.push_str(&format!("\n## {}\n\n{}\n", code.as_str(), page.sentence()));
        for name in ["Why", "Example", "Mend"] {
            let section = page.section(name).unwrap();
            let gap = if section.starts_with("```") { "\n\n" } else { " " };
            text.push_str(&format!("\n**{name}:**{gap}{section}\n"));
        }
        if let Some(said) = simplest(&page) {
            text.push_str(&format!("\n**What is printed:**\n\n```text\n{said}\n```\n"));
        }
    }
    ["mappings.md", "mapping-reference.md"]
        .iter()
        .fold(text, |text, file| text.replace(&format!("docs/{file}"), &format!("[{file}]({file})")))
}

/// What is said where the page's own example stands, or else in the case that says the least.
fn simplest(page: &Page) -> Option<String> {
    let example = page.section("Example").and_then(block);
    let said = cases().into_iter().filter_map(|case| {
        let text = expected(&case);
        let said = text.lines().filter(|l| ["error[", "warning[", "note["].iter().any(|s| l.starts_with(s)));
        if !said.map(|line| line.contains(&format!("[{}]", page.code.as_str()))).eq([true]) {
            return None;
        }
        let shows = |example| files_of(&case).iter().any(|f| fs::read_to_string(f).is_ok_and(|t| t.contains(example)));
        let (without_sum, _) = text.rsplit_once("\n\n")?;
        Some((!example.is_some_and(shows), without_sum.len(), without_sum.to_owned()))
    });
    said.min().map(|(.., text)| text)
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
    let mut codes: Vec<&str> = mistakes(&text);
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
    let expected = format!(
        "error[RF004]: {path} has 2097152 bytes, and at most 1048576 are read\n--> {path}\n\n\
         the set cannot be read: 1 error, 0 warnings\n"
    );
    assert_eq!((findings(&text), code), (expected, 2));
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

/// `✓ test      19 passed`: the tick, and the phase.
fn phase(line: &str) -> Option<(char, &str)> {
    let (tick, rest) = line.split_once(' ')?;
    let tick = ['✓', '✗', '!', '–'].into_iter().find(|known| tick == known.to_string())?;
    Some((tick, rest.split(' ').next()?))
}

/// Without how far the set got, and where to read on.
fn findings(text: &str) -> String {
    let more = |line: &str| line.starts_with("`reframe check --explain ");
    text.split_inclusive('\n').filter(|line| phase(line).is_none() && !more(line)).collect()
}

/// The codes of the errors in a text.
fn errors(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("error").map(|l| l.split(']').next().unwrap())).collect()
}

/// The same, warnings too.
fn mistakes(text: &str) -> Vec<&str> {
    let found = |line: &'_ str| line.starts_with("error") || line.starts_with("warning");
    text.lines().filter(|line| found(line)).map(|line| line.split(']').next().unwrap()).collect()
}
