//! A profile's `rename_fields:`: renames fields in all output of a dialect. A rename that matches no field is reported.

use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean};
use crate::domain::{Text, Tree};
use crate::mapping::source::field_reader::LoadContext;
use std::borrow::Cow;
use std::cell::RefCell;

#[derive(Debug, Default)]
pub struct RenameFields {
    renames: Vec<FieldRename>,
    /// The fields of the dialect seen so far, by their old names.
    seen: RefCell<Vec<String>>,
}

#[derive(Debug)]
pub struct FieldRename {
    pub from: String,
    pub to: String,
    /// Span of the old name.
    pub span: Span,
}

impl RenameFields {
    pub fn new(renames: Vec<FieldRename>) -> RenameFields {
        RenameFields { renames, seen: RefCell::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.renames.is_empty()
    }

    /// Old and new names.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.renames.iter().map(|rename| (rename.from.clone(), rename.to.clone())).collect()
    }

    /// The new name of a field.
    pub fn renamed(&self, key: &str) -> Text {
        if self.renames.is_empty() {
            return Text::from(key);
        }
        let mut seen = self.seen.borrow_mut();
        if !seen.iter().any(|name| name == key) {
            seen.push(key.to_owned());
        }
        let renamed = self.renames.iter().find(|r| r.from == key);
        Text::from(renamed.map_or(key, |r| r.to.as_str()))
    }

    /// Reports renames that match no field. Call this after the whole dialect was compiled.
    pub fn report_unused(&self, dialect: &str, cx: LoadContext) {
        let seen = self.seen.borrow();
        for FieldRename { from, span, .. } in self.renames.iter().filter(|r| !seen.contains(&r.from)) {
            let message = format!("no frame, body or error of `{dialect}` has a field `{from}`");
            let mut diagnostic = Diagnostic::new(Code::BadPatch, *span, message);
            if let Some(near) = did_you_mean(from, seen.iter().map(String::as_str)) {
                diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
            }
            cx.add(diagnostic.help("there is nothing to rename; the old name comes before the colon"));
        }
    }
}

/// A frame or body with the dialect's own names. `renames`: old and new names.
pub fn restore<'t>(tree: &'t Tree, renames: &[(String, String)]) -> Cow<'t, Tree> {
    if renames.is_empty() {
        return Cow::Borrowed(tree);
    }
    let restore = |tree: &Tree| self::restore(tree, renames).into_owned();
    let old = |name: &Text| {
        let renamed = renames.iter().find(|(_, to)| **to == **name);
        renamed.map_or_else(|| name.clone(), |(from, _)| Text::from(from.as_str()))
    };
    Cow::Owned(match tree {
        Tree::Map(members) => Tree::Map(members.iter().map(|(name, value)| (old(name), restore(value))).collect()),
        Tree::List(items) => Tree::List(items.iter().map(restore).collect()),
        other => other.clone(),
    })
}
