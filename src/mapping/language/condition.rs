//! `where:`: the conditions under which a rule matches the current node.

use super::selector::Selector;
use crate::diagnostics::{Code, Diagnostic, Span, likely_typo};
use crate::domain::Tree;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, constant};
use crate::mapping::source::yaml::{Node, YamlKind};

#[derive(Debug)]
pub struct Condition {
    pub selector: Selector,
    pub(crate) test: ConditionTest,
    /// Span of the selector.
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ConditionTest {
    Exists,
    Absent,
    Type(&'static str),
    OneOf(Vec<Tree>),
}

pub const TYPES: &[&str] = &["string", "number", "boolean", "object", "array", "null"];
pub const EXISTS: &str = "exists";
pub const ABSENT: &str = "absent";

pub fn parse(fields: &FieldReader, cx: LoadContext) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for entry in fields.map("where") {
        let Some(selector) = Selector::parse(&entry.key, entry.key_span, cx) else { continue };
        let test = match &entry.value.kind {
            YamlKind::Text(word) if word == EXISTS => ConditionTest::Exists,
            YamlKind::Text(word) if word == ABSENT => ConditionTest::Absent,
            YamlKind::Text(word) => match TYPES.iter().find(|t| *t == word) {
                Some(name) => ConditionTest::Type(name),
                None => {
                    report_misspelled_type(word, &entry.value, cx);
                    ConditionTest::OneOf(vec![Tree::from(word.as_str())])
                }
            },
            YamlKind::List(values) => ConditionTest::OneOf(values.iter().map(constant).collect()),
            YamlKind::Map(_) => {
                let Some(inner) = FieldReader::of(&entry.value, "a condition", cx) else { continue };
                let value = inner.required("equals").map(constant);
                inner.finish();
                ConditionTest::OneOf(value.into_iter().collect())
            }
            YamlKind::Null => ConditionTest::Absent,
            YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) => {
                ConditionTest::OneOf(vec![constant(&entry.value)])
            }
        };
        conditions.push(Condition { selector, test, span: entry.key_span });
    }
    conditions
}

/// `strng` would be compared as text and never match.
fn report_misspelled_type(word: &str, node: &Node, cx: LoadContext) {
    if let Some(near) = likely_typo(word, TYPES.iter().copied().chain([EXISTS, ABSENT])) {
        cx.add(
            Diagnostic::new(Code::UnknownValue, node.span, format!("unknown type `{word}`"))
                .label(format!("did you mean `{near}`?"))
                .help(format!("to compare with the text itself, write `{{ equals: {word} }}`")),
        );
    }
}
