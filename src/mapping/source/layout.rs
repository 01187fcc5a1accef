//! Recognises the files of a set by name and folder, and parses them. An unexpected file is an error: ignoring it
//! silently would hide a mistake from its author.

use super::field_reader::LoadContext;
use super::yaml;
use super::yaml::{Node, YamlKind};
use crate::diagnostics::{Code, Diagnostic, FileId, Span, did_you_mean};
use crate::mapping::config::transcript;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::load::{SourceFile, TestFile};
use std::collections::HashMap;
use std::sync::Arc;

/// The folders of a set, each with the key that names the object that a file in it defines.
const FOLDERS: &[(&str, &str)] =
    &[("backends", "backend"), ("dialects", "dialect"), ("profiles", "profile"), ("scripts", "script")];
const GATEWAY: &str = "gateway.yaml";
const SHARED: &str = "shared.yaml";

/// The parsed files of a set, by kind.
#[derive(Default)]
pub(crate) struct MappingFiles {
    pub gateway: Option<Node>,
    pub shared: Option<Node>,
    pub backends: Vec<Node>,
    /// Shared with their patched copies.
    pub dialects: Vec<Arc<Node>>,
    pub profiles: Vec<Node>,
    pub scripts: Vec<Node>,
    pub transcripts: Vec<Arc<Transcript>>,
    pub schemas: Vec<(String, serde_json::Value)>,
    pub tests: Vec<TestFile>,
    pub unreadable: UnreadableFiles,
    /// The layer of each file, see `SourceFile`.
    layers: HashMap<FileId, usize>,
}

/// Names that files with syntax errors would define. A reference to one of them is not a mistake.
#[derive(Default)]
pub(crate) struct UnreadableFiles {
    pub gateway: bool,
    /// (`dialect`, `chat`)
    names: Vec<(&'static str, String)>,
    pub transcripts: Vec<String>,
    pub schemas: Vec<String>,
}

impl MappingFiles {
    /// Whether the file belongs to a lower layer than gateway.yaml.
    pub fn is_below_gateway(&self, file: FileId) -> bool {
        self.gateway.as_ref().is_some_and(|gateway| self.layers.get(&file) < self.layers.get(&gateway.span.file))
    }

    pub fn add(&mut self, file: &SourceFile, id: FileId, cx: LoadContext) {
        self.layers.insert(id, file.layer);
        if let Some(name) = file.name.strip_prefix("schemas/") {
            match serde_json::from_str(&file.text) {
                Ok(value) => self.schemas.push((name.to_owned(), value)),
                Err(error) => {
                    self.unreadable.schemas.push(name.to_owned());
                    cx.add(json_error(&error, id, &file.text));
                }
            }
            return;
        }
        if let Some(name) = file.name.strip_prefix("transcripts/") {
            let name = transcript::name_of(name);
            match transcript::parse(name, id, &file.text, cx) {
                Some(transcript) => self.transcripts.push(Arc::new(transcript)),
                None => self.unreadable.transcripts.push(name.to_owned()),
            }
            return;
        }
        let Some((folder, key)) = classify(file, id, cx) else { return };
        let Some(node) = parse(file, id, key, cx) else {
            self.unreadable.record(file, key, cx);
            return;
        };
        if file.name.ends_with(".test.yaml") {
            self.tests.push(TestFile { name: file.name.clone(), node });
            return;
        }
        match folder {
            "backends" => self.backends.push(node),
            "dialects" => self.dialects.push(Arc::new(node)),
            "profiles" => self.profiles.push(node),
            "scripts" => self.scripts.push(node),
            _ if file.name == GATEWAY => self.gateway = Some(node),
            _ => self.shared = Some(node),
        }
    }

    /// All names that files of a kind define, also those of files that could not be parsed.
    pub fn names(&self, key: &'static str) -> Vec<&str> {
        let nodes: Vec<&Node> = match key {
            "backend" => self.backends.iter().collect(),
            "dialect" => self.dialects.iter().map(|n| &**n).collect(),
            "profile" => self.profiles.iter().collect(),
            _ => self.scripts.iter().collect(),
        };
        let unreadable = self.unreadable.names.iter().filter(|(k, _)| *k == key).map(|(_, name)| name.as_str());
        nodes.into_iter().filter_map(|n| n.entry_or_typo(key)?.value.as_text()).chain(unreadable).collect()
    }

    /// Suppresses errors about names that a misspelled section would define, such as `fragments:`. The unknown key is
    /// reported, and that is enough.
    pub fn suppress_consequences(&self, cx: LoadContext) {
        let sections = [
            ("fragments", Code::UnknownFragment),
            ("tables", Code::UnknownTable),
            ("custom_policies", Code::UnknownPolicy),
        ];
        for node in self.shared.iter().chain(self.dialects.iter().map(|n| &**n)).chain(&self.backends) {
            for (key, code) in sections {
                if node.misspells(key) {
                    cx.findings.suppress(&[code]);
                }
            }
        }
    }
}

impl UnreadableFiles {
    fn record(&mut self, file: &SourceFile, key: &'static str, cx: LoadContext) {
        match file.name.as_str() {
            GATEWAY => self.gateway = true,
            // Any unknown fragment or table may be defined there.
            SHARED => cx.findings.suppress(&[Code::UnknownFragment, Code::UnknownTable]),
            _ => {
                let named = file.text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
                self.names.extend(named.map(|name| (key, name.trim().trim_matches(['"', '\'']).to_owned())));
            }
        }
    }
}

/// The folder of a file and the key that names the object it defines. Reports a file in an unexpected place.
fn classify(file: &SourceFile, id: FileId, cx: LoadContext) -> Option<(&'static str, &'static str)> {
    let unexpected = |what: String, help: String| {
        cx.add(Diagnostic::new(Code::Unreadable, Span::new(id, 0, 0), format!("unexpected {what}")).help(help));
        None
    };
    let (folder, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    if extension != "yaml" {
        return unexpected(
            format!("file `{}`: mapping files end in `.yaml`", file.name),
            format!("rename it to `{stem}.yaml`"),
        );
    }
    let found = FOLDERS.iter().find(|(known, _)| *known == folder);
    if folder.is_empty() && matches!(name, GATEWAY | SHARED) {
        return Some(("", ""));
    }
    if let Some(found) = found {
        return Some(*found);
    }
    let layout = "a set has gateway.yaml, shared.yaml, and files in backends/, dialects/, profiles/ and scripts/";
    if folder.is_empty() {
        let help = match did_you_mean(name, [GATEWAY, SHARED]) {
            Some(near) => format!("did you mean `{near}`? {layout}"),
            None => layout.to_owned(),
        };
        return unexpected(format!("file `{name}`"), help);
    }
    let (top, below) = folder.split_once('/').unwrap_or((folder, ""));
    if !below.is_empty() && FOLDERS.iter().any(|(known, _)| *known == top) {
        return unexpected(format!("folder inside `{top}/`"), format!("move this file to `{top}/{name}`"));
    }
    let help = match did_you_mean(folder, FOLDERS.iter().map(|(known, _)| *known)) {
        Some(near) => format!("did you mean `{near}/`? {layout}"),
        None => layout.to_owned(),
    };
    unexpected(format!("folder `{folder}/`"), help)
}

/// Parses the text, which must be a map.
fn parse(file: &SourceFile, id: FileId, key: &str, cx: LoadContext) -> Option<Node> {
    let node = yaml::parse(id, &file.text, cx.findings)?;
    let help = match file.name.as_str() {
        GATEWAY => "a gateway needs `backends:`, `models:` and `routes:`".to_owned(),
        name if name.ends_with(".test.yaml") => "write `tests:` with a list of tests".to_owned(),
        _ => format!("begin with `{key}: NAME`"),
    };
    let name = &file.name;
    match node.kind {
        YamlKind::Map(_) => return Some(node),
        // An empty shared.yaml is fine: nothing is shared.
        YamlKind::Null if file.name == SHARED => return Some(Node { kind: YamlKind::Map(Vec::new()), ..node }),
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
