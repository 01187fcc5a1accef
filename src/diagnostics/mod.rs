//! What a person is told about a mapping file: code, place, one sentence, a hint.

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
pub use dedupe::gather;
pub use docs::Page;
pub use json::told;
pub use phase::Phase;
pub use render::{render_all, render_one, visible};
pub use span::{FileId, Place, Source, Sources, Span};
pub use suggest::{did_you_mean, one_of, slip_of, there_is};

use std::cell::RefCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    /// Worth knowing, and nothing to mend.
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

/// One finding in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub message: String,
    pub span: Span,
    /// Stands under the carets; usually the did-you-mean.
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

    /// By file, then by place, as a person reads.
    pub fn reading_order(&self) -> (FileId, u32, Code) {
        (self.span.file, self.span.start, self.code)
    }
}

/// Collects everything that is wrong, so that a person sees it all at once.
///
/// Shared by reference through the loader: a check that finds something says so and goes on.
#[derive(Debug, Default)]
pub struct Findings {
    found: RefCell<Vec<Diagnostic>>,
    /// Said only if nothing else is: see [`mute`](Findings::mute).
    held: RefCell<Vec<Diagnostic>>,
    muted: RefCell<Vec<Code>>,
}

impl Findings {
    /// The same dialect is compiled once per profile, and a part once per use; what is wrong with it is said once.
    pub fn add(&self, diagnostic: Diagnostic) {
        let muted = self.muted.borrow().contains(&diagnostic.code);
        let mut list = if muted { self.held.borrow_mut() } else { self.found.borrow_mut() };
        // The sentence also names the frame, or the folder that a profile reads instead; the word that is wrong is the
        // same one.
        let one_word = matches!(diagnostic.code, Code::UnknownVariable | Code::BadSchema);
        let same = |d: &Diagnostic| d.message == diagnostic.message || one_word;
        if !list.iter().any(|d| d.code == diagnostic.code && d.span == diagnostic.span && same(d)) {
            list.push(diagnostic);
        }
    }

    /// From here on these codes are only the consequence of an error that is said elsewhere.
    pub fn mute(&self, codes: &[Code]) {
        self.muted.borrow_mut().extend(codes);
    }

    pub fn errors(&self) -> usize {
        let errors = |list: &[Diagnostic]| list.iter().filter(|d| d.severity() == Severity::Error).count();
        match errors(&self.found.borrow()) {
            0 => errors(&self.held.borrow()),
            some => some,
        }
    }

    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        if !found.iter().any(|d| d.severity() == Severity::Error) {
            found.extend(self.held.into_inner());
        }
        found.sort_by_key(Diagnostic::reading_order);
        found
    }
}
