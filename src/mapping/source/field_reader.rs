//! Reads a YAML map field by field. Checks types and reports unknown and missing keys.

use super::yaml::{Entry, Node, YamlKind};
use crate::diagnostics::{Code, Diagnostic, Findings, Sources, Span, describe_known, did_you_mean, or_list};
use crate::domain::{Tree, WorkBudget};
use std::cell::RefCell;
use std::collections::HashSet;

/// Context of a load: the source texts, where diagnostics are collected, and how much work is left.
#[derive(Clone, Copy)]
pub struct LoadContext<'c> {
    pub sources: &'c Sources,
    pub findings: &'c Findings,
    pub budget: &'c WorkBudget,
    /// What selectors can read at this place besides the document.
    pub selectors: SelectorScope<'c>,
}

/// What selectors can read besides the document and the nodes around the current one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectorScope<'c> {
    /// The lists around this place, outermost first, each with the name that `as:` gives to its element.
    pub loops: &'c [Option<String>],
    pub head: MessageHead,
}

/// The HTTP message with a head that selectors can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageHead {
    #[default]
    None,
    /// The client's request: `path.model`, `query.key`, `headers.x-name`.
    Request,
    /// The backend's response: `response.status`, `response.headers.x-name`.
    Response,
}

/// The expected type of a text value, in messages.
const STRING: &str = "a string";

impl LoadContext<'_> {
    pub fn add(&self, diagnostic: Diagnostic) {
        self.findings.add(diagnostic);
    }

    pub fn error(&self, code: Code, span: Span, message: impl Into<String>) {
        self.findings.add(Diagnostic::new(code, span, message));
    }

    /// Reports a name that is already taken. `first` is where it was first used.
    pub fn duplicate(&self, span: Span, message: String, first: Span) {
        let help = format!("the first one is at {}", self.sources.show(first));
        self.add(Diagnostic::new(Code::DuplicateName, span, message).help(help));
    }

    pub fn wrong_type(&self, node: &Node, expected: &str) {
        let found = node.type_name();
        let mut diagnostic = Diagnostic::new(Code::WrongType, node.span, format!("expected {expected}, found {found}"));
        if expected == STRING && matches!(node.kind, YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_)) {
            diagnostic = diagnostic.label("add quotes to make it a string");
        }
        self.add(diagnostic);
    }

    /// Reports a value with invalid notation: "`15 seconds` is not a time".
    pub fn wrong_value(&self, node: &Node, expected: &str, examples: &str) {
        let written = self.sources.text(node.span);
        let found =
            if written.contains('\n') || written.is_empty() { node.type_name() } else { &format!("`{written}`") };
        let message = format!("{found} is not {expected}");
        self.add(Diagnostic::new(Code::WrongType, node.span, message).help(format!("for example {examples}")));
    }

    /// Reports a number in a valid notation that is too small or too large.
    pub fn out_of_range<T>(&self, node: &Node, range: &str, help: &str) -> Option<T> {
        let written = self.sources.text(node.span);
        let message = format!("`{written}` is out of range: {range}");
        self.add(Diagnostic::new(Code::WrongType, node.span, message).help(help.to_owned()));
        None
    }

    /// Reports a name that is not in a closed list, with the closest known name.
    pub fn unknown<'k>(
        &self,
        code: Code,
        span: Span,
        message: String,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        if self.findings.is_long() {
            return self.add(Diagnostic::new(code, span, message));
        }
        let mut seen = HashSet::new();
        let known: Vec<&str> = known.into_iter().filter(|name| seen.insert(*name)).collect();
        self.budget.spend(known.len() as u64);
        let mut diagnostic = Diagnostic::new(code, span, message);
        if name.split_once(':').is_some_and(|(key, _)| known.contains(&key)) {
            diagnostic = diagnostic.label("a space is missing after the colon");
        } else if let Some(near) = did_you_mean(name, known.iter().copied()) {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        }
        self.add(diagnostic.help(describe_known(known)));
    }

    pub fn boolean(&self, node: &Node) -> Option<bool> {
        if let YamlKind::Bool(value) = node.kind {
            return Some(value);
        }
        let label = match node.as_text().map(str::to_lowercase).as_deref() {
            Some("yes" | "on" | "true") => "write `true`",
            Some("no" | "off" | "false") => "write `false`",
            _ => "",
        };
        let message = format!("expected true or false, found {}", node.type_name());
        self.add(Diagnostic::new(Code::WrongType, node.span, message).label(label));
        None
    }

    /// Returns the value if it is one of `names`, else reports it.
    pub fn one_of(&self, node: &Node, names: &[&'static str]) -> Option<&'static str> {
        let Some(text) = node.as_text() else {
            self.wrong_type(node, &or_list(names.iter().copied()));
            return None;
        };
        let found = names.iter().copied().find(|name| *name == text);
        if found.is_none() {
            let message = format!("unknown value `{text}`");
            self.unknown(Code::UnknownValue, node.span, message, text, names.iter().copied());
        }
        found
    }
}

/// Reads the fields of one map. `finish()` reports unknown keys. Missing keys are reported on drop, so that they are
/// also reported when the caller returns early.
pub struct FieldReader<'n, 'c> {
    pub cx: LoadContext<'c>,
    pub span: Span,
    pub subject: String,
    entries: &'n [Entry],
    /// The keys that were read, whether they were present or not.
    known_keys: RefCell<Vec<&'static str>>,
    missing: RefCell<Vec<&'static str>>,
}

impl<'n, 'c> FieldReader<'n, 'c> {
    /// `subject` completes the sentence "unknown key `x` in …".
    pub fn of(node: &'n Node, subject: impl Into<String>, cx: LoadContext<'c>) -> Option<FieldReader<'n, 'c>> {
        match &node.kind {
            YamlKind::Map(entries) => Some(FieldReader {
                cx,
                span: node.span,
                subject: subject.into(),
                entries,
                known_keys: RefCell::default(),
                missing: RefCell::default(),
            }),
            YamlKind::Null => {
                cx.error(Code::WrongType, node.span, format!("{} is empty", subject.into()));
                None
            }
            YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) | YamlKind::List(_) => {
                cx.error(
                    Code::WrongType,
                    node.span,
                    format!("{} must be a map, not {}", subject.into(), node.type_name()),
                );
                None
            }
        }
    }

    pub fn get(&self, key: &'static str) -> Option<&'n Node> {
        self.entry(key).map(|e| &e.value)
    }

    pub fn entry(&self, key: &'static str) -> Option<&'n Entry> {
        let mut known_keys = self.known_keys.borrow_mut();
        if !known_keys.contains(&key) {
            known_keys.push(key);
        }
        self.entries.iter().find(|e| e.key == key)
    }

    pub fn required(&self, key: &'static str) -> Option<&'n Node> {
        let found = self.get(key);
        if found.is_none() {
            self.missing.borrow_mut().push(key);
        }
        found
    }

    /// Reports that not exactly one of `keys` is present. If one of them is misspelled, only the unknown key is
    /// reported.
    pub fn not_exactly_one(&self, keys: &[&'static str], diagnostic: Diagnostic) {
        let is_typo = |e: &&Entry| did_you_mean(&e.key, keys.iter().copied()).is_some();
        let none = keys.iter().all(|key| self.get(key).is_none());
        if !(none && self.unread().iter().any(is_typo)) {
            self.cx.add(diagnostic);
        }
    }

    /// The entries that were not read yet: the arbitrary keys of a map that also has fixed ones.
    pub fn unread(&self) -> Vec<&'n Entry> {
        let known_keys = self.known_keys.borrow();
        self.entries.iter().filter(|e| !known_keys.iter().any(|known| *known == e.key)).collect()
    }

    /// Reports the keys that were not read as unknown.
    pub fn finish(self) {
        for entry in self.unread() {
            let known = self.known_keys.borrow().clone();
            let message = self.unknown_key(entry);
            self.cx.unknown(Code::UnknownKey, entry.key_span, message, &entry.key, known);
        }
    }

    fn unknown_key(&self, entry: &Entry) -> String {
        format!("unknown key `{}` in {}", entry.key, self.subject)
    }
}

/// Among so many unknown keys, a misspelled one is searched for.
const MAX_TYPOS: usize = 100;

impl Drop for FieldReader<'_, '_> {
    fn drop(&mut self) {
        let unread = self.unread();
        for key in self.missing.take() {
            // One typo is one error: if `bodi` is unknown, do not also report that `body` is missing.
            let known = self.known_keys.borrow().clone();
            match unread.iter().take(MAX_TYPOS).find(|e| did_you_mean(&e.key, known.iter().copied()) == Some(key)) {
                // If `finish()` has run, this is a duplicate, which `Findings` drops.
                Some(typo) => self.cx.add(
                    Diagnostic::new(Code::UnknownKey, typo.key_span, self.unknown_key(typo))
                        .label(format!("did you mean `{key}`?")),
                ),
                None => {
                    let message = format!("`{key}:` is missing in {}", self.subject);
                    self.cx.error(Code::MissingKey, self.span, message);
                }
            }
        }
    }
}

pub fn text_of<'n>(node: &'n Node, cx: LoadContext) -> Option<&'n str> {
    let text = node.as_text();
    if text.is_none() {
        cx.wrong_type(node, STRING);
    }
    text
}

/// Converts a YAML value to JSON: constants, defaults, test data.
pub fn constant(node: &Node) -> Tree {
    match &node.kind {
        YamlKind::Null => Tree::Null,
        YamlKind::Bool(b) => Tree::from(*b),
        YamlKind::Int(i) => Tree::from(*i),
        YamlKind::Float(f) => Tree::from(*f),
        YamlKind::Text(t) => Tree::from(t.as_str()),
        YamlKind::List(items) => Tree::from(items.iter().map(constant).collect::<Vec<_>>()),
        YamlKind::Map(entries) => Tree::map(entries.iter().map(|e| (e.key.as_str(), constant(&e.value)))),
    }
}
