//! The documentation page of each code: printed by `reframe check --explain CODE`, collected in docs/diagnostics.md.
//!
//! A page is a Markdown file in `docs/`, or the module comment of the lint that reports the code. Its first line is the
//! code's summary sentence; the sections listed in `SECTIONS` follow.

use super::Code;

pub struct CodePage {
    /// Markdown without a title.
    pub text: String,
}

impl CodePage {
    pub fn of(code: Code) -> CodePage {
        CodePage { text: strip_comment_markers(code.page_source()) }
    }

    /// The summary sentence.
    pub fn sentence(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The text of the section `## name`.
    pub fn section(&self, name: &str) -> Option<&str> {
        let heading = format!("\n## {name}\n");
        let (_, after) = self.text.split_once(heading.as_str())?;
        Some(after.split("\n## ").next().unwrap_or(after).trim())
    }
}

/// The module comment of a Rust file; other files are returned as they are.
fn strip_comment_markers(source: &str) -> String {
    if !source.starts_with("//!") {
        return source.trim().to_owned();
    }
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
#[path = "../../tests/unit/diagnostics_docs.rs"]
mod tests;
