//! The documentation page of each code: printed by `reframe check --explain CODE`, collected in docs/diagnostics.md.
//!
//! A page is a Markdown file in `docs/`, or the module comment of the lint that reports the code. Its first line is the
//! code's summary sentence; the sections listed in `SECTIONS` follow.

use super::Code;

pub struct CodePage {
    pub code: Code,
    /// Markdown without a title.
    pub text: String,
}

impl CodePage {
    pub fn of(code: Code) -> CodePage {
        CodePage { code, text: strip_comment_markers(source(code)) }
    }

    /// The summary sentence.
    pub fn sentence(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The text below the summary sentence.
    pub fn rest(&self) -> &str {
        self.text.split_once('\n').map_or("", |(_, rest)| rest).trim()
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

fn source(code: Code) -> &'static str {
    match code {
        Code::Unreadable => include_str!("docs/RF001.md"),
        Code::Syntax => include_str!("docs/RF002.md"),
        Code::DuplicateKey => include_str!("docs/RF003.md"),
        Code::LimitExceeded => include_str!("docs/RF004.md"),
        Code::UnknownKey => include_str!("docs/RF010.md"),
        Code::MissingKey => include_str!("docs/RF011.md"),
        Code::WrongType => include_str!("docs/RF012.md"),
        Code::UnknownValue => include_str!("docs/RF013.md"),
        Code::DuplicateName => include_str!("docs/RF014.md"),
        Code::UnknownReference => include_str!("docs/RF020.md"),
        Code::BadSelector => include_str!("docs/RF101.md"),
        Code::BadExpression => include_str!("docs/RF102.md"),
        Code::BadPlaceholder => include_str!("docs/RF103.md"),
        Code::UnknownVariable => include_str!("docs/RF104.md"),
        Code::UnknownFilter => include_str!("docs/RF105.md"),
        Code::UnknownTable => include_str!("docs/RF106.md"),
        Code::UnknownFragment => include_str!("docs/RF107.md"),
        Code::FragmentCycle => include_str!("docs/RF108.md"),
        Code::BadDirective => include_str!("docs/RF109.md"),
        Code::PartialTable => include_str!("docs/RF110.md"),
        Code::PartialSwitch => include_str!("docs/RF111.md"),
        Code::UnknownEmit => include_str!("docs/RF120.md"),
        Code::UnknownField => include_str!("docs/RF121.md"),
        Code::UnknownMoment => include_str!("docs/RF122.md"),
        Code::UnknownPolicy => include_str!("docs/RF123.md"),
        Code::BadPolicyValue => include_str!("docs/RF124.md"),
        Code::BadOrder => include_str!("docs/RF125.md"),
        Code::BadPatch => include_str!("docs/RF126.md"),
        Code::BadFrame => include_str!("docs/RF127.md"),
        Code::BadSchema => include_str!("docs/RF128.md"),
        Code::BadTranscript => include_str!("docs/RF129.md"),
        Code::UnsafeText => include_str!("docs/RF130.md"),
        Code::OpenSchema => include_str!("docs/RF131.md"),
        Code::InlineSecret => include_str!("docs/RF132.md"),
        Code::TooManyVariants => include_str!("docs/RF133.md"),
        Code::FailedTest => include_str!("docs/RF140.md"),
        Code::UnsatisfiableFrame => include_str!("docs/RF142.md"),
        Code::TranscriptFailed => include_str!("docs/RF141.md"),
        Code::UnreachableRule => include_str!("../mapping/lint/unreachable_rule.rs"),
        Code::UnframedMoment => include_str!("../mapping/lint/unframed_moment.rs"),
        Code::OrderNotGuaranteed => include_str!("../mapping/lint/order_not_guaranteed.rs"),
        Code::UnusedFragment => include_str!("../mapping/lint/unused_fragment.rs"),
        Code::TableWithoutDefault => include_str!("../mapping/lint/table_without_default.rs"),
        Code::IneffectivePolicy => include_str!("../mapping/lint/ineffective_policy.rs"),
        Code::Loss => include_str!("../mapping/lint/loss.rs"),
    }
}

#[cfg(test)]
#[path = "../../tests/unit/diagnostics_docs.rs"]
mod tests;
