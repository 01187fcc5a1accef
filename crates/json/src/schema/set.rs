//! All schema documents of a mappings folder, and compiling one place among them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, Registry};
use serde_json::{Value, json};

use super::inspect::inspect;
use super::location::Place;
use super::open_objects;
use super::references::Reach;
use super::{Schema, node::TreeJson};

/// All schema documents of a set. They know each other by their paths; nothing is ever fetched.
pub struct SchemaSet {
    documents: HashMap<String, Value>,
    /// What is wrong with a document, or with one that it refers to.
    faults: HashMap<String, SchemaError>,
    /// The documents without a fault, indexed once for all that is compiled from them.
    registry: Result<Registry<'static>, String>,
}

/// Why a schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// No document of that path, or nothing at that pointer.
    NotFound,
    Invalid {
        /// The document at fault; not always the one that was asked for.
        document: String,
        /// JSON pointer into the document.
        pointer: String,
        message: String,
    },
}

impl SchemaSet {
    /// Documents by path, like `chat/chunk.json`. A `$ref` is resolved relative to the path of
    /// the document it stands in, whatever `$id` that document gives itself.
    pub fn new(documents: impl IntoIterator<Item = (String, Value)>) -> SchemaSet {
        SchemaSet::of(documents.into_iter().collect())
    }

    /// Compiles a document (`chat/chunk.json`) or a place in it
    /// (`responses/events.json#/$defs/response.created`).
    pub fn compile(&self, reference: &str) -> Result<Schema, SchemaError> {
        let place = Place::parse(reference);
        self.find(&place).ok_or(SchemaError::NotFound)?;
        if let Some(fault) = self.faults.get(&place.document) {
            return Err(fault.clone());
        }
        // A place outside the known keywords has not been looked at yet.
        let reach = Reach { documents: &self.documents, faults: &self.faults };
        if let Some(fault) = reach.first_fault(place.clone()) {
            return Err(fault);
        }
        let invalid = |message| SchemaError::Invalid {
            document: place.document.clone(),
            pointer: place.pointer.clone(),
            message,
        };
        let registry = self.registry.as_ref();
        let registry = registry.map_err(|message| invalid(message.clone()))?;
        jsonschema::options_for::<TreeJson>()
            .with_draft(Draft::Draft202012)
            .with_registry(registry)
            .offline()
            .build(&json!({ "$ref": place.uri() }))
            .map(|validator| Schema(Arc::new(validator)))
            .map_err(|error| invalid(error.to_string()))
    }

    pub fn contains(&self, reference: &str) -> bool {
        self.find(&Place::parse(reference)).is_some()
    }

    /// Lint: pointers of the object schemas in a document that are closed neither by
    /// `additionalProperties` nor by `unevaluatedProperties`, nor by a schema around them that
    /// speaks of the same object. Empty if there is no such document.
    pub fn open_objects(&self, document: &str) -> Vec<String> {
        self.documents.get(document).map(open_objects::open_objects).unwrap_or_default()
    }

    /// Not generic, so that no caller compiles it again.
    fn of(mut documents: HashMap<String, Value>) -> SchemaSet {
        let mut own = HashMap::new();
        for (path, document) in &mut documents {
            if let Some(members) = document.as_object_mut() {
                members.shift_remove("$id");
            }
            if let Err(fault) = inspect(path, document) {
                own.insert(path.clone(), fault);
            }
        }
        let reach = Reach { documents: &documents, faults: &own };
        let faults: HashMap<String, SchemaError> =
            documents.keys().filter_map(|path| Some((path.clone(), reach.first_fault(Place::parse(path))?))).collect();
        let sound = documents.iter().filter(|(path, _)| !faults.contains_key(*path));
        let registry = index(sound).map_err(|error| error.to_string());
        SchemaSet { documents, faults, registry }
    }

    fn find(&self, place: &Place) -> Option<&Value> {
        self.documents.get(&place.document)?.pointer(&place.pointer)
    }
}

impl fmt::Debug for SchemaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut paths: Vec<&String> = self.documents.keys().collect();
        paths.sort();
        f.debug_tuple("SchemaSet").field(&paths).finish()
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::NotFound => f.write_str("no such schema"),
            SchemaError::Invalid { document, pointer, message } => write!(f, "{document}#{pointer}: {message}"),
        }
    }
}

impl std::error::Error for SchemaError {}

fn index<'a>(
    documents: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<Registry<'static>, jsonschema::ReferencingError> {
    let owned = documents.map(|(path, document)| (Place::parse(path).uri(), document.clone()));
    Registry::new().draft(Draft::Draft202012).extend(owned)?.prepare()
}
