//! A set of files → one plan. All that is wrong is said at once; with one error there is no plan.

use super::backend::BackendPlan;
use super::dialect::{self, DialectCx, DialectPlan, Profile, SchemaCache};
use super::fields::{Cx, Fields};
use super::gateway::{self, GatewayPlan};
use super::script::{self, ScriptPlan};
use super::table::Tables;
use super::transcript::{self, Transcript};
use super::yaml::{self, Entry, Node};
use crate::diag::{Code, Diagnostic, FileId, Findings, Severity, Sources, Span};
use reframe_frame::SchemaSet;
use std::sync::Arc;

/// One file of a set, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct FileText {
    /// Inside the set: `dialects/chat.yaml`, `schemas/chat/chunk.json`, `transcripts/greeting.jsonl`.
    pub name: String,
    /// As a person knows it.
    pub shown: String,
    pub text: Arc<str>,
}

/// Everything that a running turn may need, checked and compiled. Immutable.
#[derive(Debug)]
pub struct Plan {
    pub gateway: GatewayPlan,
    pub backends: Vec<Arc<BackendPlan>>,
    dialects: Vec<Arc<DialectPlan>>,
    pub transcripts: Vec<Arc<Transcript>>,
    /// The `*.test.yaml` files, parsed.
    pub tests: Vec<TestFile>,
    pub sources: Arc<Sources>,
}

#[derive(Debug)]
pub struct TestFile {
    pub name: String,
    pub node: Node,
}

/// The outcome of a load: a plan, or the reasons why there is none. Warnings may come with a plan.
pub struct Loaded {
    pub plan: Option<Plan>,
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Arc<Sources>,
}

impl Plan {
    pub fn dialect(&self, name: &str, profile: Option<&str>) -> Option<&Arc<DialectPlan>> {
        self.dialects.iter().find(|d| d.name == name && d.profile.as_deref() == profile)
    }

    pub fn dialects(&self) -> impl Iterator<Item = &Arc<DialectPlan>> {
        self.dialects.iter()
    }

    pub fn backend(&self, name: &str) -> Option<&Arc<BackendPlan>> {
        self.backends.iter().find(|b| b.name == name)
    }
}

/// The parsed files, by their place in the set.
#[derive(Default)]
struct Files {
    gateway: Option<Node>,
    shared: Option<Node>,
    backends: Vec<Node>,
    dialects: Vec<Node>,
    profiles: Vec<Node>,
    scripts: Vec<Node>,
    transcripts: Vec<Arc<Transcript>>,
    schemas: Vec<(String, serde_json::Value)>,
    tests: Vec<TestFile>,
}

pub fn load(files: &[FileText]) -> Loaded {
    let mut sources = Sources::default();
    let ids: Vec<FileId> =
        files.iter().map(|f| sources.add(f.name.as_str(), f.shown.as_str(), f.text.clone())).collect();
    let sources = Arc::new(sources);
    let findings = Findings::default();
    let cx = Cx { sources: &sources, findings: &findings };
    let mut parsed = Files::default();
    for (file, id) in files.iter().zip(ids) {
        parsed.take(file, id, cx);
    }
    let plan = parsed.compile(&sources, cx);
    let failed = findings.errors() > 0;
    let diagnostics = findings.into_sorted();
    debug_assert!(failed || plan.is_some() || diagnostics.iter().any(|d| d.severity() == Severity::Error));
    Loaded { plan: plan.filter(|_| !failed), diagnostics, sources }
}

impl Files {
    fn take(&mut self, file: &FileText, id: FileId, cx: Cx) {
        let whole = Span::new(id, 0, 0);
        if let Some(name) = file.name.strip_prefix("schemas/") {
            match serde_json::from_str(&file.text) {
                Ok(value) => self.schemas.push((name.to_owned(), value)),
                Err(error) => {
                    let at = offset(&file.text, error.line(), error.column());
                    let span = Span::new(id, at, at);
                    let why = error.to_string();
                    let why = why.split(" at line ").next().unwrap_or(&why).to_owned();
                    cx.error(Code::Syntax, span, format!("this schema is not JSON: {why}"));
                }
            }
            return;
        }
        if let Some(name) = file.name.strip_prefix("transcripts/") {
            let name = name.trim_end_matches(".jsonl").trim_end_matches("/events");
            self.transcripts.extend(transcript::parse(name, id, &file.text, cx).map(Arc::new));
            return;
        }
        let folder = file.name.split_once('/').map_or("", |(folder, _)| folder);
        let known = matches!(folder, "backends" | "dialects" | "profiles" | "scripts")
            || matches!(file.name.as_str(), "gateway.yaml" | "shared.yaml");
        if !known || !file.name.ends_with(".yaml") {
            cx.add(Diagnostic::new(Code::Unreadable, whole, format!("nobody reads `{}`", file.name)).help(
                "a set has gateway.yaml, shared.yaml, and .yaml files in backends/, dialects/, profiles/ and scripts/",
            ));
            return;
        }
        let Some(node) = yaml::parse(id, &file.text, cx.findings) else { return };
        if file.name.ends_with(".test.yaml") {
            self.tests.push(TestFile { name: file.name.clone(), node });
            return;
        }
        match folder {
            "backends" => self.backends.push(node),
            "dialects" => self.dialects.push(node),
            "profiles" => self.profiles.push(node),
            "scripts" => self.scripts.push(node),
            _ if file.name == "gateway.yaml" => self.gateway = Some(node),
            _ => self.shared = Some(node),
        }
    }

    fn compile(self, sources: &Arc<Sources>, cx: Cx) -> Option<Plan> {
        let schemas = SchemaSet::new(self.schemas);
        let cache = SchemaCache::new(&schemas);
        let no_entries: &[Entry] = &[];
        let (shared_tables, shared_parts) = match self.shared.as_ref().and_then(|n| Fields::of(n, "shared.yaml", cx)) {
            Some(fields) => {
                let found = (Tables::parse(fields.map("tables"), cx), fields.map("parts"));
                fields.done();
                found
            }
            None => (Tables::default(), no_entries),
        };
        unique(&self.dialects, "dialect", cx);
        unique(&self.backends, "backend", cx);
        unique(&self.profiles, "profile", cx);
        unique(&self.scripts, "script", cx);
        let backends: Vec<_> =
            self.backends.iter().filter_map(|n| BackendPlan::parse(n, &shared_tables, cx)).map(Arc::new).collect();
        for transcript in &self.transcripts {
            if !names(&self.backends, "backend").contains(&transcript.backend.as_str()) {
                let span = find_line(sources, &transcript.name);
                let message = format!("no backend file says `backend: {}`", transcript.backend);
                cx.unknown(
                    Code::UnknownReference,
                    span,
                    message,
                    &transcript.backend,
                    names(&self.backends, "backend"),
                );
            }
        }
        let scripts: Vec<Arc<ScriptPlan>> =
            self.scripts.iter().filter_map(|n| script::parse(n, &self.transcripts, cx)).map(Arc::new).collect();
        let profiles: Vec<Profile> = self.profiles.iter().filter_map(|n| Profile::parse(n, cx)).collect();
        let dialect_names = names(&self.dialects, "dialect");
        let dcx =
            DialectCx { cx, shared_tables: &shared_tables, shared_parts, schemas: &cache, dialects: &dialect_names };
        let mut dialects = Vec::new();
        for node in &self.dialects {
            if node.get("dialect").is_none() {
                cx.error(Code::MissingKey, node.span, "`dialect:` is missing in a dialect");
                continue;
            }
            for profile in std::iter::once(None).chain(profiles.iter().copied().map(Some)) {
                dialects.extend(dialect::compile(node, profile, &dcx).map(Arc::new));
            }
        }
        let Some(gateway) = &self.gateway else {
            cx.error(Code::Unreadable, Span::default(), "this set has no gateway.yaml");
            return None;
        };
        let known = gateway::Known {
            backends: &backends,
            scripts: &scripts,
            dialects: &dialect_names,
            profiles: &names(&self.profiles, "profile"),
            tables: &shared_tables,
            parts: shared_parts,
        };
        let gateway = gateway::parse(gateway, &known, cx)?;
        Some(Plan {
            gateway,
            backends,
            dialects,
            transcripts: self.transcripts,
            tests: self.tests,
            sources: sources.clone(),
        })
    }
}

fn names<'n>(nodes: &'n [Node], key: &str) -> Vec<&'n str> {
    nodes.iter().filter_map(|n| n.get(key)?.as_text()).collect()
}

fn unique(nodes: &[Node], key: &'static str, cx: Cx) {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    for name in nodes.iter().filter_map(|n| n.get(key)) {
        let Some(text) = name.as_text() else { continue };
        match seen.iter().find(|(n, _)| *n == text) {
            Some((_, first)) => cx.add(
                Diagnostic::new(Code::DuplicateName, name.span, format!("two files say `{key}: {text}`"))
                    .help(format!("the other one is {}", cx.sources.show(*first))),
            ),
            None => seen.push((text, name.span)),
        }
    }
}

fn find_line(sources: &Sources, transcript: &str) -> Span {
    let name = format!("transcripts/{transcript}");
    let found = sources.iter().find(|(_, s)| s.name.trim_end_matches(".jsonl").trim_end_matches("/events") == name);
    found.map_or(Span::default(), |(id, s)| Span::new(id, 0, s.text.find('\n').unwrap_or(s.text.len())))
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}
