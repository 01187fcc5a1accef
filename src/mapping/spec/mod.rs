//! The published grammar: the JSON Schemas in `schemas/mapping/` and the mapping reference, generated from the
//! declarations that the loader reads mapping files with.

mod layers;
pub mod reference;

use crate::mapping::config::backend::BackendFile;
use crate::mapping::config::dialect::DialectFile;
use crate::mapping::config::gateway::Gateway;
use crate::mapping::config::profile::Profile;
use crate::mapping::config::script::Script;
use crate::mapping::config::shared::Shared;
use crate::mapping::config::test_file::TestFile;
use crate::mapping::source::layout::SetFile;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// A kind of mapping file.
pub struct FileKind {
    pub name: &'static str,
    /// The pattern of its file names.
    pub files: &'static str,
    root_schema: fn(SchemaGenerator) -> Schema,
}

pub const FILE_KINDS: &[FileKind] = &[
    kind::<Gateway>("gateway", "gateway.yaml"),
    kind::<Shared>("shared", "shared.yaml"),
    kind::<BackendFile>("backend", "backends/*.yaml"),
    kind::<DialectFile>("dialect", "dialects/*.yaml"),
    kind::<Profile>("profile", "profiles/*.yaml"),
    kind::<Script>("script", "scripts/*.yaml"),
    kind::<TestFile>("test", "*.test.yaml"),
];

const fn kind<T: JsonSchema>(name: &'static str, files: &'static str) -> FileKind {
    FileKind { name, files, root_schema: SchemaGenerator::into_root_schema_for::<T> }
}

impl FileKind {
    pub fn find(name: &str) -> Option<&'static FileKind> {
        FILE_KINDS.iter().find(|k| k.name == name)
    }

    /// The kind of a file, by its path in a set: `dialects/chat.yaml`.
    pub fn of(file: &str) -> Option<&'static FileKind> {
        FileKind::find(SetFile::of(file)?.name())
    }

    /// JSON Schema, draft 2020-12.
    pub fn schema(&self) -> Value {
        let kind = SetFile::ALL.into_iter().find(|kind| kind.name() == self.name);
        kind.map_or_else(|| self.grammar(), |kind| layers::allow_layers(kind, self.grammar()))
    }

    /// The schema of a file in a set of one layer.
    pub(super) fn grammar(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(SimplifyForEditors));
        (self.root_schema)(settings.into_generator()).to_value()
    }
}

/// Uses only what most editors understand.
#[derive(Clone)]
struct SimplifyForEditors;

impl Transform for SimplifyForEditors {
    fn transform(&mut self, schema: &mut Schema) {
        // Doc comments contain line breaks of the source; editors wrap text themselves.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    }
}
