//! Conventions of the source tree: the direction of dependencies, a pure core, and no words of a dialect in Rust.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

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
    ("openapi", &["domain", "mapping"]),
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
    "reqwest",
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

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
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
    for (module, shown, code) in sources() {
        if matches!(module.as_str(), "lib" | "main") {
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
                if known && name != module && !allowed.contains(&name) {
                    wrong.push(format!("src/{shown}: `{module}` uses `{name}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for (module, shown, code) in sources() {
        if !PURE.contains(&module.as_str()) {
            continue;
        }
        for word in IMPURE {
            if code.contains(word) {
                wrong.push(format!("src/{shown}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "the pure core reaches outside:\n{}", wrong.join("\n"));
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
