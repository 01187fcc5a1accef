//! `checks:` of a dialect's `request:`: what a request must meet, each with the message of the 400.

use super::dialect_request::RequiredType;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::Tree;
use crate::mapping::grammar::collections::List;
use crate::mapping::grammar::notation::{AnyValue, NameOf};
use crate::mapping::grammar::{Section, section};
use crate::mapping::language::condition::{Condition, Conditions};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Node;

section! {
    /// What a value of a request must be. Checks are made after `required` and `rejected_fields`, in the order of the
    /// list; the first that fails is a 400. A value that is absent or null fails.
    #[subject = "a check"]
    #[title = "check"]
    #[extend("anyOf" = serde_json::json!([{ "required": ["type"] }, { "required": ["allowed_values"] }]))]
    pub struct CheckSection {
        /// A description for readers. Patches refer to it.
        name: Option<String>,
        /// A selector; every node that it finds is checked, as `@`. A member that is null is not found. Several selectors
        /// are for lists inside lists. Default: the whole body.
        each: List<Selector> = List::default(),
        /// Conditions, all of which must match, or the check is not made: selector to test.
        conditions as "where": Conditions = Conditions::default(),
        /// What is checked; its path is the `param` of the error. Default: `@`.
        value: Option<Selector>,
        /// The type that it must have, or several types.
        types as "type": List<NameOf<RequiredType>> = List::default(),
        /// The values that it may have.
        allowed_values: List<AnyValue> = List::default(),
        /// The error message; `{value}` is replaced by what the client sent.
        message: String,
        /// The error code.
        code: Option<String>,
        /// Another `param` than the path of the value.
        param: Option<Selector>,
    }
}

/// At least one of them is needed.
const TESTS: &[&str] = &["type", "allowed_values"];

/// A check of a client's request.
#[derive(Debug)]
pub struct RequestCheck {
    /// Selects what is checked, from outside to inside.
    pub each: Vec<Selector>,
    pub conditions: Vec<Condition>,
    pub value: Selector,
    /// One of them; empty if any type will do.
    pub types: Vec<RequiredType>,
    /// One of them; empty if any value will do.
    pub allowed_values: Vec<Tree>,
    pub message: String,
    pub code: Option<String>,
    /// What the error is about.
    pub param: Selector,
}

impl RequestCheck {
    pub fn parse(node: &Node, cx: LoadContext) -> Option<RequestCheck> {
        let fields = CheckSection::open(node, "", cx)?;
        let check = CheckSection::read_fields(&fields)?;
        fields.finish();
        if check.types.is_empty() && check.allowed_values.is_empty() {
            // A mistake in them is already reported.
            if !TESTS.iter().any(|key| node.get(key).is_some() || node.misspells(key)) {
                let message = "a check must have `type:` or `allowed_values:`";
                cx.add(Diagnostic::new(Code::MissingKey, node.span, message));
            }
            return None;
        }
        let value = check.value.or_else(|| Selector::parse("@", node.span, cx))?;
        Some(RequestCheck {
            each: check.each.0,
            conditions: check.conditions.0,
            param: check.param.unwrap_or_else(|| value.clone()),
            value,
            types: check.types.into_iter().map(|NameOf(one)| one).collect(),
            allowed_values: check.allowed_values.into_iter().map(|value| value.0).collect(),
            message: check.message,
            code: check.code,
        })
    }
}
