//! What is wrong with one schema document by itself.

use serde_json::{Value, json};

use super::set::SchemaError;
use super::subschemas::{escape, inner_schemas};
use super::violation::Breach;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Where in the document, and what.
type Fault = (String, String);

pub(super) fn inspect(path: &str, document: &Value) -> Result<(), SchemaError> {
    dialect(document)
        .and_then(|()| grammar(document))
        .and_then(|()| every_schema(document))
        .map_err(|(pointer, message)| SchemaError::Invalid { document: path.to_owned(), pointer, message })
}

fn dialect(document: &Value) -> Result<(), Fault> {
    match document.get("$schema") {
        Some(Value::String(dialect)) if dialect.trim_end_matches('#') != DIALECT => {
            let message = format!("`{dialect}` is not understood; write `{DIALECT}`");
            Err(("/$schema".to_owned(), message))
        }
        Some(_) | None => Ok(()),
    }
}

fn grammar(document: &Value) -> Result<(), Fault> {
    jsonschema::draft202012::meta::validate(document).map_err(|error| {
        let breach = Breach::of(&error);
        (breach.pointer, breach.message)
    })
}

/// What the grammar of schemas lets pass. The validator would refuse a pattern too, but could not
/// say where it stands.
fn every_schema(document: &Value) -> Result<(), Fault> {
    let mut ahead = vec![(String::new(), document)];
    while let Some((pointer, schema)) = ahead.pop() {
        if !pointer.is_empty() && schema.get("$id").is_some() {
            let message = "an inner `$id` would move every reference under it";
            return Err((format!("{pointer}/$id"), message.to_owned()));
        }
        if let Some(Value::String(pattern)) = schema.get("pattern") {
            regular_expression(pattern, || format!("{pointer}/pattern"))?;
        }
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            for pattern in patterns.keys() {
                let at = || format!("{pointer}/patternProperties/{}", escape(pattern));
                regular_expression(pattern, at)?;
            }
        }
        // The last is popped first, and faults are wanted in the order of the file.
        let inner = inner_schemas(schema).into_iter().rev();
        ahead.extend(inner.map(|inner| (format!("{pointer}{}", inner.pointer), inner.schema)));
    }
    Ok(())
}

fn regular_expression(pattern: &str, at: impl Fn() -> String) -> Result<(), Fault> {
    match jsonschema::validator_for(&json!({ "pattern": pattern })) {
        Ok(_) => Ok(()),
        Err(_) => Err((at(), format!("`{pattern}` is not a regular expression"))),
    }
}
