//! Follows all references before the validator does, to report exactly which one cannot be resolved.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::location::{SchemaLocation, Target};
use super::set::SchemaError;
use super::subschemas::direct_subschemas;

/// The validator calls itself for each subschema in a row, when it is built and when it is freed.
const MAX_SUBSCHEMAS: usize = 8_000;

/// The documents, and the errors of each one without its references.
pub(super) struct ReferenceChecker<'a> {
    pub(super) documents: &'a HashMap<String, Value>,
    pub(super) errors: &'a HashMap<String, SchemaError>,
}

impl ReferenceChecker<'_> {
    /// The first error in the schema at `start` or in anything that it contains or refers to.
    pub(super) fn first_error(&self, start: SchemaLocation) -> Option<SchemaError> {
        let mut seen = HashSet::from([start.clone()]);
        let mut pending = vec![start.clone()];
        while let Some(location) = pending.pop() {
            if seen.len() > MAX_SUBSCHEMAS {
                let message = format!("this schema contains and refers to more than {MAX_SUBSCHEMAS} subschemas");
                let SchemaLocation { document, pointer } = start;
                return Some(SchemaError::Invalid { document, pointer, message });
            }
            if let Some(error) = self.errors.get(&location.document) {
                return Some(error.clone());
            }
            let schema = self.documents.get(&location.document)?.pointer(&location.pointer)?;
            let mut next = match self.reference(&location, schema) {
                Ok(next) => next,
                Err(error) => return Some(error),
            };
            next.extend(direct_subschemas(schema).into_iter().map(|inner| SchemaLocation {
                document: location.document.clone(),
                pointer: format!("{}{}", location.pointer, inner.pointer),
            }));
            // The last one is popped first; reversed, errors are found in document order.
            for location in next.into_iter().rev() {
                if seen.insert(location.clone()) {
                    pending.push(location);
                }
            }
        }
        None
    }

    /// The target of the schema's own `$ref`, if it is in the set.
    fn reference(&self, location: &SchemaLocation, schema: &Value) -> Result<Vec<SchemaLocation>, SchemaError> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(Vec::new());
        };
        let error = |message: String| SchemaError::Invalid {
            document: location.document.clone(),
            pointer: format!("{}/$ref", location.pointer),
            message,
        };
        let target = match location.follow(reference) {
            Target::SchemaLocation(target) => target,
            Target::BuiltIn => return Ok(Vec::new()),
            Target::Remote => {
                let message = format!("`{reference}` is a remote schema, and remote schemas are not fetched");
                return Err(error(message));
            }
        };
        match self.documents.get(&target.document) {
            Some(document) if document.pointer(&target.pointer).is_some() => Ok(vec![target]),
            Some(_) => {
                let message = format!("`{}` has no `{}`", target.document, target.pointer);
                Err(error(message))
            }
            None => {
                let message = format!("there is no schema `{}`", target.document);
                Err(error(message))
            }
        }
    }
}
