//! Checks of a single schema document, without following references.

use serde_json::{Value, json};

use super::set::SchemaError;
use super::subschemas::direct_subschemas;
use super::violation::{ViolationKind, message, most_specific};
use crate::escape_pointer_token;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// JSON pointer into the document, and message.
type DocumentError = (String, String);

pub(super) fn inspect(path: &str, document: &Value) -> Result<(), SchemaError> {
    dialect(document)
        .and_then(|()| grammar(document))
        .and_then(|()| every_schema(document))
        .map_err(|(pointer, message)| SchemaError::Invalid { document: path.to_owned(), pointer, message })
}

fn dialect(document: &Value) -> Result<(), DocumentError> {
    match document.get("$schema") {
        Some(Value::String(dialect)) if dialect.trim_end_matches('#') != DIALECT => {
            let message = format!("unsupported schema dialect `{dialect}`; use `{DIALECT}`");
            Err(("/$schema".to_owned(), message))
        }
        Some(_) | None => Ok(()),
    }
}

fn grammar(document: &Value) -> Result<(), DocumentError> {
    jsonschema::draft202012::meta::validate(document).map_err(|error| {
        let error = most_specific(&error);
        let pointer = error.instance_path().to_string();
        let message = match ViolationKind::of(error) {
            // The alternatives are those of the meta-schema, which the author of a schema does not know.
            ViolationKind::Rejected | ViolationKind::NoAlternative(_) => {
                let keyword = pointer.rsplit('/').next().unwrap_or_default();
                format!("JSON Schema does not allow this value of `{keyword}`")
            }
            _ => message(error),
        };
        (pointer, message)
    })
}

/// Checks that the metaschema does not cover. The validator would also reject an invalid pattern, but without its
/// location.
fn every_schema(document: &Value) -> Result<(), DocumentError> {
    let mut pending = vec![(String::new(), document)];
    while let Some((pointer, schema)) = pending.pop() {
        if !pointer.is_empty() && schema.get("$id").is_some() {
            let message = "`$id` is allowed only at the root: here it would change the base of all references under it";
            return Err((format!("{pointer}/$id"), message.to_owned()));
        }
        if let Some(Value::String(pattern)) = schema.get("pattern") {
            regular_expression(pattern, || format!("{pointer}/pattern"))?;
        }
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            for pattern in patterns.keys() {
                let at = || format!("{pointer}/patternProperties/{}", escape_pointer_token(pattern));
                regular_expression(pattern, at)?;
            }
        }
        // The last one is popped first; reversed, errors are found in document order.
        let inner = direct_subschemas(schema).into_iter().rev();
        pending.extend(inner.map(|inner| (format!("{pointer}{}", inner.pointer), inner.schema)));
    }
    Ok(())
}

fn regular_expression(pattern: &str, at: impl Fn() -> String) -> Result<(), DocumentError> {
    match jsonschema::validator_for(&json!({ "pattern": pattern })) {
        Ok(_) => Ok(()),
        Err(_) => Err((at(), format!("`{pattern}` is not a valid regular expression"))),
    }
}
