//! A violation of a schema, with its location in the tree.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

/// The first violation found in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON pointer into the tree; empty for the root.
    pub pointer: String,
    /// The schema keyword that failed.
    pub keyword: String,
    /// The message of the validator.
    pub message: String,
    /// The values that an `enum` allows, as JSON; empty for other keywords. The message has only the first ones.
    pub allowed_values: Vec<String>,
}

impl SchemaViolation {
    pub(super) fn of(error: &ValidationError<'_>) -> SchemaViolation {
        let most_specific = most_specific(error);
        SchemaViolation {
            pointer: most_specific.instance_path().to_string(),
            keyword: most_specific.kind().keyword().to_owned(),
            message: message(most_specific),
            allowed_values: allowed_values(most_specific),
        }
    }
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "at {pointer}: {}", self.message),
        }
    }
}

impl std::error::Error for SchemaViolation {}

/// The most specific error to show. "Not valid under any of the schemas" is not helpful if all branches but one are for
/// another kind of value, such as `null`. In that case the error of the remaining branch is shown.
fn most_specific<'e>(error: &'e ValidationError<'_>) -> &'e ValidationError<'e> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
        return error;
    };
    let depth = instance_depth(error);
    let mut candidates =
        context.iter().filter(|branch| !branch.iter().any(|inner| is_about_another_kind(inner, depth)));
    match (candidates.next().and_then(|branch| branch.first()), candidates.next()) {
        (Some(inner), None) => most_specific(inner),
        (Some(_) | None, _) => error,
    }
}

/// True if a branch is for another kind of value: of another type, or with another constant in a property that
/// distinguishes the kinds.
fn is_about_another_kind(error: &ValidationError<'_>, depth: usize) -> bool {
    match error.kind().keyword() {
        "type" => instance_depth(error) == depth,
        "const" | "enum" => instance_depth(error) <= depth + 1,
        _ => false,
    }
}

fn instance_depth(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}

fn allowed_values(error: &ValidationError<'_>) -> Vec<String> {
    match error.kind() {
        ValidationErrorKind::Enum { options } => {
            options.as_array().into_iter().flatten().map(Value::to_string).collect()
        }
        _ => Vec::new(),
    }
}

/// Shows short scalars and only names other values: a whole response in an error message hides the error, and must not
/// be logged.
fn message(error: &ValidationError<'_>) -> String {
    const SHORT: usize = 64;
    match error.instance().as_ref() {
        Value::Object(_) => error.masked_with("this object").to_string(),
        Value::Array(_) => error.masked_with("this array").to_string(),
        Value::String(text) if text.len() > SHORT => error.masked_with("this string").to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => error.to_string(),
    }
}
