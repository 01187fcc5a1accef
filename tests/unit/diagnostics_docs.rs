//! Unit tests of `diagnostics::docs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

/// The sections of a page, in order.
const SECTIONS: &[&str] = &["Why", "Example", "Fix"];

#[test]
fn every_page_has_the_summary_of_its_code_and_all_sections() {
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let page = CodePage::of(*code);
        let (first, rest) = page.sentence().split_at(1);
        let sentence = first.to_lowercase() + rest.trim_end_matches('.');
        if sentence != code.about() {
            wrong.push(format!("{}: `{sentence}`, not `{}`", code.as_str(), code.about()));
        }
        let found: Vec<&str> = page.text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        if found != SECTIONS {
            wrong.push(format!("{}: the sections are {found:?}", code.as_str()));
        }
        let empty = |name: &&&str| page.section(name).is_none_or(str::is_empty);
        wrong.extend(SECTIONS.iter().filter(empty).map(|name| format!("{}: {name} is empty", code.as_str())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_module_comment_of_a_lint_is_its_page() {
    let lint = "//! A thing.\n//!\n//! ## Why\n//!\n//! So.\n\nuse x;\n//! not this\n";
    assert_eq!(strip_comment_markers(lint), "A thing.\n\n## Why\n\nSo.");
}
