//! `where:`: the conditions under which a rule matches the current node.

use super::selector::{BySelector, Selector};
use crate::diagnostics::{Code, Diagnostic, Span, likely_typo};
use crate::domain::Tree;
use crate::mapping::grammar::collections::entries;
use crate::mapping::grammar::notation::{AnyValue, notation_schema};
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::{Node, YamlKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct Condition {
    pub selector: Selector,
    pub(crate) test: ConditionTest,
    /// Span of the selector.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub enum ConditionTest {
    Exists,
    Absent,
    Type(&'static str),
    OneOf(Vec<Tree>),
}

pub const TYPES: &[&str] = &["string", "number", "boolean", "object", "array", "null"];
pub const EXISTS: &str = "exists";
pub const ABSENT: &str = "absent";

/// Selector to test; all must match.
#[derive(Clone, Debug, Default)]
pub struct Conditions(pub(crate) Vec<Condition>);

section! {
    /// A comparison with a value that is also the name of a test.
    #[subject = "a condition"]
    pub struct Equals {
        /// The value.
        equals: AnyValue,
    }
}

impl<'n> FromNode<'n> for Conditions {
    fn from_node(node: &'n Node, at: At) -> Option<Conditions> {
        let cx = at.cx;
        let mut conditions = Vec::new();
        for entry in entries(node, at)? {
            let Some(selector) = Selector::parse(&entry.key, entry.key_span, cx) else { continue };
            let test = match &entry.value.kind {
                YamlKind::Text(word) if word == EXISTS => ConditionTest::Exists,
                YamlKind::Text(word) if word == ABSENT => ConditionTest::Absent,
                YamlKind::Text(word) => match TYPES.iter().find(|t| *t == word) {
                    Some(name) => ConditionTest::Type(name),
                    None => {
                        report_operator(word, &entry.value, cx);
                        report_misspelled_type(word, &entry.value, cx);
                        ConditionTest::OneOf(vec![Tree::from(word.as_str())])
                    }
                },
                YamlKind::List(values) => ConditionTest::OneOf({
                    values.iter().for_each(|value| report_operator(value.as_text().unwrap_or_default(), value, cx));
                    values.iter().map(constant).collect()
                }),
                YamlKind::Map(_) => {
                    ConditionTest::OneOf(Equals::from_node(&entry.value, at).map(|e| e.equals.0).into_iter().collect())
                }
                YamlKind::Null => ConditionTest::Absent,
                YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) => {
                    ConditionTest::OneOf(vec![constant(&entry.value)])
                }
            };
            conditions.push(Condition { selector, test, span: entry.key_span });
        }
        Some(Conditions(conditions))
    }
}

notation_schema!(Conditions, |generator| {
    let mut schema = BySelector::<ConditionTest>::json_schema(generator);
    // The rules of a backend also read the head of its response.
    let pattern = r"^([$@^]|response\.(status$|headers\.))";
    schema.insert("propertyNames".to_owned(), serde_json::json!({ "pattern": pattern }));
    schema
});

impl JsonSchema for ConditionTest {
    fn schema_name() -> Cow<'static, str> {
        "Test".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = [EXISTS, ABSENT].into_iter().chain(TYPES.iter().copied()).collect();
        let shown = words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
        json_schema!({
            "title": "test",
            "description": format!(
                "A test of one node: {shown}; an equal value, a list of such values, or `{{ equals: VALUE }}`."
            ),
            "examples": words,
            "if": { "type": "object" },
            "then": Equals::json_schema(generator),
        })
    }
}

/// `!= 1` would be compared as text and never match.
fn report_operator(word: &str, node: &Node, cx: LoadContext) {
    const OPERATORS: &[&str] = &["!=", "==", "<=", ">=", "<", ">", "!", "=", "not ", "~"];
    let operator = OPERATORS.iter().find(|operator| {
        let operand = word.strip_prefix(**operator).map(str::trim_start);
        operand.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '"' | '\'')))
    });
    if let Some(operator) = operator {
        let operator = operator.trim();
        cx.add(
            Diagnostic::new(Code::UnknownValue, node.span, format!("a condition has no operator `{operator}`")).help(
                format!(
                    "match the other values in an earlier rule and add `otherwise: true` to this one; to compare with \
                     the text itself, write `{{ equals: \"{word}\" }}`"
                ),
            ),
        );
    }
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
