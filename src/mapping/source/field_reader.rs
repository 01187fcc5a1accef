//! Reading a map of the YAML tree field by field: types are checked, and a key that nobody read is an error.

use super::yaml::{Entry, Kind, Node};
use crate::diagnostics::{Code, Diagnostic, Findings, Sources, Span, did_you_mean, one_of, there_is};
use crate::domain::Tree;
use std::cell::RefCell;

/// What every check needs at hand: the texts, and where to say what is wrong.
#[derive(Clone, Copy)]
pub struct Cx<'c> {
    pub sources: &'c Sources,
    pub findings: &'c Findings,
}

impl Cx<'_> {
    pub fn add(&self, diagnostic: Diagnostic) {
        self.findings.add(diagnostic);
    }

    pub fn error(&self, code: Code, span: Span, message: impl Into<String>) {
        self.findings.add(Diagnostic::new(code, span, message));
    }

    /// A name that something before it has.
    pub fn twice(&self, span: Span, message: String, first: Span) {
        let help = format!("the other one is {}", self.sources.show(first));
        self.add(Diagnostic::new(Code::DuplicateName, span, message).help(help));
    }

    pub fn wrong_type(&self, node: &Node, expected: &str) {
        let found = node.noun();
        let mut diagnostic = Diagnostic::new(Code::WrongType, node.span, format!("expected {expected}, found {found}"));
        if expected == "text" && matches!(node.kind, Kind::Bool(_) | Kind::Int(_) | Kind::Float(_)) {
            diagnostic = diagnostic.label("in quotes it is text");
        }
        self.add(diagnostic);
    }

    /// A value that is written as none of its kind is: "`15 seconds` is not a time".
    pub fn wrong_value(&self, node: &Node, what: &str, like: &str) {
        let written = self.sources.text(node.span);
        let found = if written.contains('\n') || written.is_empty() { node.noun() } else { &format!("`{written}`") };
        let message = format!("{found} is not {what}");
        self.add(Diagnostic::new(Code::WrongType, node.span, message).help(format!("like {like}")));
    }

    /// A word outside a closed list.
    pub fn unknown<'k>(
        &self,
        code: Code,
        span: Span,
        message: String,
        said: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let mut unique: Vec<&str> = Vec::new();
        for word in known {
            if !unique.contains(&word) {
                unique.push(word);
            }
        }
        let known = unique;
        let mut diagnostic = Diagnostic::new(code, span, message);
        if said.split_once(':').is_some_and(|(key, _)| known.contains(&key)) {
            diagnostic = diagnostic.label("a space is missing after the colon");
        } else if let Some(near) = did_you_mean(said, known.iter().copied()) {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        }
        self.add(diagnostic.help(there_is(known)));
    }

    /// One of `words`, or a diagnostic.
    pub fn word(&self, node: &Node, words: &[&'static str]) -> Option<&'static str> {
        let Some(text) = node.as_text() else {
            self.wrong_type(node, &one_of(words.iter().copied()));
            return None;
        };
        let found = words.iter().copied().find(|w| *w == text);
        if found.is_none() {
            let message = format!("`{text}` cannot stand here");
            self.unknown(Code::UnknownValue, node.span, message, text, words.iter().copied());
        }
        found
    }
}

/// The fields of one map. `done()` reports what nobody asked for; what is missing is reported at the end, also when
/// the reader gave up before.
pub struct Fields<'n, 'c> {
    cx: Cx<'c>,
    span: Span,
    what: String,
    entries: &'n [Entry],
    asked: RefCell<Vec<&'static str>>,
    missing: RefCell<Vec<&'static str>>,
}

impl<'n, 'c> Fields<'n, 'c> {
    /// `what` completes the sentence "unknown key `x` in …".
    pub fn of(node: &'n Node, what: impl Into<String>, cx: Cx<'c>) -> Option<Fields<'n, 'c>> {
        match &node.kind {
            Kind::Map(entries) => Some(Fields {
                cx,
                span: node.span,
                what: what.into(),
                entries,
                asked: RefCell::default(),
                missing: RefCell::default(),
            }),
            Kind::Null => {
                cx.error(Code::WrongType, node.span, format!("{} is empty", what.into()));
                None
            }
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::List(_) => {
                cx.error(Code::WrongType, node.span, format!("{} must be a map, not {}", what.into(), node.noun()));
                None
            }
        }
    }

    pub fn get(&self, key: &'static str) -> Option<&'n Node> {
        self.entry(key).map(|e| &e.value)
    }

    pub fn entry(&self, key: &'static str) -> Option<&'n Entry> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
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

    pub fn text(&self, key: &'static str) -> Option<&'n str> {
        self.get(key).and_then(|node| text_of(node, self.cx))
    }

    pub fn required_text(&self, key: &'static str) -> Option<&'n str> {
        self.required(key).and_then(|node| text_of(node, self.cx))
    }

    pub fn flag(&self, key: &'static str) -> Option<bool> {
        let node = self.get(key)?;
        match node.kind {
            Kind::Bool(value) => Some(value),
            Kind::Null | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
                let word = match node.as_text().map(str::to_lowercase).as_deref() {
                    Some("yes" | "on" | "true") => "write `true`",
                    Some("no" | "off" | "false") => "write `false`",
                    _ => "",
                };
                let message = format!("expected true or false, found {}", node.noun());
                self.cx.add(Diagnostic::new(Code::WrongType, node.span, message).label(word));
                None
            }
        }
    }

    pub fn int(&self, key: &'static str) -> Option<i64> {
        let node = self.get(key)?;
        match node.kind {
            Kind::Int(value) if value >= 0 => Some(value),
            _ => {
                self.cx.error(Code::WrongType, node.span, format!("`{key}:` must be a whole number, 0 or more"));
                None
            }
        }
    }

    /// The items of a list; a single value counts as a list of one.
    pub fn list(&self, key: &'static str) -> &'n [Node] {
        match self.get(key) {
            None => &[],
            Some(node) => match &node.kind {
                Kind::List(items) => items,
                Kind::Null => &[],
                Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::Map(_) => {
                    std::slice::from_ref(node)
                }
            },
        }
    }

    /// A list that must hold something.
    pub fn required_list(&self, key: &'static str) -> &'n [Node] {
        self.required(key);
        let Some(entry) = self.entry(key) else { return &[] };
        match &entry.value.kind {
            Kind::List(items) if !items.is_empty() => return items,
            Kind::List(_) | Kind::Null => {
                self.cx.error(Code::MissingKey, entry.key_span, format!("`{key}:` is empty"));
            }
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::Map(_) => {
                let message = format!("`{key}:` must be a list, not {}", entry.value.noun());
                let label = "an entry of a list begins with `- `";
                self.cx.add(Diagnostic::new(Code::WrongType, entry.value.span, message).label(label));
            }
        }
        &[]
    }

    /// The entries of a map, whose keys are free.
    pub fn map(&self, key: &'static str) -> &'n [Entry] {
        match self.get(key) {
            None => &[],
            Some(node) => match &node.kind {
                Kind::Map(entries) => entries,
                Kind::Null => &[],
                Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::List(_) => {
                    self.cx.wrong_type(node, "a map");
                    &[]
                }
            },
        }
    }

    /// None of several keys is there, or too many are. A slip in one of them is an unknown key, and that is all that
    /// is wrong.
    pub fn not_one_of(&self, keys: &[&'static str], diagnostic: Diagnostic) {
        let slip = |e: &&Entry| did_you_mean(&e.key, keys.iter().copied()).is_some();
        let none = keys.iter().all(|key| self.get(key).is_none());
        if !(none && self.rest().iter().any(slip)) {
            self.cx.add(diagnostic);
        }
    }

    /// Entries whose keys nobody asked for (yet): the free keys of a map that also has fixed ones.
    pub fn rest(&self) -> Vec<&'n Entry> {
        let asked = self.asked.borrow();
        self.entries.iter().filter(|e| !asked.iter().any(|a| *a == e.key)).collect()
    }

    /// Says which keys nobody reads.
    pub fn done(self) {
        for entry in self.rest() {
            let known = self.asked.borrow().clone();
            let message = self.unknown(entry);
            self.cx.unknown(Code::UnknownKey, entry.key_span, message, &entry.key, known);
        }
    }

    fn unknown(&self, entry: &Entry) -> String {
        format!("unknown key `{}` in {}", entry.key, self.what)
    }
}

impl Drop for Fields<'_, '_> {
    fn drop(&mut self) {
        let rest = self.rest();
        for key in self.missing.take() {
            // One slip of the finger is one error: `bodi` is unknown, so nobody needs to hear that `body` is missing.
            let known = self.asked.borrow().clone();
            match rest.iter().find(|e| did_you_mean(&e.key, known.iter().copied()) == Some(key)) {
                // After `done()` it has been said already.
                Some(slip) => self.cx.add(
                    Diagnostic::new(Code::UnknownKey, slip.key_span, self.unknown(slip))
                        .label(format!("did you mean `{key}`?")),
                ),
                None => {
                    let message = format!("`{key}:` is missing in {}", self.what);
                    self.cx.error(Code::MissingKey, self.span, message);
                }
            }
        }
    }
}

pub fn text_of<'n>(node: &'n Node, cx: Cx) -> Option<&'n str> {
    let text = node.as_text();
    if text.is_none() {
        cx.wrong_type(node, "text");
    }
    text
}

/// A YAML value as plain JSON: constants, defaults, test data.
pub fn constant(node: &Node) -> Tree {
    match &node.kind {
        Kind::Null => Tree::Null,
        Kind::Bool(b) => Tree::from(*b),
        Kind::Int(i) => Tree::from(*i),
        Kind::Float(f) => Tree::from(*f),
        Kind::Text(t) => Tree::from(t.as_str()),
        Kind::List(items) => Tree::from(items.iter().map(constant).collect::<Vec<_>>()),
        Kind::Map(entries) => Tree::map(entries.iter().map(|e| (e.key.as_str(), constant(&e.value)))),
    }
}
