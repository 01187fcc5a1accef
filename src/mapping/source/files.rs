//! The parsed files of a set, by kind. An unexpected file is an error: ignoring it silently would hide a mistake from
//! its author.

use super::field_reader::LoadContext;
use super::layout;
use super::layout::{FOLDERS, Folder, SetFile};
use super::yaml;
use super::yaml::{Node, YamlKind};
use crate::diagnostics::{Code, Diagnostic, FileId, Span, did_you_mean};
use crate::mapping::config::derived_backend;
use crate::mapping::config::transcript;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::load::{SourceFile, TestFile};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The parsed files of a set, by kind.
#[derive(Default)]
pub(crate) struct MappingFiles {
    mappings: Vec<(SetFile, Arc<Node>)>,
    pub transcripts: Vec<Arc<Transcript>>,
    pub schemas: Vec<(String, Value)>,
    pub tests: Vec<TestFile>,
    pub unreadable: UnreadableFiles,
    /// The layer of each file, see `SourceFile`.
    layers: HashMap<FileId, usize>,
}

/// Names that files with syntax errors would define. A reference to one of them is not a mistake.
#[derive(Default)]
pub(crate) struct UnreadableFiles {
    pub gateway: bool,
    names: Vec<(SetFile, String)>,
    pub transcripts: Vec<String>,
    pub schemas: Vec<String>,
}

impl MappingFiles {
    /// The mapping files of a kind.
    pub fn of(&self, kind: SetFile) -> impl Iterator<Item = &Arc<Node>> {
        self.mappings.iter().filter(move |(k, _)| *k == kind).map(|(_, node)| node)
    }

    pub fn gateway(&self) -> Option<&Node> {
        self.of(SetFile::Gateway).next().map(|node| &**node)
    }

    pub fn shared(&self) -> Option<&Arc<Node>> {
        self.of(SetFile::Shared).next()
    }

    /// Whether the file belongs to a lower layer than gateway.yaml.
    pub fn is_below_gateway(&self, file: FileId) -> bool {
        self.gateway().is_some_and(|gateway| self.layers.get(&file) < self.layers.get(&gateway.span.file))
    }

    pub fn add(&mut self, file: &SourceFile, id: FileId, cx: LoadContext) {
        self.layers.insert(id, file.layer);
        let Some(kind) = SetFile::of(&file.name) else {
            cx.add(unexpected_file(&file.name, id));
            return;
        };
        // Below the folder.
        let name = file.name.split_once('/').map_or("", |(_, name)| name);
        match kind {
            SetFile::Schema => match parse_schema(&file.text, id) {
                Ok(value) => self.schemas.push((name.to_owned(), value)),
                Err(diagnostic) => {
                    self.unreadable.schemas.push(name.to_owned());
                    cx.add(diagnostic);
                }
            },
            SetFile::Transcript => {
                let name = transcript::name_of(name);
                match transcript::parse(name, id, &file.text, cx) {
                    Some(transcript) => self.transcripts.push(Arc::new(transcript)),
                    None => self.unreadable.transcripts.push(name.to_owned()),
                }
            }
            SetFile::Test => {
                let node = parse(file, id, kind, cx);
                self.tests.extend(node.map(|node| TestFile { name: file.name.clone(), node }));
            }
            SetFile::Gateway
            | SetFile::Shared
            | SetFile::Backend
            | SetFile::Dialect
            | SetFile::Profile
            | SetFile::Script => match parse(file, id, kind, cx) {
                Some(node) => self.mappings.push((kind, Arc::new(node))),
                None => self.unreadable.record(kind, file, cx),
            },
        }
    }

    /// Replaces each derived backend by the backend that results. One that cannot be resolved is left out; its name
    /// stays known.
    pub fn resolve_derived_backends(&mut self, cx: LoadContext) {
        let backends: Vec<Arc<Node>> = self.of(SetFile::Backend).cloned().collect();
        let unreadable: Vec<&str> = self.unreadable.names_of(SetFile::Backend).collect();
        let resolved = derived_backend::resolve(&backends, &unreadable, cx);
        self.mappings.retain(|(kind, _)| *kind != SetFile::Backend);
        for (file, resolved) in backends.iter().zip(resolved) {
            match resolved {
                Some(node) => self.mappings.push((SetFile::Backend, node)),
                None => self
                    .unreadable
                    .names
                    .extend(derived_backend::name_of(file).map(|name| (SetFile::Backend, name.to_owned()))),
            }
        }
    }

    /// All names that files of a kind define, also those of files that could not be parsed.
    pub fn names(&self, kind: SetFile) -> Vec<&str> {
        let unreadable = self.unreadable.names_of(kind);
        self.of(kind).filter_map(|n| n.entry_or_typo(kind.name())?.value.as_text()).chain(unreadable).collect()
    }

    /// Suppresses errors about names that a misspelled section would define, such as `fragments:`. The unknown key is
    /// reported, and that is enough.
    pub fn suppress_consequences(&self, cx: LoadContext) {
        let sections = [
            ("fragments", Code::UnknownFragment),
            ("tables", Code::UnknownTable),
            ("custom_policies", Code::UnknownPolicy),
        ];
        for node in [SetFile::Shared, SetFile::Dialect, SetFile::Backend].into_iter().flat_map(|kind| self.of(kind)) {
            for (key, code) in sections {
                if node.misspells(key) {
                    cx.findings.suppress(&[code]);
                }
            }
        }
    }
}

impl UnreadableFiles {
    fn names_of(&self, kind: SetFile) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |(k, _)| *k == kind).map(|(_, name)| name.as_str())
    }

    fn record(&mut self, kind: SetFile, file: &SourceFile, cx: LoadContext) {
        match kind {
            SetFile::Gateway => self.gateway = true,
            // Any unknown fragment or table may be defined there.
            SetFile::Shared => cx.findings.suppress(&[Code::UnknownFragment, Code::UnknownTable]),
            kind => {
                let named = file.text.lines().find_map(|l| l.strip_prefix(kind.name())?.strip_prefix(':'));
                self.names.extend(named.map(|name| (kind, name.trim().trim_matches(['"', '\'']).to_owned())));
            }
        }
    }
}

/// A file with the wrong name or in the wrong place.
fn unexpected_file(path: &str, id: FileId) -> Diagnostic {
    let unexpected = |what: String, help: String| {
        Diagnostic::new(Code::Unreadable, Span::new(id, 0, 0), format!("unexpected {what}")).help(help)
    };
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    if extension != "yaml" {
        let help = format!("rename it to `{stem}.yaml`");
        return unexpected(format!("file `{path}`: mapping files end in `.yaml`"), help);
    }
    let layout = "a set has gateway.yaml, shared.yaml, and files in backends/, dialects/, profiles/ and scripts/";
    let help = |near: Option<String>| near.map_or(layout.to_owned(), |near| format!("did you mean `{near}`? {layout}"));
    if folder.is_empty() {
        let near = did_you_mean(name, [layout::GATEWAY, layout::SHARED]);
        return unexpected(format!("file `{name}`"), help(near.map(str::to_owned)));
    }
    let top = folder.split('/').next().unwrap_or_default();
    if Folder::find(top).is_some() {
        return unexpected(format!("folder inside `{top}/`"), format!("move this file to `{top}/{name}`"));
    }
    let near = did_you_mean(folder, FOLDERS.iter().filter(|f| f.has_mappings()).map(|f| f.name));
    unexpected(format!("folder `{folder}/`"), help(near.map(|near| format!("{near}/"))))
}

/// Parses the text, which must be a map.
fn parse(file: &SourceFile, id: FileId, kind: SetFile, cx: LoadContext) -> Option<Node> {
    let node = yaml::parse(id, &file.text, cx.findings)?;
    let help = match kind {
        SetFile::Gateway => "a gateway needs `backends:`, `models:` and `routes:`".to_owned(),
        SetFile::Test => "write `tests:` with a list of tests".to_owned(),
        kind => format!("begin with `{}: NAME`", kind.name()),
    };
    let name = &file.name;
    match node.kind {
        YamlKind::Map(_) => return Some(node),
        // An empty shared.yaml is fine: nothing is shared.
        YamlKind::Null if kind == SetFile::Shared => return Some(Node { kind: YamlKind::Map(Vec::new()), ..node }),
        YamlKind::Null => {
            let span = Span::new(id, 0, 0);
            cx.add(Diagnostic::new(Code::MissingKey, span, format!("`{name}` is empty")).help(help));
        }
        YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) | YamlKind::List(_) => {
            let message = format!("`{name}` must be a map, not {}", node.type_name());
            cx.add(Diagnostic::new(Code::WrongType, node.span, message).help(help));
        }
    }
    None
}

/// Parses a schema. It has the limits of a YAML file, because its errors are located with the YAML parser.
fn parse_schema(text: &str, id: FileId) -> Result<Value, Diagnostic> {
    let schema: Value = serde_json::from_str(text).map_err(|error| json_error(&error, id, text))?;
    let (values, depth) = size(&schema);
    let message = if values > yaml::MAX_NODES {
        format!("this schema has {values} values; the limit is {}", yaml::MAX_NODES)
    } else if depth > yaml::MAX_DEPTH {
        format!("this schema is nested {depth} levels deep; the limit is {}", yaml::MAX_DEPTH)
    } else {
        return Ok(schema);
    };
    let help = "move parts of it into other files of the folder, and refer to them with `$ref`";
    Err(Diagnostic::new(Code::LimitExceeded, Span::new(id, 0, 0), message).help(help))
}

/// The number of values, and how deep lists and objects are nested.
fn size(value: &Value) -> (usize, usize) {
    let inner = |sizes: &mut dyn Iterator<Item = (usize, usize)>| {
        sizes.fold((1, 1), |(values, depth), (n, d)| (values + n, depth.max(d + 1)))
    };
    match value {
        Value::Array(items) => inner(&mut items.iter().map(size)),
        Value::Object(members) => inner(&mut members.values().map(size)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (1, 0),
    }
}

fn json_error(error: &serde_json::Error, id: FileId, text: &str) -> Diagnostic {
    if text.trim().is_empty() {
        return Diagnostic::new(Code::Syntax, Span::new(id, 0, 0), "this schema is empty")
            .help("`{}` is a schema that allows everything");
    }
    let start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (start + error.column().saturating_sub(1)).min(text.len());
    let why = error.to_string();
    let why = why.split(" at line ").next().unwrap_or(&why);
    let message = match why.strip_prefix("EOF while parsing ") {
        Some(what) => format!("this schema is not JSON: it ends inside {what}"),
        None => format!("this schema is not JSON: {why}"),
    };
    Diagnostic::new(Code::Syntax, Span::new(id, at, at), message)
}
