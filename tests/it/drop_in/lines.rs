//! docs/drop-in.md: generated from `lines.txt` and the tests that name its lines. UPDATE_GOLDEN=1 writes it.

use crate::parity::assert_current;

const LINES: &str = include_str!("lines.txt");
const SOURCES: [(&str, &str); 8] = [
    ("access", include_str!("access.rs")),
    ("chat", include_str!("chat.rs")),
    ("errors", include_str!("errors.rs")),
    ("health", include_str!("health.rs")),
    ("logs", include_str!("logs.rs")),
    ("metrics", include_str!("metrics.rs")),
    ("responses", include_str!("responses.rs")),
    ("tools", include_str!("tools.rs")),
];

/// Each line with the test that names it.
fn tested() -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (module, source) in SOURCES {
        let mut named: Vec<&str> = Vec::new();
        for line in source.lines() {
            if let Some(names) = line.strip_prefix("/// Lines: ") {
                named = names.split(' ').collect();
            } else if let Some(rest) = line.strip_prefix("fn ") {
                let test = rest.split('(').next().unwrap_or_default();
                found.extend(named.drain(..).map(|name| (name, format!("{module}::{test}"))));
            }
        }
    }
    found
}

#[test]
fn every_line_has_a_test_or_a_reason() {
    let tested = tested();
    let mut rows = String::new();
    let mut known = Vec::new();
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.split(" | ");
        let (name, what, reason) = (parts.next().unwrap(), parts.next().unwrap(), parts.next());
        known.push(name);
        let tests: Vec<&str> = tested.iter().filter(|(n, _)| *n == name).map(|(_, test)| test.as_str()).collect();
        let proof = match (tests.as_slice(), reason) {
            ([], Some(reason)) => format!("no: {reason}"),
            ([], None) => panic!("no test names `{name}`"),
            (_, Some(_)) => panic!("`{name}` has a test and a reason to have none"),
            (tests, None) => tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", "),
        };
        rows.push_str(&format!("| {name} | {what} | {proof} |\n"));
    }
    for (name, test) in &tested {
        assert!(known.contains(name), "{test} names the unknown line `{name}`");
    }
    let page = format!(
        "# The drop-in, line by line\n\n\
         What clients of the codex-completions-api proxy rely on, and the test of `tests/it/drop_in/` that proves it \
         with the\nprofile of the same name. [How to switch](migrating-from-codex-completions-api.md).\n\n\
         | line | behaviour | test |\n|---|---|---|\n{rows}"
    );
    assert_current("docs/drop-in.md", &page);
}
