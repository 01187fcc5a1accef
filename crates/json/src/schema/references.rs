//! Following every reference before the validator does, to say exactly which one leads nowhere.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::location::{Place, Target};
use super::set::SchemaError;
use super::subschemas::inner_schemas;

/// The documents, and what is wrong with each by itself.
pub(super) struct Reach<'a> {
    pub(super) documents: &'a HashMap<String, Value>,
    pub(super) faults: &'a HashMap<String, SchemaError>,
}

impl Reach<'_> {
    /// The first fault among everything that the schema at `start` contains or refers to.
    pub(super) fn first_fault(&self, start: Place) -> Option<SchemaError> {
        let mut seen = HashSet::from([start.clone()]);
        let mut ahead = vec![start];
        while let Some(place) = ahead.pop() {
            if let Some(fault) = self.faults.get(&place.document) {
                return Some(fault.clone());
            }
            let schema = self.documents.get(&place.document)?.pointer(&place.pointer)?;
            let mut next = match self.reference(&place, schema) {
                Ok(next) => next,
                Err(fault) => return Some(fault),
            };
            next.extend(inner_schemas(schema).into_iter().map(|inner| Place {
                document: place.document.clone(),
                pointer: format!("{}{}", place.pointer, inner.pointer),
            }));
            // The last is popped first, and faults are wanted in the order of the file.
            for place in next.into_iter().rev() {
                if seen.insert(place.clone()) {
                    ahead.push(place);
                }
            }
        }
        None
    }

    /// Where the schema's own `$ref` leads, if it has one that leads into the set.
    fn reference(&self, place: &Place, schema: &Value) -> Result<Vec<Place>, SchemaError> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(Vec::new());
        };
        let fault = |message: String| SchemaError::Invalid {
            document: place.document.clone(),
            pointer: format!("{}/$ref", place.pointer),
            message,
        };
        let target = match place.follow(reference) {
            Target::Place(target) => target,
            Target::Known => return Ok(Vec::new()),
            Target::Elsewhere => {
                let message = format!("`{reference}` is elsewhere, and nothing is fetched");
                return Err(fault(message));
            }
        };
        match self.documents.get(&target.document) {
            Some(document) if document.pointer(&target.pointer).is_some() => Ok(vec![target]),
            Some(_) => {
                let message = format!("`{}` has no `{}`", target.document, target.pointer);
                Err(fault(message))
            }
            None => {
                let message = format!("there is no schema `{}`", target.document);
                Err(fault(message))
            }
        }
    }
}
