//! `where:`: what a rule asks of the node at hand.

use super::selector::Selector;
use crate::diagnostics::{Code, Diagnostic, Span, slip_of};
use crate::domain::Tree;
use crate::mapping::source::field_reader::{Cx, Fields, constant};
use crate::mapping::source::yaml::{Kind as Yaml, Node};

#[derive(Debug)]
pub struct Condition {
    pub at: Selector,
    pub(crate) test: Test,
    /// Where the selector stands.
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Test {
    Exists,
    Absent,
    Type(&'static str),
    OneOf(Vec<Tree>),
}

pub const TYPES: &[&str] = &["string", "number", "boolean", "object", "array", "null"];
pub const EXISTS: &str = "exists";
pub const ABSENT: &str = "absent";

impl Condition {}

pub fn parse(fields: &Fields, cx: Cx) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for entry in fields.map("where") {
        let Some(at) = Selector::parse(&entry.key, entry.key_span, cx) else { continue };
        let test = match &entry.value.kind {
            Yaml::Text(word) if word == EXISTS => Test::Exists,
            Yaml::Text(word) if word == ABSENT => Test::Absent,
            Yaml::Text(word) => match TYPES.iter().find(|t| *t == word) {
                Some(name) => Test::Type(name),
                None => {
                    hardly_meant(word, &entry.value, cx);
                    Test::OneOf(vec![Tree::from(word.as_str())])
                }
            },
            Yaml::List(values) => Test::OneOf(values.iter().map(constant).collect()),
            Yaml::Map(_) => {
                let Some(inner) = Fields::of(&entry.value, "a condition", cx) else { continue };
                let value = inner.required("equals").map(constant);
                inner.done();
                Test::OneOf(value.into_iter().collect())
            }
            Yaml::Null => Test::Absent,
            Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) => Test::OneOf(vec![constant(&entry.value)]),
        };
        conditions.push(Condition { at, test, span: entry.key_span });
    }
    conditions
}

/// `strng` is compared as text, and nothing is ever equal to it.
fn hardly_meant(word: &str, node: &Node, cx: Cx) {
    if let Some(near) = slip_of(word, TYPES.iter().copied().chain([EXISTS, ABSENT])) {
        cx.add(
            Diagnostic::new(Code::UnknownValue, node.span, format!("`{word}` is no kind of value"))
                .label(format!("did you mean `{near}`?"))
                .help(format!("where the text itself is meant, write `{{ equals: {word} }}`")),
        );
    }
}
