//! `names:` of a profile: what fields of a dialect are called instead, in everything that leaves. A name that no field
//! has is a slip.

use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean};
use crate::mapping::source::field_reader::Cx;
use std::cell::RefCell;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Names {
    renames: Vec<Rename>,
    /// The fields that were met, by their old names.
    met: RefCell<Vec<String>>,
}

#[derive(Debug)]
pub struct Rename {
    pub from: String,
    pub to: String,
    /// Of the old name.
    pub span: Span,
}

impl Names {
    pub fn new(renames: Vec<Rename>) -> Names {
        Names { renames, met: RefCell::default() }
    }

    /// What a field is called.
    pub fn of(&self, key: &str) -> Arc<str> {
        if self.renames.is_empty() {
            return Arc::from(key);
        }
        let mut met = self.met.borrow_mut();
        if !met.iter().any(|m| m == key) {
            met.push(key.to_owned());
        }
        let renamed = self.renames.iter().find(|r| r.from == key);
        Arc::from(renamed.map_or(key, |r| r.to.as_str()))
    }

    /// Says which of them rename nothing, when all of the dialect has been met.
    pub fn check(&self, dialect: &str, cx: Cx) {
        let met = self.met.borrow();
        for Rename { from, span, .. } in self.renames.iter().filter(|r| !met.contains(&r.from)) {
            let message = format!("no frame, body or error of `{dialect}` has a field `{from}`");
            let mut diagnostic = Diagnostic::new(Code::BadPatch, *span, message);
            if let Some(near) = did_you_mean(from, met.iter().map(String::as_str)) {
                diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
            }
            cx.add(diagnostic.help("there is nothing to rename: the old name stands before the colon"));
        }
    }
}
