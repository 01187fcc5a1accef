//! Conventions of the source tree: the direction of dependencies, a pure core, and no words of a dialect in Rust.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allowed dependencies between modules.
const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("diagnostics", &[]),
    ("turn", &["domain"]),
    ("order", &["domain"]),
    ("mapping", &["domain", "diagnostics", "order"]),
    ("engine", &["domain", "diagnostics", "mapping", "turn", "order"]),
    ("upstream", &["domain", "diagnostics", "mapping", "engine"]),
    ("verify", &["domain", "diagnostics", "mapping", "turn", "engine"]),
    ("capture", &["domain", "diagnostics", "mapping", "engine"]),
    ("openapi", &["domain", "mapping", "engine"]),
    ("reload", &["diagnostics", "mapping", "verify"]),
    ("telemetry", &[]),
    ("server", &["domain", "diagnostics", "mapping", "engine", "turn", "upstream", "reload", "telemetry", "openapi"]),
    (
        "cli",
        &[
            "domain",
            "diagnostics",
            "mapping",
            "engine",
            "turn",
            "upstream",
            "verify",
            "capture",
            "reload",
            "server",
            "telemetry",
            "openapi",
        ],
    ),
];

/// Modules without I/O, clock or randomness.
const PURE: &[&str] = &["domain", "diagnostics", "turn", "order", "mapping", "engine", "verify", "capture", "openapi"];

const IMPURE: &[&str] = &[
    "tokio",
    "poem::",
    "hyper",
    "std::env",
    "env::var",
    "std::fs",
    "fs::read",
    "SystemTime",
    "Instant",
    "uuid",
    "rand::",
    "std::net",
    "std::process",
    "std::thread",
    "tracing",
];

/// Words of a dialect or a backend: they belong in YAML, never in Rust.
const DIALECT_WORDS: &[&str] = &[
    "chat.completion",
    "chatcmpl",
    "text_completion",
    "finish_reason",
    "[DONE]",
    "response.created",
    "response.completed",
    "response.output_",
    "output_text",
    "function_call_arguments",
    "message_start",
    "content_block",
    "stop_reason",
    "prompt_tokens",
    "completion_tokens",
    "use_tool",
    "agentMessage",
    "/v1/chat",
    "/v1/responses",
    "invalid_request_error",
];

/// Names of other programs, which contain one of the banned words.
const NAMES_OF_OTHERS: &[&str] = &["proxy_ingress_guardrail", "ingress_guardrail_v1"];

/// Words that plain technical English replaces: CONTRIBUTING.md has the reasons. Compared as whole words, in any case.
const BANNED_WORDS: &[&str] = &[
    "asking",
    "beside",
    "breach",
    "breached",
    "breaches",
    "culprit",
    "egress",
    "hardly meant",
    "hear",
    "heard",
    "hearing",
    "hears",
    "ingest",
    "ingress",
    "leaves",
    "manners",
    "mend",
    "mended",
    "mending",
    "mends",
    "of one moment",
    "piece",
    "pieces",
    "rehearsal",
    "rehearse",
    "rehearsed",
    "said",
    "say",
    "saying",
    "says",
    "stand",
    "stands",
    "tell",
    "telling",
    "tells",
    "told",
    "under way",
    "whence",
    "who may ask",
    "whose",
];

/// Files that name old words on purpose: this list, the changelog, and the table of renamed keys with its fixtures.
const NAMES_OLD_WORDS: &[&str] = &[
    "tests/it/tidy.rs",
    "CHANGELOG.md",
    "src/diagnostics/suggest.rs",
    // A field of the YAML crate's error has such a name.
    "src/mapping/source/yaml_errors.rs",
    "tests/diagnostics/old-keys-and-values/",
    // The phases in the trace of that proxy have such names.
    "mappings/profiles/codex-completions-api.yaml",
    "tests/it/drop_in/logs.rs",
    "tests/diagnostics/an-old-key-of-a-test/",
];

/// Recorded turns and requests, which are data: their texts are what a model or a client wrote.
const DATA: &[&str] = &[
    "tests/transcripts/",
    "tests/requests/",
    "tests/policies/",
    "mappings/transcripts/",
    "examples/parrot/transcripts/",
];

const TEXT_FILES: &[&str] = &["rs", "md", "yaml", "yml", "toml", "json", "py", "mjs", "txt", "editorconfig"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// (module, displayed path, code without comments and unit tests)
fn sources() -> Vec<(String, String, String)> {
    let src = root().join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    assert!(files.len() > 40, "the walk found only {} files", files.len());
    files
        .into_iter()
        .map(|path| {
            let shown = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
            let module = shown.split(['/', '.']).next().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let code: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
            (module, shown, code.join("\n"))
        })
        .collect()
}

#[test]
fn dependencies_go_one_way() {
    let mut wrong = Vec::new();
    let mut uses = 0;
    for (module, shown, code) in sources() {
        if matches!(module.as_str(), "lib" | "main" | "testing") {
            continue;
        }
        let (_, allowed) = MAY_USE
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("src/{shown}: the module `{module}` has no row in MAY_USE"));
        for (at, _) in code.match_indices("crate::") {
            let rest = &code[at + "crate::".len()..];
            // `use crate::{a, b::c}` names several modules at once.
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => {
                    let list = list.split("};").next().unwrap();
                    list.split(',').map(|n| n.trim().split("::").next().unwrap()).collect()
                }
                None => vec![rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()],
            };
            for name in names {
                let known = MAY_USE.iter().any(|(m, _)| *m == name);
                uses += usize::from(known);
                if known && name != module && !allowed.contains(&name) {
                    wrong.push(format!("src/{shown}: `{module}` uses `{name}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(uses > 300, "only {uses} uses of another module were found");
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    let mut pure_modules = BTreeSet::new();
    for (module, shown, code) in sources() {
        if !PURE.contains(&module.as_str()) {
            continue;
        }
        pure_modules.insert(module);
        for word in IMPURE {
            if code.contains(word) {
                wrong.push(format!("src/{shown}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "the pure core reaches outside:\n{}", wrong.join("\n"));
    assert_eq!(pure_modules.len(), PURE.len(), "{pure_modules:?}");
}

#[test]
fn rust_code_contains_no_dialect() {
    let mut wrong = Vec::new();
    for (_, shown, code) in sources() {
        for word in DIALECT_WORDS {
            if code.contains(word) {
                wrong.push(format!("src/{shown}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "these words belong into mappings/:\n{}", wrong.join("\n"));
}

#[test]
fn files_are_small() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(_, shown, code)| (code.lines().filter(|l| !l.trim().is_empty()).count(), shown))
        .filter(|(lines, _)| *lines > 400)
        .map(|(lines, shown)| format!("src/{shown}: {lines} lines of code"))
        .collect();
    assert!(long.is_empty(), "split these:\n{}", long.join("\n"));
}

/// Every file that git tracks, with its path from the root.
fn tracked_files() -> Vec<(String, PathBuf)> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let listed = output.ok().filter(|o| o.status.success()).map(|o| String::from_utf8(o.stdout).unwrap());
    let names: Vec<String> =
        listed.iter().flat_map(|l| l.split('\0')).filter(|n| !n.is_empty()).map(str::to_owned).collect();
    assert!(names.len() > 1000, "git lists only {} files", names.len());
    names.into_iter().map(|name| (name.clone(), root().join(name))).filter(|(_, path)| path.is_file()).collect()
}

fn is_text(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap();
    // Scripts have no extension.
    file.rsplit_once('.').is_none_or(|(_, ending)| TEXT_FILES.contains(&ending))
}

/// The first banned word of a line, as a whole word. Parts of an identifier (`_`) count as words.
fn banned_word(line: &str) -> Option<&'static str> {
    let lower = NAMES_OF_OTHERS.iter().fold(line.to_lowercase(), |line, name| line.replace(name, ""));
    let inside = |c: char| c.is_alphanumeric();
    BANNED_WORDS.iter().copied().find(|word| {
        lower
            .match_indices(word)
            .any(|(at, _)| !lower[..at].ends_with(inside) && !lower[at + word.len()..].starts_with(inside))
    })
}

#[test]
fn the_words_of_the_field_are_used() {
    let mut wrong = Vec::new();
    for (name, path) in tracked_files() {
        if !NAMES_OLD_WORDS.iter().chain(DATA).any(|exempt| name.starts_with(exempt)) && banned_word(&name).is_some() {
            wrong.push(format!("{name}: its name"));
        }
        if NAMES_OLD_WORDS.iter().chain(DATA).any(|exempt| name.starts_with(exempt)) || !is_text(&name) {
            continue;
        }
        // Fixtures for invalid UTF-8 are not text.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (at, line) in text.lines().enumerate() {
            if let Some(word) = banned_word(line) {
                wrong.push(format!("{name}:{}: {word}", at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines use a banned word:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn banned_words_are_found_as_whole_words() {
    assert_eq!(banned_word("What a client is TOLD."), Some("told"));
    assert_eq!(banned_word("fn tell_client()"), Some("tell"));
    assert_eq!(banned_word("a stream under way"), Some("under way"));
    assert_eq!(banned_word("recommended, understands, storytelling"), None);
}

#[test]
fn shipped_yaml_fits_in_120_columns() {
    let shipped =
        |name: &str| (name.starts_with("mappings/") || name.starts_with("examples/")) && name.ends_with(".yaml");
    let files: Vec<(String, PathBuf)> = tracked_files().into_iter().filter(|(name, _)| shipped(name)).collect();
    assert!(files.len() > 20, "only {} files", files.len());
    let long: Vec<String> = files
        .into_iter()
        .flat_map(|(name, path)| {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().enumerate().filter(|(_, line)| line.chars().count() > 120);
            lines.map(|(at, _)| format!("{name}:{}", at + 1)).collect::<Vec<_>>()
        })
        .collect();
    assert!(long.is_empty(), "longer than 120 columns:\n{}", long.join("\n"));
}

/// Generated files. Their lines are as long as the output of the commands that they quote.
const GENERATED_PAGES: &[&str] = &["docs/mappings/reference.md", "docs/diagnostics.md"];

/// The numbers of lines with more than 120 characters. Code blocks and table rows cannot be wrapped.
fn long_lines(page: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut long = Vec::new();
    for (at, line) in page.lines().enumerate() {
        let text = line.trim_start();
        if text.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !text.starts_with('|') && line.chars().count() > 120 {
            long.push(at + 1);
        }
    }
    long
}

#[test]
fn documentation_fits_in_120_columns() {
    let pages: Vec<(String, PathBuf)> = tracked_files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".md") && !GENERATED_PAGES.contains(&name.as_str()))
        .collect();
    assert!(pages.len() > 50, "only {} pages", pages.len());
    let long: Vec<String> = pages
        .into_iter()
        .flat_map(|(name, path)| {
            let page = fs::read_to_string(path).unwrap();
            long_lines(&page).into_iter().map(|line| format!("{name}:{line}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(long.is_empty(), "longer than 120 characters:\n{}", long.join("\n"));
}

#[test]
fn long_lines_count_characters_outside_code_and_tables() {
    let (fits, long) = ("é".repeat(120), "x".repeat(121));
    assert_eq!(long_lines(&format!("{fits}\n| {long} |\n```text\n{long}\n```\n{long}\n")), [6]);
}

/// ARCHITECTURE.md lists every source file, its table of behaviours names files that exist, and so do the tests it cites.
#[test]
fn the_architecture_page_is_current() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, tree) = page.split_once("## The source tree").unwrap();
    let (tree, rest) = tree.split_once("### Dependencies").unwrap();
    let mut listed = Vec::new();
    let mut folder = String::new();
    for line in tree.lines() {
        match line.split_whitespace().next() {
            Some(name) if !line.starts_with(' ') && name.ends_with('/') => folder = name.to_owned(),
            Some(name) if name.ends_with(".rs") && line.starts_with("  ") => listed.push(format!("{folder}{name}")),
            Some(name) if name.ends_with(".rs") => listed.push(name.to_owned()),
            _ => {}
        }
    }
    let mut files: Vec<String> = sources().into_iter().map(|(_, shown, _)| shown).collect();
    let json = root().join("crates/json/src");
    let mut crate_files = Vec::new();
    rust_files(&json, &mut crate_files);
    files.extend(crate_files.iter().map(|f| f.strip_prefix(root()).unwrap().to_string_lossy().into_owned()));
    let missing: Vec<&String> = files.iter().filter(|f| !listed.contains(f)).collect();
    let gone: Vec<&String> = listed.iter().filter(|f| !files.contains(f)).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not listed: {missing:?}\nnot there: {gone:?}");

    let (_, behaviours) = rest.split_once("## Where do I find").unwrap();
    let rows: Vec<&str> = behaviours.lines().filter(|l| l.starts_with("| ") && l.contains(".rs")).collect();
    assert!(rows.len() >= 60, "only {} behaviours", rows.len());
    for row in rows {
        let column = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in column.split([',', ' ']).filter(|n| n.ends_with(".rs") && n.contains('/')) {
            let there = root().join("src").join(name).exists() || root().join(name).exists();
            assert!(there, "{name} does not exist: {row}");
        }
    }

    let (_, invariants) = rest.split_once("## Invariants").unwrap();
    let (mut test_file, mut cited) = (String::new(), 0);
    for word in invariants.split("## Where").next().unwrap().split(['`', ' ', ',', ';', '\n']) {
        if word.starts_with("tests/") && word.ends_with(".rs") {
            test_file = fs::read_to_string(root().join(word)).unwrap_or_else(|_| panic!("{word} does not exist"));
        } else if word.len() > 20
            && word.contains('_')
            && word.chars().all(|c| c.is_lowercase() || "_0123456789".contains(c))
        {
            assert!(test_file.contains(&format!("fn {word}(")), "no test {word}");
            cited += 1;
        }
    }
    assert!(cited > 20, "only {cited} tests are cited");
}
