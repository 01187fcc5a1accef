//! Which file of a set is what, by its name and folder; and its text, parsed. A file that nobody reads is an error: one
//! that is passed over in silence costs its author an hour.

use super::field_reader::Cx;
use super::yaml;
use super::yaml::{Kind, Node};
use crate::diagnostics::{Code, Diagnostic, FileId, Span, did_you_mean};
use crate::mapping::config::transcript;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::load::{FileText, TestFile};
use std::sync::Arc;

/// The folders of a set, each with the key that names what a file in it holds.
const FOLDERS: &[(&str, &str)] =
    &[("backends", "backend"), ("dialects", "dialect"), ("profiles", "profile"), ("scripts", "script")];
const GATEWAY: &str = "gateway.yaml";
const SHARED: &str = "shared.yaml";

/// The parsed files, by their place in the set.
#[derive(Default)]
pub(crate) struct Files {
    pub gateway: Option<Node>,
    pub shared: Option<Node>,
    pub backends: Vec<Node>,
    pub dialects: Vec<Node>,
    pub profiles: Vec<Node>,
    pub scripts: Vec<Node>,
    pub transcripts: Vec<Arc<Transcript>>,
    pub schemas: Vec<(String, serde_json::Value)>,
    pub tests: Vec<TestFile>,
    pub broken: Broken,
}

/// What would be there if its file could be read. Nobody who names it made a mistake.
#[derive(Default)]
pub(crate) struct Broken {
    pub gateway: bool,
    /// (`dialect`, `chat`)
    names: Vec<(&'static str, String)>,
    pub transcripts: Vec<String>,
    pub schemas: Vec<String>,
}

impl Files {
    pub fn take(&mut self, file: &FileText, id: FileId, cx: Cx) {
        if let Some(name) = file.name.strip_prefix("schemas/") {
            match serde_json::from_str(&file.text) {
                Ok(value) => self.schemas.push((name.to_owned(), value)),
                Err(error) => {
                    self.broken.schemas.push(name.to_owned());
                    cx.add(not_json(&error, id, &file.text));
                }
            }
            return;
        }
        if let Some(name) = file.name.strip_prefix("transcripts/") {
            let name = transcript::name_of(name);
            match transcript::parse(name, id, &file.text, cx) {
                Some(transcript) => self.transcripts.push(Arc::new(transcript)),
                None => self.broken.transcripts.push(name.to_owned()),
            }
            return;
        }
        let Some((folder, key)) = place(file, id, cx) else { return };
        let Some(node) = parse(file, id, key, cx) else {
            self.broken.note(file, key, cx);
            return;
        };
        if file.name.ends_with(".test.yaml") {
            self.tests.push(TestFile { name: file.name.clone(), node });
            return;
        }
        match folder {
            "backends" => self.backends.push(node),
            "dialects" => self.dialects.push(node),
            "profiles" => self.profiles.push(node),
            "scripts" => self.scripts.push(node),
            _ if file.name == GATEWAY => self.gateway = Some(node),
            _ => self.shared = Some(node),
        }
    }

    /// All names that files of a kind claim, also those that could not be read.
    pub fn names(&self, key: &'static str) -> Vec<&str> {
        let nodes = match key {
            "backend" => &self.backends,
            "dialect" => &self.dialects,
            "profile" => &self.profiles,
            _ => &self.scripts,
        };
        let broken = self.broken.names.iter().filter(|(k, _)| *k == key).map(|(_, name)| name.as_str());
        nodes.iter().filter_map(|n| n.meant(key)?.value.as_text()).chain(broken).collect()
    }

    /// What a misspelt `parts:` holds cannot be found; that its key is unknown is said, and is enough.
    pub fn mute_consequences(&self, cx: Cx) {
        let holds =
            [("parts", Code::UnknownPart), ("tables", Code::UnknownTable), ("own_policies", Code::UnknownPolicy)];
        for node in self.shared.iter().chain(&self.dialects).chain(&self.backends) {
            for (key, code) in holds {
                if node.misspells(key) {
                    cx.findings.mute(&[code]);
                }
            }
        }
    }
}

impl Broken {
    fn note(&mut self, file: &FileText, key: &'static str, cx: Cx) {
        match file.name.as_str() {
            GATEWAY => self.gateway = true,
            // Any part and any table may be one of those that it holds.
            SHARED => cx.findings.mute(&[Code::UnknownPart, Code::UnknownTable]),
            _ => {
                let named = file.text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
                self.names.extend(named.map(|name| (key, name.trim().trim_matches(['"', '\'']).to_owned())));
            }
        }
    }
}

/// The folder of a file, and the key that names what it holds; or what is wrong with where it stands.
fn place(file: &FileText, id: FileId, cx: Cx) -> Option<(&'static str, &'static str)> {
    let nobody = |why: String, help: String| {
        cx.add(Diagnostic::new(Code::Unreadable, Span::new(id, 0, 0), format!("nobody reads {why}")).help(help));
        None
    };
    let (folder, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    if ending != "yaml" {
        return nobody(format!("`{}`: mapping files end in `.yaml`", file.name), format!("rename it to `{stem}.yaml`"));
    }
    let found = FOLDERS.iter().find(|(known, _)| *known == folder);
    if folder.is_empty() && matches!(name, GATEWAY | SHARED) {
        return Some(("", ""));
    }
    if let Some(found) = found {
        return Some(*found);
    }
    let rest = "a set has gateway.yaml, shared.yaml, and files in backends/, dialects/, profiles/ and scripts/";
    if folder.is_empty() {
        let help = match did_you_mean(name, [GATEWAY, SHARED]) {
            Some(near) => format!("did you mean `{near}`? {rest}"),
            None => rest.to_owned(),
        };
        return nobody(format!("`{name}`"), help);
    }
    let (top, below) = folder.split_once('/').unwrap_or((folder, ""));
    if !below.is_empty() && FOLDERS.iter().any(|(known, _)| *known == top) {
        return nobody(format!("folders inside of `{top}/`"), format!("move this file to `{top}/{name}`"));
    }
    let help = match did_you_mean(folder, FOLDERS.iter().map(|(known, _)| *known)) {
        Some(near) => format!("did you mean `{near}/`? {rest}"),
        None => rest.to_owned(),
    };
    nobody(format!("the folder `{folder}/`"), help)
}

/// The text as a map.
fn parse(file: &FileText, id: FileId, key: &str, cx: Cx) -> Option<Node> {
    let node = yaml::parse(id, &file.text, cx.findings)?;
    let begins = match file.name.as_str() {
        GATEWAY => "a gateway needs `backends:`, `models:` and `routes:`".to_owned(),
        name if name.ends_with(".test.yaml") => "write `tests:` and a list below it".to_owned(),
        _ => format!("its first line is `{key}: NAME`"),
    };
    let name = &file.name;
    match node.kind {
        Kind::Map(_) => return Some(node),
        // What nobody shares needs no words.
        Kind::Null if file.name == SHARED => return Some(Node { kind: Kind::Map(Vec::new()), ..node }),
        Kind::Null => {
            let span = Span::new(id, 0, 0);
            cx.add(Diagnostic::new(Code::MissingKey, span, format!("`{name}` is empty")).help(begins));
        }
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::List(_) => {
            let message = format!("`{name}` must be a map, not {}", node.noun());
            cx.add(Diagnostic::new(Code::WrongType, node.span, message).help(begins));
        }
    }
    None
}

fn not_json(error: &serde_json::Error, id: FileId, text: &str) -> Diagnostic {
    if text.trim().is_empty() {
        return Diagnostic::new(Code::Syntax, Span::new(id, 0, 0), "this schema is empty")
            .help("`{}` is the schema that allows everything");
    }
    let start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (start + error.column().saturating_sub(1)).min(text.len());
    let why = error.to_string();
    let why = why.split(" at line ").next().unwrap_or(&why);
    let message = match why.strip_prefix("EOF while parsing ") {
        Some(what) => format!("this schema is not JSON: it ends inside of {what}"),
        None => format!("this schema is not JSON: {why}"),
    };
    Diagnostic::new(Code::Syntax, Span::new(id, at, at), message)
}
