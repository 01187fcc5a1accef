//! Schema violations as plain sentences.

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
            let found = tree.pointer(&violation.pointer).map_or("nothing", Tree::type_name);
            let expected = violation.message.rsplit_once(" of type").map_or("", |(_, e)| e.trim_start_matches('s'));
            format!(
                "{} must be of type {}, not {found}",
                subject(),
                expected.trim().replace('"', "").replace(", ", " or ")
            )
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
