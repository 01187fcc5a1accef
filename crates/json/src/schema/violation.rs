//! What a tree did wrong, said of the place where it did it.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

/// The first rule a tree breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// JSON pointer into the tree; empty for the whole of it.
    pub pointer: String,
    /// The schema keyword that refused.
    pub keyword: String,
    pub message: String,
}

impl Breach {
    pub(super) fn of(error: &ValidationError<'_>) -> Breach {
        let meant = meant(error);
        Breach {
            pointer: meant.instance_path().to_string(),
            keyword: meant.kind().keyword().to_owned(),
            message: message(meant),
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "at {pointer}: {}", self.message),
        }
    }
}

impl std::error::Error for Breach {}

/// The error to show for this one. "Not valid under any of the schemas" helps nobody when all but
/// one of them are plainly about something else, say `null`: then that one's error is meant.
fn meant<'e>(error: &'e ValidationError<'_>) -> &'e ValidationError<'e> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
        return error;
    };
    let depth = steps(error);
    let mut candidates = context.iter().filter(|branch| !branch.iter().any(|inner| is_other_kind(inner, depth)));
    match (candidates.next().and_then(|branch| branch.first()), candidates.next()) {
        (Some(inner), None) => meant(inner),
        (Some(_) | None, _) => error,
    }
}

/// Whether a branch speaks of another kind of value: of another type, or with another constant
/// where a property tells the kinds apart.
fn is_other_kind(error: &ValidationError<'_>, depth: usize) -> bool {
    match error.kind().keyword() {
        "type" => steps(error) == depth,
        "const" | "enum" => steps(error) <= depth + 1,
        _ => false,
    }
}

fn steps(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}

/// Short scalars are shown, everything else is only named: a whole answer in an error line hides
/// the error, and does not belong in a log.
fn message(error: &ValidationError<'_>) -> String {
    const SHORT: usize = 64;
    match error.instance().as_ref() {
        Value::Object(_) => error.masked_with("this object").to_string(),
        Value::Array(_) => error.masked_with("this list").to_string(),
        Value::String(text) if text.len() > SHORT => error.masked_with("this string").to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => error.to_string(),
    }
}
