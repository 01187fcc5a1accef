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
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

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
    /// Hashes of what was added, to find duplicates among thousands.
    known: RefCell<HashSet<u64, BuildHasherDefault<DefaultHasher>>>,
    /// How many were added of each severity.
    counts: RefCell<[usize; 3]>,
}

/// Limit for the diagnostics of a load, for each severity: nobody reads more, and a set that is wrong everywhere must
/// not exhaust the memory.
const MAX_OF_SEVERITY: usize = 10_000;

/// From so many findings on, unknown names are reported without the known ones.
const LONG_REPORT: usize = 500;

impl Findings {
    /// Drops duplicates: a dialect is compiled once per profile and a fragment once per use, so the same mistake is
    /// found several times.
    pub fn add(&self, diagnostic: Diagnostic) {
        let suppressed_codes = self.suppressed_codes.borrow().contains(&diagnostic.code);
        let mut list = if suppressed_codes { self.suppressed.borrow_mut() } else { self.found.borrow_mut() };
        // These messages also contain the frame, or the schema folder that a profile selects; the mistake is the same.
        let same_mistake = matches!(diagnostic.code, Code::UnknownVariable | Code::BadSchema);
        let message = Some(&diagnostic.message).filter(|_| !same_mistake);
        let mut known = self.known.borrow_mut();
        let hash = known.hasher().hash_one((suppressed_codes, diagnostic.code, diagnostic.span, message));
        let count = &mut self.counts.borrow_mut()[diagnostic.severity() as usize];
        if *count < MAX_OF_SEVERITY && known.insert(hash) {
            *count += 1;
            list.push(diagnostic);
        }
    }

    /// How many there are, of all severities.
    pub fn count(&self) -> usize {
        self.counts.borrow().iter().sum()
    }

    /// There are more findings than a report shows: what helps with one of them is not worth its time.
    pub fn is_long(&self) -> bool {
        self.count() >= LONG_REPORT
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
