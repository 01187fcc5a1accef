//! A set of files → one plan. All that is wrong is said at once; with one error there is no plan.

use super::config::backend::BackendPlan;
use super::config::dialect;
use super::config::dialect::{DialectCx, DialectPlan};
use super::config::gateway;
use super::config::gateway::GatewayPlan;
use super::config::overrides::Overrides;
use super::config::profile::Profile;
use super::config::schemas::{KeptSchemas, SchemaCache};
use super::config::script;
use super::config::script::ScriptPlan;
use super::config::transcript::Transcript;
use super::language::table::Tables;
use super::lint;
use super::policy::owners::Dialects;
use super::policy::precedence;
use super::policy::resolve::Resolved;
use super::provenance::values::Written;
use super::source::field_reader::{Cx, Fields};
use super::source::layout::Files;
use super::source::yaml::{Entry, Node};
use crate::diagnostics::{Code, Diagnostic, FileId, Findings, Severity, Sources, Span, gather};
use reframe_json::SchemaSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
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
    /// All of them, also those that no backend of the gateway plays.
    pub scripts: Vec<Arc<ScriptPlan>>,
    /// The `*.test.yaml` files, parsed.
    pub tests: Vec<TestFile>,
    pub sources: Arc<Sources>,
    /// For the place of what broke its contract.
    pub written: Written,
    schemas: KeptSchemas,
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
    /// As the files say, whatever the environment: what the tests beside them are about. What the clients of a route get is
    /// in its [`variants`](super::route::RoutePlan::variants).
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

pub fn load(files: &[FileText]) -> Loaded {
    load_after(files, None, &Overrides::default())
}

/// The same, with an earlier plan whose schemas are used again if their files have not changed.
pub fn load_after(files: &[FileText], earlier: Option<&Plan>, overrides: &Overrides) -> Loaded {
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
    parsed.mute_consequences(cx);
    let plan = compile(parsed, &sources, earlier.map(|p| &p.schemas), overrides, cx);
    let mut diagnostics = gather(findings.into_sorted(), &sources);
    let failed = diagnostics.iter().any(|d| d.severity() == Severity::Error);
    // What is hardly meant can wait until nothing is wrong.
    diagnostics.retain(|d| !failed || !lint::finds(d.code));
    debug_assert!(failed || plan.is_some(), "there is no plan, and nobody said why");
    Loaded { plan: plan.filter(|_| !failed), diagnostics, sources }
}

fn compile(
    mut files: Files,
    sources: &Arc<Sources>,
    earlier: Option<&KeptSchemas>,
    overrides: &Overrides,
    cx: Cx,
) -> Option<Plan> {
    let schemas = SchemaSet::new(files.schemas.iter().cloned());
    let schema_names = files.schemas.iter().map(|(name, _)| name).chain(&files.broken.schemas);
    let cache = SchemaCache::new(&schemas, schema_names.map(String::as_str).collect(), &files.broken.schemas);
    let schemas_hash = hash(sources);
    if let Some(earlier) = earlier.filter(|e| e.hash == schemas_hash) {
        cache.reuse(earlier);
    }
    let no_entries: &[Entry] = &[];
    let (shared_tables, shared_parts) = match files.shared.as_ref().and_then(|n| Fields::of(n, "shared.yaml", cx)) {
        Some(fields) => {
            let found = (Tables::parse(fields.map("tables"), cx), fields.map("parts"));
            fields.done();
            found
        }
        None => (Tables::default(), no_entries),
    };
    unique(&files.dialects, "dialect", cx);
    unique(&files.backends, "backend", cx);
    unique(&files.profiles, "profile", cx);
    unique(&files.scripts, "script", cx);
    let backends: Vec<_> = files
        .backends
        .iter()
        .filter_map(|n| BackendPlan::parse(n, &shared_tables, shared_parts, cx))
        .map(Arc::new)
        .collect();
    for transcript in &files.transcripts {
        if !files.names("backend").contains(&transcript.backend.as_str()) {
            let message = format!("no backend file says `backend: {}`", transcript.backend);
            let known = files.names("backend");
            cx.unknown(Code::UnknownReference, transcript.backend_span, message, &transcript.backend, known);
        }
    }
    let played = script::Known { transcripts: &files.transcripts, broken: &files.broken.transcripts };
    let scripts: Vec<Arc<ScriptPlan>> =
        files.scripts.iter().filter_map(|n| script::parse(n, &played, cx)).map(Arc::new).collect();
    let profiles: Vec<Profile> = files.profiles.iter().filter_map(|n| Profile::parse(n, cx)).collect();
    let named = Dialects::new(files.names("dialect"), &files.dialects);
    let dcx = DialectCx { cx, shared_tables: &shared_tables, shared_parts, schemas: &cache, dialects: &named };
    let mut dialects = Vec::new();
    for node in &files.dialects {
        for profile in std::iter::once(None).chain(profiles.iter().copied().map(Some)) {
            dialects.extend(dialect::compile(node, profile, None, &dcx).map(Arc::new));
        }
    }
    let outside = precedence::from_outside(&dialects, &profiles, &named, &overrides.environment, cx);
    let Some(gateway) = &files.gateway else {
        if !files.broken.gateway {
            cx.add(
                Diagnostic::new(Code::Unreadable, Span::NOWHERE, "this set has no gateway.yaml")
                    .help("write one, or lay the folder over the embedded set with `--add`"),
            );
        }
        return None;
    };
    let known = gateway::Known {
        backends: &backends,
        backend_names: &files.names("backend"),
        scripts: &scripts,
        script_names: &files.names("script"),
        dialects: &named.names,
        profiles: &files.names("profile"),
        tables: &shared_tables,
        parts: shared_parts,
    };
    let mut gateway = gateway::parse(gateway, &known, cx)?;
    overrides.apply(&mut gateway, &known, cx);
    let compile = |base: &DialectPlan, policies: &Resolved| {
        let node = files.dialects.iter().find(|n| n.get("dialect").and_then(Node::as_text) == Some(&base.name))?;
        let profile = profiles.iter().copied().find(|p| Some(p.name) == base.profile.as_deref());
        dialect::compile(node, profile, Some(policies), &dcx)
    };
    precedence::Layers { bases: &dialects, dialects: &named, outside: &outside, compile: &compile, cx }
        .lay(&mut gateway);
    let mut plan = Plan {
        gateway,
        backends,
        dialects,
        transcripts: std::mem::take(&mut files.transcripts),
        scripts,
        tests: std::mem::take(&mut files.tests),
        sources: sources.clone(),
        written: Written::default(),
        schemas: cache.keep(schemas_hash),
    };
    if cx.findings.errors() == 0 {
        lint::run(&plan, &files, &profiles, cx);
    }
    plan.written = Written::take(&mut files);
    Some(plan)
}

fn unique(nodes: &[Node], key: &'static str, cx: Cx) {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    for name in nodes.iter().filter_map(|n| n.get(key)) {
        let Some(text) = name.as_text() else { continue };
        match seen.iter().find(|(n, _)| *n == text) {
            Some((_, first)) => cx.twice(name.span, format!("two files say `{key}: {text}`"), *first),
            None => seen.push((text, name.span)),
        }
    }
}

/// Of the schema files: their names and texts.
fn hash(sources: &Sources) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (_, source) in sources.iter().filter(|(_, s)| s.name.starts_with("schemas/")) {
        (&source.name, &source.text).hash(&mut hasher);
    }
    hasher.finish()
}
