//! docs/parity.md: every acceptance criterion of the systems that Reframe replaces, with the test that shows it. The page
//! is generated from tests/parity.yaml, and every test that it cites must exist. UPDATE_GOLDEN=1 writes it.

use crate::support::repo;
use reframe::testing::diagnostics::{FileId, Findings};
use reframe::testing::mapping::source::yaml::{self, Node};
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Parses a YAML file of the repository.
pub fn parsed(path: &str) -> Node {
    let text = repo(path);
    let findings = Findings::default();
    yaml::parse(FileId(0), &text, &findings).unwrap_or_else(|| panic!("{path} is not YAML"))
}

pub fn text<'n>(node: &'n Node, key: &str) -> &'n str {
    node.get(key).and_then(Node::as_text).unwrap_or_default()
}

/// Compares a generated page with its file, or writes it.
pub fn assert_current(path: &str, page: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(root().join(path), page).unwrap();
    }
    let written = fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(written == page, "{path} is not current: UPDATE_GOLDEN=1 cargo test --test it parity:: writes it");
}

/// `tests/it/http.rs::name`, or `mappings/profiles/x.test.yaml: name of the test`.
fn exists(test: &str) -> bool {
    type Test<'t> = (&'t str, Box<dyn Fn(&str) -> bool + 't>);
    let (path, is_in): Test = match test.split_once("::") {
        Some((path, name)) => (path, Box::new(move |text| text.contains(&format!("#[test]\nfn {name}()")))),
        None => {
            let Some((path, name)) = test.split_once(": ") else { return false };
            (path, Box::new(move |text| text.contains(&format!("- name: {name}\n"))))
        }
    };
    fs::read_to_string(root().join(path)).is_ok_and(|text| is_in(&text))
}

#[test]
fn the_parity_page_is_current_and_cites_tests_that_exist() {
    let file = parsed("tests/parity.yaml");
    let mut page = format!(
        "# Parity\n\nWhat the systems that Reframe replaces promise, and the test that shows it here. This page is generated \
         from\n[tests/parity.yaml](../tests/parity.yaml); a test that does not exist fails the build.\n\n{}\n",
        "The profile of a row is chosen by `--profile`, by a route, by user agent, or by a header that a route allows."
    );
    let (mut missing, mut criteria) = (Vec::new(), 0);
    for group in file.get("groups").and_then(Node::as_list).unwrap() {
        page += &format!("\n## {}\n\n{}\n\n", text(group, "name"), text(group, "about"));
        page += "| | criterion | test | profile |\n|---|---|---|---|\n";
        for row in group.get("criteria").and_then(Node::as_list).unwrap() {
            let tests: Vec<&str> = row.get("test").unwrap().as_list_or_one().iter().filter_map(Node::as_text).collect();
            missing.extend(tests.iter().filter(|test| !exists(test)).map(|test| (*test).to_owned()));
            let shown: Vec<String> = tests.iter().map(|test| format!("`{}`", test.replace("tests/", ""))).collect();
            let (id, sentence) = (text(row, "id"), text(row, "is"));
            assert!(!sentence.is_empty() && !tests.is_empty(), "{id} is incomplete");
            page += &format!("| {id} | {sentence} | {} | {} |\n", shown.join(", "), text(row, "profile"));
            criteria += 1;
        }
    }
    page += "\n## Deliberately not done\n\n";
    for reason in file.get("not_done").and_then(Node::as_list).unwrap() {
        page += &format!("- {}\n", reason.as_text().unwrap());
    }
    assert!(missing.is_empty(), "tests/parity.yaml cites tests that do not exist:\n{}", missing.join("\n"));
    assert!(criteria >= 60, "only {criteria} criteria");
    assert_current("docs/parity.md", &page);
}
