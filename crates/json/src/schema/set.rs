//! All schema documents of a mapping set, and the compilation of one of their schemas.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, Registry};
use serde_json::{Value, json};

use super::evaluations::Evaluations;
use super::inspect::inspect;
use super::location::SchemaLocation;
use super::open_objects;
use super::references::ReferenceChecker;
use super::value_reads::ValueReads;
use super::{Schema, node::TreeJson};

/// All schema documents, by path.
pub(super) type Documents = HashMap<String, Value>;

/// All schema documents of a set. They refer to each other by path; remote schemas are never fetched.
pub struct SchemaSet {
    documents: Documents,
    /// Found when the first schema is compiled: a reload with compiled schemas does not need it.
    checked: OnceCell<CheckedDocuments>,
    evaluations: Evaluations,
}

struct CheckedDocuments {
    /// The error of each invalid document, or of a document that it refers to.
    errors: HashMap<String, SchemaError>,
    /// The documents without errors, indexed once for all compilations.
    registry: Result<Registry<'static>, String>,
}

/// Why a schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// There is no such document, or nothing at the pointer.
    NotFound,
    /// A document is not a valid schema, or a reference in it cannot be resolved.
    Invalid {
        /// The document with the error; not always the one that is compiled.
        document: String,
        /// JSON pointer into the document.
        pointer: String,
        /// The problem, in one sentence.
        message: String,
    },
}

impl SchemaSet {
    /// Documents by path, like `chat/chunk.json`. A `$ref` is resolved relative to the path of its document; `$id` is
    /// ignored.
    pub fn new(documents: impl IntoIterator<Item = (String, Value)>) -> SchemaSet {
        SchemaSet::of(documents.into_iter().collect())
    }

    /// Compiles a document (`chat/chunk.json`) or a schema in it (`responses/events.json#/$defs/response.created`).
    pub fn compile(&self, reference: &str) -> Result<Schema, SchemaError> {
        let location = SchemaLocation::parse(reference);
        self.find(&location).ok_or(SchemaError::NotFound)?;
        let CheckedDocuments { errors, registry } = self.checked.get_or_init(|| check(&self.documents));
        if let Some(error) = errors.get(&location.document) {
            return Err(error.clone());
        }
        // A location outside the known keywords has not been checked yet.
        let checker = ReferenceChecker { documents: &self.documents, errors };
        if let Some(error) = checker.first_error(location.clone()) {
            return Err(error);
        }
        if let Some(error) = self.evaluations.first_error(&self.documents, &location) {
            return Err(error);
        }
        let invalid = |message| SchemaError::Invalid {
            document: location.document.clone(),
            pointer: location.pointer.clone(),
            message,
        };
        let registry = registry.as_ref().map_err(|message| invalid(message.clone()))?;
        jsonschema::options_for::<TreeJson>()
            .with_draft(Draft::Draft202012)
            .with_registry(registry)
            .offline()
            .build(&json!({ "$ref": location.uri() }))
            .map(|validator| {
                let reads = ValueReads::of(&self.documents, location.clone());
                Schema { validator: Arc::new(validator), reads: Arc::new(reads), known: Arc::default() }
            })
            .map_err(|error| invalid(error.to_string()))
    }

    /// Whether there is a schema at this location.
    pub fn contains(&self, reference: &str) -> bool {
        self.find(&SchemaLocation::parse(reference)).is_some()
    }

    /// Lint: pointers of the object schemas in a document that are closed neither by `additionalProperties` or
    /// `unevaluatedProperties`, nor by an enclosing schema for the same object. Empty if there is no such document.
    pub fn open_objects(&self, document: &str) -> Vec<String> {
        self.documents.get(document).map(open_objects::open_objects).unwrap_or_default()
    }

    /// Whether the schema at this pointer has the keyword.
    pub fn has_keyword(&self, document: &str, pointer: &str, keyword: &str) -> bool {
        let schema = self.documents.get(document).and_then(|document| document.pointer(pointer));
        schema.is_some_and(|schema| schema.get(keyword).is_some())
    }

    /// Not generic, so that callers do not compile it again.
    fn of(mut documents: Documents) -> SchemaSet {
        for document in documents.values_mut() {
            if let Some(members) = document.as_object_mut() {
                members.shift_remove("$id");
            }
        }
        SchemaSet { documents, checked: OnceCell::new(), evaluations: Evaluations::default() }
    }

    fn find(&self, location: &SchemaLocation) -> Option<&Value> {
        self.documents.get(&location.document)?.pointer(&location.pointer)
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

fn check(documents: &Documents) -> CheckedDocuments {
    let own_errors: HashMap<String, SchemaError> =
        documents.iter().filter_map(|(path, document)| Some((path.clone(), inspect(path, document).err()?))).collect();
    let checker = ReferenceChecker { documents, errors: &own_errors };
    let errors: HashMap<String, SchemaError> = documents
        .keys()
        .filter_map(|path| Some((path.clone(), checker.first_error(SchemaLocation::parse(path))?)))
        .collect();
    let sound = documents.iter().filter(|(path, _)| !errors.contains_key(*path));
    let registry = index(sound).map_err(|error| error.to_string());
    CheckedDocuments { errors, registry }
}

fn index<'a>(
    documents: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<Registry<'static>, jsonschema::ReferencingError> {
    let owned = documents.map(|(path, document)| (SchemaLocation::parse(path).uri(), document.clone()));
    Registry::new().draft(Draft::Draft202012).extend(owned)?.prepare()
}
