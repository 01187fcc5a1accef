//! Schema violations as plain sentences.

use super::or_list;
use reframe_json::{SchemaViolation, Tree, pointer_to_path};

pub fn describe(violation: &SchemaViolation, tree: &Tree) -> String {
    let path = pointer_to_path(&violation.pointer);
    let location = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let subject = || if path.is_empty() { "this".to_owned() } else { format!("`{path}`") };
    match violation.keyword.as_str() {
        "required" => format!("{} is missing{location}", quoted_names(&violation.message, '"')),
        "additionalProperties" | "unevaluatedProperties" => {
            format!(
                "{} is not allowed{}",
                quoted_names(&violation.message, '\''),
                if path.is_empty() { " here" } else { &location }
            )
        }
        "type" => {
            let found = tree.pointer(&violation.pointer).map_or("absent".to_owned(), |n| with_article(n.type_name()));
            let expected = violation.message.rsplit_once(" of type").map_or("", |(_, e)| e);
            let expected: Vec<String> = expected.split('"').skip(1).step_by(2).map(with_article).collect();
            format!("{} must be {}, not {found}", subject(), or_list(without_null(&expected)))
        }
        "enum" => {
            let allowed: Vec<&str> = violation.allowed_values.iter().map(|json| json.trim_matches('"')).collect();
            let found = tree.pointer(&violation.pointer).map(quoted_value).unwrap_or_default();
            format!("{} must be {}, not {found}", subject(), one_of(without_null(&allowed)))
        }
        "const" => {
            let expected = violation.message.trim_end_matches(" was expected");
            let found = tree.pointer(&violation.pointer).map(Tree::to_json).unwrap_or_default();
            format!("{} must be {expected}, not {}", subject(), truncate(&found))
        }
        // Which alternative was meant is unknown, so the message only reports that none matches.
        "anyOf" | "oneOf" => {
            let found = tree.pointer(&violation.pointer).map(Tree::to_json).unwrap_or_default();
            format!("{} cannot be {}", subject(), truncate(&found))
        }
        _ if path.is_empty() => violation.message.clone(),
        _ => format!("`{path}`: {}", violation.message),
    }
}

/// The same, with the value appended where the sentence contains only its type. For readers who may see response
/// content.
pub fn describe_with_value(violation: &SchemaViolation, tree: &Tree) -> String {
    let sentence = describe(violation, tree);
    match tree.pointer(&violation.pointer).filter(|_| violation.keyword == "type") {
        Some(value) => format!("{sentence} ({})", truncate(&value.to_json())),
        None => sentence,
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

/// The names in quotes, for a sentence.
fn quoted_names(message: &str, quote: char) -> String {
    let quoted: Vec<String> = message.split(quote).skip(1).step_by(2).map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

fn truncate(json: &str) -> String {
    const MAX_CHARS: usize = 40;
    if json.chars().count() <= MAX_CHARS {
        json.to_owned()
    } else {
        json.chars().take(MAX_CHARS).chain(['…']).collect()
    }
}
