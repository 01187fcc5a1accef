//! Schema violations as plain sentences.

use super::or_list;
use reframe_json::{SchemaViolation, Tree, ViolationKind, pointer_to_path};

/// `tree`: the tree that violates the schema.
pub fn describe(violation: &SchemaViolation, tree: &Tree) -> String {
    let path = pointer_to_path(&violation.pointer);
    let location = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let subject = if path.is_empty() { "this".to_owned() } else { format!("`{path}`") };
    let found = tree.pointer(&violation.pointer);
    let found_json = || truncate(&found.map(Tree::to_json).unwrap_or_default());
    match &violation.kind {
        ViolationKind::Missing(name) => format!("`{name}` is missing{location}"),
        ViolationKind::NotAllowed(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} is not allowed{}", names.join(", "), if path.is_empty() { " here" } else { &location })
        }
        ViolationKind::WrongType(types) => {
            let found = match found {
                Some(number @ Tree::Num(_)) if types.iter().any(|name| name == "integer") => {
                    truncate(&number.to_json())
                }
                Some(value) => with_article(value.type_name()),
                None => "absent".to_owned(),
            };
            let types: Vec<String> = types.iter().map(|name| with_article(name)).collect();
            format!("{subject} must be {}, not {found}", or_list(without_null(&types)))
        }
        ViolationKind::NotOneOf(values) => {
            let allowed: Vec<&str> = values.iter().map(|json| json.trim_matches('"')).collect();
            let found = found.map(quoted_value).unwrap_or_default();
            format!("{subject} must be {}, not {found}", one_of(without_null(&allowed)))
        }
        ViolationKind::NotEqual(expected) => format!("{subject} must be {expected}, not {}", found_json()),
        ViolationKind::Unmet(requirement) => match found {
            Some(number @ Tree::Num(_)) => format!("{subject} must {requirement}, not {}", number.to_json()),
            Some(_) | None => format!("{subject} must {requirement}"),
        },
        ViolationKind::NoAlternative(alternatives) => {
            let found = found.map(quoted_value).unwrap_or_default();
            format!("{subject} must be {}, not {found}", or_list(alternatives.iter().map(String::as_str)))
        }
        // Which alternative was meant is unknown, so the message only reports that none matches.
        ViolationKind::Rejected => format!("{subject} cannot be {}", found_json()),
        ViolationKind::Other(message) if path.is_empty() => message.clone(),
        ViolationKind::Other(message) => format!("`{path}`: {message}"),
    }
}

/// The same, with the value appended where the sentence contains only its type. For readers who may see response
/// content.
pub fn describe_with_value(violation: &SchemaViolation, tree: &Tree) -> String {
    let sentence = describe(violation, tree);
    let value = tree.pointer(&violation.pointer);
    match (&violation.kind, value) {
        (ViolationKind::WrongType(_), Some(value)) | (ViolationKind::Unmet(_), Some(value @ Tree::Str(_))) => {
            format!("{sentence} ({})", truncate(&value.to_json()))
        }
        _ => sentence,
    }
}

/// `one of a, b or c`, with at most 12 values.
pub fn one_of<'v>(allowed: impl IntoIterator<Item = &'v str>) -> String {
    const MAX_VALUES: usize = 12;
    let allowed: Vec<&str> = allowed.into_iter().collect();
    match allowed.split_at_checked(MAX_VALUES) {
        Some((first, rest)) if rest.len() > 1 => {
            format!("one of {} or {} other values", first.join(", "), rest.len())
        }
        _ if allowed.len() > 1 => format!("one of {}", or_list(allowed)),
        _ => or_list(allowed),
    }
}

/// A scalar in backticks, truncated; of other values only the type.
pub fn quoted_value(value: &Tree) -> String {
    match value {
        Tree::Str(text) => format!("`{}`", truncate(text)),
        Tree::SurrogateString(string) => format!("`{}`", truncate(&string.to_string_lossy())),
        Tree::Num(_) | Tree::Bool(_) => format!("`{}`", value.to_json()),
        Tree::Null | Tree::List(_) | Tree::Map(_) => with_article(value.type_name()),
    }
}

pub fn with_article(type_name: &str) -> String {
    match type_name {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {type_name}"),
        _ => format!("a {type_name}"),
    }
}

/// Null is listed only if nothing else is allowed: it is equivalent to an absent value.
fn without_null<T: AsRef<str>>(allowed: &[T]) -> Vec<&str> {
    let others: Vec<&str> = allowed.iter().map(AsRef::as_ref).filter(|a| *a != "null").collect();
    if others.is_empty() { allowed.iter().map(AsRef::as_ref).collect() } else { others }
}

pub fn truncate(json: &str) -> String {
    const MAX_CHARS: usize = 40;
    if json.chars().count() <= MAX_CHARS {
        json.to_owned()
    } else {
        json.chars().take(MAX_CHARS).chain(['…']).collect()
    }
}
