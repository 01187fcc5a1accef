//! Diagnostics about mapping files: a code, a source span, one sentence, a label and a help line.

mod code;
mod dedupe;
mod docs;
mod indentation;
mod json;
mod phase;
mod render;
pub mod schema_message;
mod span;
mod suggest;

pub use code::Code;
pub use dedupe::dedupe;
pub use docs::CodePage;
pub use json::diagnostic_json;
pub use phase::Phase;
pub use render::{render_all, visible_span};
pub use span::{FileId, Source, Sources, Span};
pub use suggest::{count_noun, describe_known, did_you_mean, likely_typo, or_list};

use std::cell::RefCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    /// Information; no change is required.
    Note,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One finding at one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub message: String,
    pub span: Span,
    /// Shown under the carets; usually the did-you-mean.
    pub label: String,
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { code, message: message.into(), span, label: String::new(), help: None }
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// By file, then by position.
    pub fn sort_key(&self) -> (FileId, u32, Code) {
        (self.span.file, self.span.start, self.code)
    }
}

/// Collects all diagnostics of a load, so that they can be reported together.
///
/// Passed through the loader by shared reference: a check adds what it finds and continues.
#[derive(Debug, Default)]
pub struct Findings {
    found: RefCell<Vec<Diagnostic>>,
    /// Reported only if there is no other error: see [`suppress`](Findings::suppress).
    suppressed: RefCell<Vec<Diagnostic>>,
    suppressed_codes: RefCell<Vec<Code>>,
}

impl Findings {
    /// Drops duplicates: a dialect is compiled once per profile and a fragment once per use, so the same mistake is
    /// found several times.
    pub fn add(&self, diagnostic: Diagnostic) {
        let suppressed_codes = self.suppressed_codes.borrow().contains(&diagnostic.code);
        let mut list = if suppressed_codes { self.suppressed.borrow_mut() } else { self.found.borrow_mut() };
        // These messages also contain the frame, or the schema folder that a profile selects; the mistake is the same.
        let same_mistake = matches!(diagnostic.code, Code::UnknownVariable | Code::BadSchema);
        let same = |d: &Diagnostic| d.message == diagnostic.message || same_mistake;
        if !list.iter().any(|d| d.code == diagnostic.code && d.span == diagnostic.span && same(d)) {
            list.push(diagnostic);
        }
    }

    /// From now on these codes are only consequences of an error that is reported elsewhere.
    pub fn suppress(&self, codes: &[Code]) {
        self.suppressed_codes.borrow_mut().extend(codes);
    }

    pub fn errors(&self) -> usize {
        let errors = |list: &[Diagnostic]| list.iter().filter(|d| d.severity() == Severity::Error).count();
        match errors(&self.found.borrow()) {
            0 => errors(&self.suppressed.borrow()),
            some => some,
        }
    }

    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        if !found.iter().any(|d| d.severity() == Severity::Error) {
            found.extend(self.suppressed.into_inner());
        }
        found.sort_by_key(Diagnostic::sort_key);
        found
    }
}
