//! The parsed files of a set, by kind. An unexpected file is an error: ignoring it silently would hide a mistake from
//! its author.

use super::field_reader::LoadContext;
use super::layout;
use super::layout::{FOLDERS, Folder, SetFile};
use super::parse_files::ParsedFiles;
use super::yaml;
use super::yaml::{Entry, Node, YamlKind};
use crate::diagnostics::{Code, Diagnostic, FileId, Span, did_you_mean};
use crate::mapping::config::derived_backend;
use crate::mapping::config::layers;
use crate::mapping::config::layers::{Override, OverrideAction};
use crate::mapping::config::transcript;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::load::{SourceFile, TestFile};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// The parsed files of a set, by kind.
#[derive(Default)]
pub(crate) struct MappingFiles {
    mappings: Vec<(SetFile, Arc<Node>)>,
    pub transcripts: Vec<Arc<Transcript>>,
    pub schemas: Vec<(String, Value)>,
    pub tests: Vec<TestFile>,
    /// The tests need not run: they are not parsed.
    pub without_tests: bool,
    pub unreadable: UnreadableFiles,
    /// What a layer replaces or removes of the layers below it.
    pub overrides: Vec<Override>,
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

    /// `yaml`: the YAML files, parsed.
    pub fn add(&mut self, file: &SourceFile, id: FileId, yaml: &mut ParsedFiles, cx: LoadContext) {
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
            SetFile::Test if self.without_tests => {}
            SetFile::Test => {
                let node = mapping(file, id, kind, yaml, cx);
                self.tests.extend(node.map(|node| TestFile { name: file.name.clone(), node }));
            }
            SetFile::Gateway
            | SetFile::Shared
            | SetFile::Backend
            | SetFile::Dialect
            | SetFile::Profile
            | SetFile::Script => match mapping(file, id, kind, yaml, cx) {
                Some(node) => self.mappings.push((kind, Arc::new(with_name(node, kind, name, cx)))),
                None => self.unreadable.record(kind, file, cx),
            },
        }
    }

    /// Merges the files of all layers: gateway.yaml and shared.yaml by key, all others by the name that they define.
    pub fn merge_layers(&mut self, cx: LoadContext) {
        for kind in [SetFile::Dialect, SetFile::Backend, SetFile::Profile, SetFile::Script] {
            self.replace_by_name(kind, cx);
        }
        self.replace_transcripts(cx);
        for kind in [SetFile::Gateway, SetFile::Shared] {
            let files: Vec<Arc<Node>> = self.of(kind).cloned().collect();
            self.mappings.retain(|(other, _)| *other != kind);
            // Without the layer that cannot be read, what it adds would be missing everywhere.
            if kind == SetFile::Gateway && self.unreadable.gateway {
                continue;
            }
            if let Some((merged, overrides)) = layers::merge(kind, &files, cx) {
                self.mappings.push((kind, merged));
                self.overrides.extend(overrides);
            }
        }
    }

    /// Drops each file that defines a name that a file of a later layer defines too, with its tests.
    fn replace_by_name(&mut self, kind: SetFile, cx: LoadContext) {
        let names: Vec<(String, Span)> = self
            .of(kind)
            .filter_map(|n| n.get(kind.name()).and_then(|n| Some((n.as_text()?.to_owned(), n.span))))
            .collect();
        for (name, of) in &names {
            let layer = cx.sources.layer(*of);
            let later = names.iter().filter(|(other, by)| other == name && cx.sources.layer(*by) > layer);
            let Some((_, by)) = later.max_by_key(|(_, by)| cx.sources.layer(*by)) else { continue };
            self.mappings.retain(|(_, node)| node.span.file != of.file);
            let tests = cx.sources.get(of.file).and_then(|source| layout::tests_of(&source.name));
            self.tests.retain(|test| Some(&test.name) != tests.as_ref() || cx.sources.layer(test.node.span) > layer);
            let what = format!("{} `{name}`", kind.name());
            self.overrides.push(Override { what, action: OverrideAction::Replaces, by: *by, of: *of });
        }
    }

    /// `transcripts/a.jsonl` and `transcripts/a/events.jsonl` have the same name.
    fn replace_transcripts(&mut self, cx: LoadContext) {
        let all = std::mem::take(&mut self.transcripts);
        let mut by_name: HashMap<&str, &Arc<Transcript>> = HashMap::new();
        for transcript in &all {
            let Some(other) = by_name.get(transcript.name.as_str()) else {
                by_name.insert(&transcript.name, transcript);
                continue;
            };
            let (by, of) = (transcript.backend_span, other.backend_span);
            let what = format!("transcript `{}`", transcript.name);
            match cx.sources.layer(by).cmp(&cx.sources.layer(of)) {
                Ordering::Equal => {
                    cx.duplicate(by, format!("two transcripts are called `{}`", transcript.name), of);
                }
                Ordering::Greater => {
                    self.overrides.push(Override { what, action: OverrideAction::Replaces, by, of });
                    by_name.insert(&transcript.name, transcript);
                }
                Ordering::Less => {
                    self.overrides.push(Override { what, action: OverrideAction::Replaces, by: of, of: by });
                }
            }
        }
        let kept = |transcript: &&Arc<Transcript>| {
            by_name.get(transcript.name.as_str()).is_some_and(|other| Arc::ptr_eq(other, transcript))
        };
        self.transcripts = all.iter().filter(kept).cloned().collect();
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

/// A file without the name that it defines gets that of the file, so that mistakes in the rest of it are found too.
fn with_name(mut node: Node, kind: SetFile, file: &str, cx: LoadContext) -> Node {
    let key = kind.name();
    let is_named = matches!(kind, SetFile::Backend | SetFile::Dialect | SetFile::Profile | SetFile::Script);
    let YamlKind::Map(entries) = &mut node.kind else { return node };
    if !is_named || entries.iter().any(|entry| entry.key == key) {
        return node;
    }
    match entries.iter_mut().find(|entry| did_you_mean(&entry.key, [key]).is_some()) {
        Some(typo) => {
            let message = format!("unknown key `{}` in a {key}", typo.key);
            let diagnostic = Diagnostic::new(Code::UnknownKey, typo.key_span, message);
            cx.add(diagnostic.label(format!("did you mean `{key}`?")));
            key.clone_into(&mut typo.key);
        }
        None => {
            cx.error(Code::MissingKey, node.span, format!("`{key}:` is missing in a {key}"));
            let name = file.strip_suffix(".yaml").unwrap_or(file).to_owned();
            let value = Node { span: node.span, kind: YamlKind::Text(name) };
            entries.insert(0, Entry { key: key.to_owned(), key_span: node.span, value });
        }
    }
    node
}

/// The parsed file, which must be a map.
fn mapping(file: &SourceFile, id: FileId, kind: SetFile, yaml: &mut ParsedFiles, cx: LoadContext) -> Option<Node> {
    let node = yaml.remove(&id)?.map_err(|diagnostic| cx.add(diagnostic)).ok()?;
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
