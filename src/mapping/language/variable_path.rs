//! The paths of variables in expressions: `turn.items`.

use crate::domain::variables::FieldName;
use std::sync::Arc;

/// A dotted path of names: `turn.items`. And the same names after the first, as those of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePath(pub Vec<Arc<str>>, Box<[FieldName]>);

impl VariablePath {
    pub fn new(names: Vec<Arc<str>>) -> VariablePath {
        let fields = names.iter().skip(1).map(|name| FieldName::find(name)).collect();
        VariablePath(names, fields)
    }

    pub(super) fn parse(text: &str) -> Option<VariablePath> {
        let name = |s: &str| {
            s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let steps: Vec<&str> = text.split('.').collect();
        let keyword = matches!(text, "true" | "false" | "none" | "True" | "False" | "None");
        (!keyword && steps.iter().all(|s| name(s)))
            .then(|| VariablePath::new(steps.into_iter().map(Arc::from).collect()))
    }

    /// The names after the first, as those of fields.
    pub fn fields(&self) -> &[FieldName] {
        &self.1
    }
}
