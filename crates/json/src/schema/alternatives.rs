//! The alternatives of `anyOf` and `oneOf`, described for a message: what a value that matches none of them should have been.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::violation::instance_depth;

/// The errors of each alternative.
type Branches<'e> = [Vec<ValidationError<'e>>];

/// The member by which the alternatives are distinguished, and its values in JSON, if all alternatives for this type of
/// value differ from it in one member only.
pub(super) fn discriminator(error: &ValidationError<'_>) -> Option<(String, Vec<String>)> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
        return None;
    };
    let depth = instance_depth(error);
    let (mut pointer, mut values) = (None, Vec::new());
    for branch in context.iter().filter(|branch| !branch.iter().any(|inner| is_of_another_type(inner, depth))) {
        let inner = branch.iter().find(|inner| instance_depth(inner) == depth + 1)?;
        let at = inner.instance_path().to_string();
        if pointer.get_or_insert_with(|| at.clone()) != &at {
            return None;
        }
        match inner.kind() {
            ValidationErrorKind::Constant { expected_value } => values.push(expected_value.to_string()),
            ValidationErrorKind::Enum { options } => values.extend(json_values(options)),
            _ => return None,
        }
    }
    Some((pointer?, values))
}

/// What each alternative expects; `None` if one of them cannot be described.
pub(super) fn described(branches: &Branches<'_>, depth: usize) -> Option<Vec<String>> {
    let mut described: Vec<String> = Vec::new();
    for branch in branches {
        for text in description(branch.first()?, depth)? {
            if !described.contains(&text) {
                described.push(text);
            }
        }
    }
    // Null is the same as an absent value.
    let others: Vec<String> = described.iter().filter(|text| *text != "null").cloned().collect();
    Some(if others.is_empty() { described } else { others })
}

fn description(error: &ValidationError<'_>, depth: usize) -> Option<Vec<String>> {
    let name = error.instance_path().to_string().rsplit('/').next().unwrap_or_default().to_owned();
    let inner = instance_depth(error).checked_sub(depth)?;
    match (error.kind(), inner) {
        (ValidationErrorKind::Type { kind: TypeKind::Single(one) }, 0) => Some(vec![with_article(&one.to_string())]),
        (ValidationErrorKind::Type { kind: TypeKind::Multiple(types) }, 0) => {
            Some(types.iter().map(|one| with_article(&one.to_string())).collect())
        }
        (ValidationErrorKind::Constant { expected_value }, 0) => Some(vec![expected_value.to_string()]),
        (ValidationErrorKind::Enum { options }, 0) => Some(json_values(options).collect()),
        (ValidationErrorKind::Required { property }, 0) => Some(vec![format!("an object with the member {property}")]),
        (ValidationErrorKind::Constant { expected_value }, 1) => {
            Some(vec![format!("an object with \"{name}\": {expected_value}")])
        }
        (ValidationErrorKind::Type { kind: TypeKind::Single(one) }, 1) => {
            Some(vec![format!("one with {} as \"{name}\"", with_article(&one.to_string()))])
        }
        (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }, 0) => {
            described(context, depth)
        }
        _ => None,
    }
}

fn is_of_another_type(error: &ValidationError<'_>, depth: usize) -> bool {
    error.kind().keyword() == "type" && instance_depth(error) == depth
}

fn json_values(options: &Value) -> impl Iterator<Item = String> {
    options.as_array().into_iter().flatten().map(Value::to_string)
}

fn with_article(type_name: &str) -> String {
    match type_name {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {type_name}"),
        _ => format!("a {type_name}"),
    }
}
