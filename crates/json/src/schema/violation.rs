//! A violation of a schema, with its location in the tree.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::alternatives;
use super::location::SchemaLocation;

/// The first violation found in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON pointer into the tree; empty for the root.
    pub pointer: String,
    /// The schema keyword that failed.
    pub keyword: String,
    /// What is wrong, with the names and values of the schema.
    pub kind: ViolationKind,
    /// Where the keyword is: the path of its document, and a JSON pointer into it. It may be in another document than
    /// the schema, behind a `$ref`.
    pub keyword_at: Option<Box<(String, String)>>,
}

/// What is wrong with the value at the pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// It is an object without this required member.
    Missing(String),
    /// It is an object with members that are not allowed.
    NotAllowed(Vec<String>),
    /// It has another type than these.
    WrongType(Vec<String>),
    /// It is none of these values, in JSON.
    NotOneOf(Vec<String>),
    /// It is not this value, in JSON.
    NotEqual(String),
    /// It must do this: `be at least 1`, `have at most 4 items`.
    Unmet(String),
    /// It matches none of these alternatives: `a string`, `an object with the member "id"`.
    NoAlternative(Vec<String>),
    /// It matches none of several alternatives that cannot be described, or a forbidden one.
    Rejected,
    /// Another keyword, with the message of the validator.
    Other(String),
}

impl SchemaViolation {
    /// JSON pointer to what is wrong: the value, or the place of a member that is missing.
    pub fn subject(&self) -> String {
        match &self.kind {
            ViolationKind::Missing(name) => format!("{}/{}", self.pointer, name.replace('~', "~0").replace('/', "~1")),
            _ => self.pointer.clone(),
        }
    }

    pub(super) fn of(error: &ValidationError<'_>) -> SchemaViolation {
        let error = most_specific(error);
        let (pointer, kind) = match alternatives::discriminator(error) {
            Some((pointer, values)) => (pointer, ViolationKind::NotOneOf(values)),
            None => (error.instance_path().to_string(), ViolationKind::of(error)),
        };
        SchemaViolation {
            pointer,
            keyword: error.kind().keyword().to_owned(),
            kind,
            keyword_at: error
                .absolute_keyword_location()
                .and_then(|uri| SchemaLocation::of_uri(uri.as_str()))
                .map(Box::new),
        }
    }
}

impl ViolationKind {
    pub(super) fn of(error: &ValidationError<'_>) -> ViolationKind {
        use ValidationErrorKind as Error;
        let count = |limit: &u64, one: &str, many: &str| format!("{limit} {}", if *limit == 1 { one } else { many });
        let characters = |limit| count(limit, "character", "characters");
        let items = |limit| count(limit, "item", "items");
        let members = |limit| count(limit, "member", "members");
        match error.kind() {
            Error::Required { property } => ViolationKind::Missing(text(property)),
            Error::AdditionalProperties { unexpected } | Error::UnevaluatedProperties { unexpected } => {
                ViolationKind::NotAllowed(unexpected.clone())
            }
            Error::Type { kind: TypeKind::Single(one) } => ViolationKind::WrongType(vec![one.to_string()]),
            Error::Type { kind: TypeKind::Multiple(types) } => {
                ViolationKind::WrongType(types.iter().map(|t| t.to_string()).collect())
            }
            Error::Enum { options } => {
                ViolationKind::NotOneOf(options.as_array().into_iter().flatten().map(Value::to_string).collect())
            }
            Error::Constant { expected_value } => ViolationKind::NotEqual(expected_value.to_string()),
            Error::AnyOf { context } | Error::OneOfNotValid { context } => {
                alternatives::described(context, instance_depth(error))
                    .map_or(ViolationKind::Rejected, ViolationKind::NoAlternative)
            }
            Error::OneOfMultipleValid { .. } => ViolationKind::Rejected,
            Error::Not { .. } | Error::FalseSchema => ViolationKind::Rejected,
            Error::Minimum { limit } => ViolationKind::Unmet(format!("be at least {limit}")),
            Error::Maximum { limit } => ViolationKind::Unmet(format!("be at most {limit}")),
            Error::ExclusiveMinimum { limit } => ViolationKind::Unmet(format!("be greater than {limit}")),
            Error::ExclusiveMaximum { limit } => ViolationKind::Unmet(format!("be less than {limit}")),
            Error::MultipleOf { multiple_of } => ViolationKind::Unmet(format!("be a multiple of {multiple_of}")),
            Error::MinLength { limit } => ViolationKind::Unmet(format!("have at least {}", characters(limit))),
            Error::MaxLength { limit } => ViolationKind::Unmet(format!("have at most {}", characters(limit))),
            Error::MinItems { limit } => ViolationKind::Unmet(format!("have at least {}", items(limit))),
            Error::MaxItems { limit } => ViolationKind::Unmet(format!("have at most {}", items(limit))),
            Error::MinProperties { limit } => ViolationKind::Unmet(format!("have at least {}", members(limit))),
            Error::MaxProperties { limit } => ViolationKind::Unmet(format!("have at most {}", members(limit))),
            Error::UniqueItems => ViolationKind::Unmet("have no item twice".to_owned()),
            Error::Pattern { pattern } => ViolationKind::Unmet(format!("match the pattern `{pattern}`")),
            Error::Format { format } => ViolationKind::Unmet(format!("have the format `{format}`")),
            Error::Contains => ViolationKind::Unmet("have an item that the schema requires".to_owned()),
            Error::PropertyNames { error } => match ViolationKind::of(error) {
                ViolationKind::Unmet(requirement) => {
                    ViolationKind::Unmet(format!("have only names that {requirement}"))
                }
                _ => ViolationKind::Other(message(error)),
            },
            // Keywords that few schemas use, and failures of the validator itself.
            _ => ViolationKind::Other(message(error)),
        }
    }
}

/// The most specific error to show. "Not valid under any of the schemas" is not helpful if all branches but one are for
/// another kind of value, such as `null`. In that case the error of the remaining branch is shown; of several, that of the
/// branch that matches most deeply.
pub(super) fn most_specific<'e>(error: &'e ValidationError<'_>) -> &'e ValidationError<'e> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
        return error;
    };
    let depth = instance_depth(error);
    let candidates = context.iter().filter(|branch| !branch.iter().any(|inner| is_about_another_kind(inner, depth)));
    let candidates: Vec<_> = candidates.filter_map(|branch| branch.first()).collect();
    let deepest = candidates.iter().map(|inner| instance_depth(inner)).max().unwrap_or_default();
    let mut deepest = candidates.iter().filter(|inner| candidates.len() == 1 || instance_depth(inner) == deepest);
    match (deepest.next(), deepest.next()) {
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

pub(super) fn instance_depth(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Shows short scalars and only names other values: a whole response in an error message hides the error, and must not
/// be logged.
pub(super) fn message(error: &ValidationError<'_>) -> String {
    const SHORT: usize = 64;
    match error.instance().as_ref() {
        Value::Object(_) => error.masked_with("this object").to_string(),
        Value::Array(_) => error.masked_with("this array").to_string(),
        Value::String(text) if text.len() > SHORT => error.masked_with("this string").to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => error.to_string(),
    }
}
