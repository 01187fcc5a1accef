//! Golden diagnostics: one folder per mistake in tests/diagnostics/.
//!
//! A folder holds files that are added to the small set tests/diagnostics/mappings by `reframe check --add FOLDER`, and
//! `expected.txt` with the output. `arguments.txt` replaces the arguments. A new case needs no compilation;
//! UPDATE_GOLDEN=1 writes the output into expected.txt. The lines of the phases and the hint at `--explain` are omitted:
//! they are the same for every mistake of a kind and are covered by tests/commands/.

use reframe::testing::cli::check;
use reframe::testing::diagnostics::{Code, CodePage, FileId, Findings, Phase};
use reframe::testing::mapping::source::yaml;
use reframe::testing::reload::{Base, Layers};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SET: &str = "mappings";
/// Cases with several mistakes, or none.
const NOT_ONE_MISTAKE: &[&str] = &[
    "eight-mistakes-in-three-files",
    "an-order-that-a-transcript-violates",
    "nothing-is-wrong",
    "a-dialect-without-a-route",
    "a-profile-that-changes-the-index-law",
    "old-keys-and-values",
    "losses-selected-by-the-client",
    "losses-of-a-dialect",
    "intended-settings-without-warnings",
    "a-secret-next-to-a-mistake",
    "a-dialect-without-its-name",
    "a-misspelt-dialect-with-other-mistakes",
    "a-route-without-an-endpoint",
    "limits-out-of-range",
];

#[test]
fn every_mistake_gives_its_golden_diagnostics() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let (text, code) = check_output(&case);
        let text = findings(&text);
        if update {
            fs::write(case.join("expected.txt"), &text).unwrap();
        }
        let expected = expected(&case);
        if text != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- printed\n{text}", case.display()));
        }
        let expected_code = match text.lines().last().unwrap_or_default() {
            line if line.contains(": 0 errors, ") => 0,
            line if line.contains(" error") && line.contains(" file") => 1,
            _ => 2,
        };
        if code != expected_code {
            wrong.push(format!("{}: exit {code}, and not {expected_code}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\nUPDATE_GOLDEN=1 accepts what is printed", wrong.join("\n"));
}

#[test]
fn every_code_has_a_case() {
    let texts: Vec<String> = cases().iter().map(|case| expected(case)).collect();
    let uncovered: Vec<&str> = Code::ALL
        .iter()
        .map(|code| code.as_str())
        // A loss is not a finding; it has its own lines.
        .map(|code| (code, if code == Code::Loss.as_str() { "loss: ".to_owned() } else { format!("[{code}]") }))
        .filter(|(_, shown)| !texts.iter().any(|text| text.contains(shown)))
        .map(|(code, _)| code)
        .collect();
    assert!(uncovered.is_empty(), "no case shows {}", uncovered.join(", "));
}

#[test]
fn one_mistake_is_one_finding() {
    let several: Vec<String> = cases()
        .iter()
        .filter(|case| !NOT_ONE_MISTAKE.iter().any(|name| case.ends_with(name)))
        .map(|case| (case, mistakes(&expected(case)).len()))
        .filter(|(_, found)| *found != 1)
        .map(|(case, found)| format!("{}: {found} findings", case.display()))
        .collect();
    assert!(several.is_empty(), "{}", several.join("\n"));
}

/// A phase fails if and only if it has errors; a phase that was not reached is not marked as passed.
#[test]
fn the_phases_agree_with_the_findings() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in cases() {
        let (text, exit) = check_output(&case);
        let marks: Vec<(char, &str)> = text.lines().filter_map(phase).collect();
        let names: Vec<&str> = marks.iter().map(|(_, name)| *name).collect();
        // With bad arguments no set is checked.
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
        let mut failed: Vec<&str> = marks.iter().filter(|(mark, _)| *mark == '✗').map(|(_, name)| *name).collect();
        failed.sort_unstable();
        let passed = marks.iter().all(|(mark, _)| ['✓', '!'].contains(mark));
        if found != failed || (exit == 0) != passed {
            wrong.push(format!("{}: errors of {found:?}\n{text}", case.display()));
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 100, "only {compared} cases have phases");
}

/// All formats have the same findings and locations.
#[test]
fn every_format_reports_the_same_findings() {
    for case in [
        "eight-mistakes-in-three-files",
        "an-unknown-variable-after-wide-characters",
        "windows-line-ends",
        "an-empty-transcript",
        "a-broken-gateway",
        "a-schema-that-accepts-anything",
        "not-utf-8",
        "nothing-is-wrong",
    ] {
        let (human, exit) = check_output(&root().join(case));
        let places = human.lines().filter_map(|line| line.trim_start().strip_prefix("--> "));
        let mut places: Vec<String> = places.map(str::to_owned).collect();
        let output = |format| run_check(&["--add", case, "--format", format]);
        let ((json, code), (github, _), (sarif, _)) = (output("json"), output("github"), output("sarif"));
        let (json, sarif) = (parsed(&json), parsed(&sarif));
        assert_eq!((json["summary"]["exit"].as_u64(), code), (Some(exit.into()), exit), "{case}");

        let location = |at: &Value, [file, line, column]: [&str; 3]| {
            let file = at[file].as_str().unwrap();
            // An error of a file as a whole has no line.
            at[line].as_u64().map_or(file.to_owned(), |line| format!("{file}:{line}:{}", at[column]))
        };
        let findings = json["findings"].as_array().unwrap();
        let in_json: Vec<String> = findings.iter().map(|f| location(f, ["file", "line", "column"])).collect();
        assert_eq!(in_json, places, "{case}");

        let run = &sarif["runs"][0];
        let in_sarif = run["results"].as_array().unwrap().iter().map(|result| {
            let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"], "{case}");
            assert_eq!(rule["defaultConfiguration"]["level"], result["level"], "{case}");
            let place = &result["locations"][0]["physicalLocation"];
            let mut at = place["region"].clone();
            at["file"] = place["artifactLocation"]["uri"].clone();
            location(&at, ["file", "startLine", "startColumn"])
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

/// A location in an embedded file is in the message text; formats that require a file name one of the set's own files.
#[test]
fn a_location_in_an_embedded_file_is_in_the_text() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("own")).unwrap();
    fs::write(folder.path().join("own/shared.yaml"), "fragments: { openai_error: $remove }\n").unwrap();
    let output = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
        let output = command.args(["check", "--add", "own", "--format", format]).current_dir(folder.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let github = output("github");
    assert!(github.starts_with("::error title=RF107::unknown fragment `openai_error`%0A"), "{github}");
    assert!(github.contains("%0Ain (embedded) mappings/dialects/chat.yaml:"), "{github}");
    let result = &parsed(&output("sarif"))["runs"][0]["results"][0];
    let expected = serde_json::json!([{ "physicalLocation": { "artifactLocation": { "uri": "own/shared.yaml" } } }]);
    assert_eq!(result["locations"], expected);
    assert!(result["message"]["text"].as_str().unwrap().contains("\nin (embedded) "), "{result}");
}

/// A gateway that is added to a set need not use everything that the set defines.
#[test]
fn unused_definitions_below_the_gateway_are_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = fs::read_to_string(root().join("mappings/gateway.yaml")).unwrap();
    fs::write(folder.path().join("gateway.yaml"), gateway).unwrap();
    let layers = Layers { base: Base::Embedded, add: vec![folder.path().to_owned()] };
    let (text, exit) = check::report(&layers, false);
    assert!(!text.contains("RF204") && exit == 0, "{text}");
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The example of each page occurs in some case, and replacing it by the page's fix removes the diagnostic.
#[test]
fn every_documented_fix_works() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let page = CodePage::of(*code);
        let blocks = ["Example", "Fix"].map(|name| block(page.section(name).unwrap()));
        let [Some(example), Some(fix)] = blocks else { continue };
        tried += 1;
        let shows = |case: &PathBuf| expected(case).contains(&format!("[{}]", code.as_str()));
        let of_code: Vec<PathBuf> = cases().into_iter().filter(shows).collect();
        let outcomes: Vec<String> = of_code.iter().filter_map(|case| check_with_fix(case, example, fix)).collect();
        if !outcomes.iter().any(|text| text.contains(": 0 errors, ") && !text.contains(code.as_str())) {
            wrong.push(format!("{}: `{example}` → `{fix}`\n{}", code.as_str(), outcomes.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 30, "only {tried} pages show the mistake and what to write instead");
}

/// The output for a case with `wrong` replaced by `right`; none if the case does not contain `wrong`.
fn check_with_fix(case: &Path, wrong: &str, right: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut replaced = false;
    for file in files_of(case) {
        let text = fs::read_to_string(&file).unwrap();
        let copy = folder.path().join(file.strip_prefix(case).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        replaced |= text.contains(wrong);
        fs::write(copy, text.replacen(wrong, right, 1)).unwrap();
    }
    replaced.then(|| report_with(folder.path()).0)
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

/// The first code block, if it is YAML or JSON.
fn block(markdown: &str) -> Option<&str> {
    let (_, after) = markdown.split_once("```")?;
    let (language, after) = after.split_once('\n')?;
    let (code, _) = after.split_once("\n```")?;
    ["yaml", "json", "jsonl"].contains(&language).then_some(code)
}

/// docs/diagnostics.md is generated from the pages and the cases. UPDATE_GOLDEN=1 writes it.
#[test]
fn the_list_of_diagnostics_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md");
    let text = reference();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let now = fs::read_to_string(&path).unwrap_or_default();
    assert!(now == text, "docs/diagnostics.md is stale; UPDATE_GOLDEN=1 cargo test --test it diagnostics:: writes it");
}

fn reference() -> String {
    let mut text = String::from(
        "# Diagnostics\n\nAll diagnostics of `reframe check`. `reframe check --explain CODE` prints the same pages, without \
         the output.\nA code is never reused. Generated from `src/diagnostics/docs/`, the lints in `src/mapping/lint/` and\n\
         `tests/diagnostics/`; do not edit.\n\n| code | severity | phase | meaning |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let (name, severity, phase) = (code.as_str(), code.severity().as_str(), code.phase().as_str());
        let anchor = name.to_lowercase();
        text.push_str(&format!("| [{name}](#{anchor}) | {severity} | {phase} | {} |\n", code.about()));
    }
    for code in Code::ALL {
        let page = CodePage::of(*code);
        text.push_str(&format!("\n## {}\n\n{}\n", code.as_str(), page.sentence()));
        for name in ["Why", "Example", "Fix"] {
            let section = page.section(name).unwrap();
            text.push_str(&format!("\n**{name}**\n\n{section}\n"));
        }
        if let Some(output) = simplest(*code) {
            text.push_str(&format!("\n**Output:**\n\n```text\n{output}\n```\n"));
        }
    }
    let chapters = [
        "README",
        "concepts",
        "gateway",
        "backends",
        "rules",
        "dialects",
        "templates",
        "schemas",
        "policies",
        "testing",
        "reference",
    ];
    chapters
        .iter()
        .map(|chapter| format!("mappings/{chapter}.md"))
        .fold(text, |text, file| text.replace(&format!("docs/{file}"), &format!("[{file}]({file})")))
}

/// The output of the case with the page's own example, or else of the case with the shortest output.
fn simplest(code: Code) -> Option<String> {
    let page = CodePage::of(code);
    let example = page.section("Example").and_then(block);
    let candidates = cases().into_iter().filter_map(|case| {
        let text = expected(&case);
        let headlines = text.lines().filter(|l| ["error[", "warning[", "note["].iter().any(|s| l.starts_with(s)));
        if !headlines.map(|line| line.contains(&format!("[{}]", code.as_str()))).eq([true]) {
            return None;
        }
        let shows = |example| files_of(&case).iter().any(|f| fs::read_to_string(f).is_ok_and(|t| t.contains(example)));
        let (without_sum, _) = text.rsplit_once("\n\n")?;
        Some((!example.is_some_and(shows), without_sum.len(), without_sum.to_owned()))
    });
    candidates.min().map(|(.., text)| text)
}

#[test]
fn all_mistakes_are_reported_at_once_in_order() {
    let (text, _) = check_output(&root().join(NOT_ONE_MISTAKE[0]));
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
fn an_alias_bomb_is_rejected_quickly() {
    let text = fs::read_to_string(root().join("an-alias-bomb/dialects/pirate.yaml")).unwrap();
    let (wall, start) = (Instant::now(), busy());
    assert!(yaml::parse(FileId(0), &text, &Findings::default()).is_none());
    let spent = match (start, busy()) {
        (Some(start), Some(end)) => end - start,
        _ => wall.elapsed(),
    };
    assert!(spent < Duration::from_millis(200), "{spent:?}");
}

/// The CPU time of this thread, which does not depend on the load of the machine.
fn busy() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[test]
fn a_file_of_two_mebibytes_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("dialects")).unwrap();
    fs::write(folder.path().join("dialects/big.yaml"), vec![b'#'; 2 << 20]).unwrap();
    let (text, code) = report_with(folder.path());
    let path = format!("{}/dialects/big.yaml", folder.path().display());
    let expected = format!(
        "error[RF004]: {path} has 2097152 bytes; the limit is 1048576\n--> {path}\n\n\
         the set cannot be read: 1 error, 0 warnings\n"
    );
    assert_eq!((findings(&text), code), (expected, 2));
}

#[test]
fn the_shipped_set_has_no_findings() {
    let (text, code) = check::report(&Layers { base: Base::Embedded, add: Vec::new() }, false);
    assert_eq!((code, text.contains(": 0 errors, 0 warnings")), (0, true), "{text}");
}

#[test]
fn the_shipped_set_has_no_findings_with_any_profile_or_example() {
    let (example, house) = ("examples/parrot", "examples/house-rules");
    let all: [&[&str]; 5] = [
        &["--profile", "codex-proxy"],
        &["--add", example],
        &["--add", house],
        &["--add", house, "--profile", "house"],
        &["--add", example, "--profile", "codex-proxy"],
    ];
    for arguments in all {
        let (text, code) = run_check_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments);
        assert_eq!((code, text.contains(": 0 errors, 0 warnings")), (0, true), "{arguments:?}\n{text}");
    }
}

/// Same output and same exit code.
#[test]
fn the_binary_and_the_library_report_the_same() {
    for case in ["an-unknown-variable", "nothing-is-wrong", "not-utf-8"] {
        let case = root().join(case);
        let name = case.file_name().unwrap().to_str().unwrap();
        assert_eq!(run_check(&["--add", name]), check_output(&case));
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

/// The output of `reframe check` and its exit code.
fn check_output(case: &Path) -> (String, u8) {
    match fs::read_to_string(case.join("arguments.txt")) {
        Ok(arguments) => run_check(&arguments.split_whitespace().collect::<Vec<_>>()),
        Err(_) => report_with(case),
    }
}

/// `reframe check --add FOLDER` in this process. The output is as in the folder of the cases, with relative paths; the
/// working folder of the process stays as it is, because other tests run at the same time.
fn report_with(folder: &Path) -> (String, u8) {
    let layers = Layers { base: Base::Folder(root().join(SET)), add: vec![folder.to_owned()] };
    let (text, code) = check::report(&layers, false);
    (text.replace(&format!("{}/", root().display()), ""), code)
}

fn run_check(arguments: &[&str]) -> (String, u8) {
    run_check_in(&root(), arguments)
}

fn run_check_in(folder: &Path, arguments: &[&str]) -> (String, u8) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_reframe")).arg("check").args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code().unwrap() as u8)
}

/// `✓ test      19 passed`: the mark and the phase.
fn phase(line: &str) -> Option<(char, &str)> {
    let (mark, rest) = line.split_once(' ')?;
    let mark = ['✓', '✗', '!', '–'].into_iter().find(|known| mark == known.to_string())?;
    Some((mark, rest.split(' ').next()?))
}

/// Removes the lines of the phases, the hint at `--explain`, and the overrides: every case replaces some file.
fn findings(text: &str) -> String {
    let more = |line: &str| line.starts_with("run `reframe check --explain ");
    let mut kept = String::new();
    let mut lines = text.split_inclusive('\n').filter(|line| phase(line).is_none() && !more(line)).peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with("override: ") {
            kept.push_str(line);
        } else if lines.peek() == Some(&"\n") {
            lines.next();
        }
    }
    kept
}

/// The codes of the errors in a text.
fn errors(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("error").map(|l| l.split(']').next().unwrap())).collect()
}

/// The codes of errors and warnings.
fn mistakes(text: &str) -> Vec<&str> {
    let found = |line: &'_ str| line.starts_with("error") || line.starts_with("warning");
    text.lines().filter(|line| found(line)).map(|line| line.split(']').next().unwrap()).collect()
}
