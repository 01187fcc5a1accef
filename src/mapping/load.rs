//! Loads a set of files into one plan. All mistakes are reported together; a single error means no plan.

use super::checked::{CheckedSet, DialectPart, UnchangedParts};
use super::config::backend::BackendPlan;
use super::config::configured_gateway;
use super::config::dialect;
use super::config::dialect::{DialectContext, DialectPlan, GivenPolicies};
use super::config::dialect_index;
use super::config::gateway;
use super::config::gateway::GatewayPlan;
use super::config::layers::Override;
use super::config::overrides::Overrides;
use super::config::profile::{Profile, ProfileChain};
use super::config::profile_patch;
use super::config::profile_patch::PatchedDialect;
use super::config::schemas::{CompiledSchemas, SchemaCache};
use super::config::script;
use super::config::script::ScriptPlan;
use super::config::shared::Shared;
use super::config::transcript::Transcript;
use super::exhausted;
use super::grammar::FromNode;
use super::language::scope::PolicyWords;
use super::language::table::Tables;
use super::lint;
use super::policy::owners::DialectIndex;
use super::policy::precedence;
use super::policy::resolve::ResolvedPolicies;
use super::policy::test_policies::TestDialects;
use super::provenance::values::DialectSources;
use super::source::field_reader::LoadContext;
use super::source::files::MappingFiles;
use super::source::layout::SetFile;
use super::source::parse_files;
use super::source::renamed_schemas;
use super::source::yaml::{Entry, Node};
use crate::diagnostics::{Code, Diagnostic, Findings, Severity, Sources, Span, dedupe};
use crate::domain::WorkBudget;
use reframe_json::SchemaSet;
use std::cell::RefCell;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// The text of one file of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// Path inside the set: `dialects/chat.yaml`, `schemas/chat/chunk.json`, `transcripts/greeting.jsonl`.
    pub name: String,
    /// Path for display, as the user knows the file.
    pub shown: String,
    /// 0 for the base of the set, else the position of its folder among the added ones.
    pub layer: usize,
    pub text: Arc<str>,
}

/// The stack of a thread that loads a set. Every recursion of a load is over something with a limited depth, and needs a
/// small part of this.
pub const LOAD_STACK_BYTES: usize = 32 * 1024 * 1024;

/// The checked and compiled set: everything that a turn needs at run time. Immutable.
#[derive(Debug)]
pub struct Plan {
    pub gateway: GatewayPlan,
    pub backends: Vec<Arc<BackendPlan>>,
    dialects: Vec<Arc<DialectPlan>>,
    test_dialects: TestDialects,
    pub transcripts: Vec<Arc<Transcript>>,
    /// All scripts, also those that no backend of the gateway uses.
    pub scripts: Vec<Arc<ScriptPlan>>,
    /// The names of the profiles, with their spans.
    pub profiles: Vec<(String, Span)>,
    /// The `*.test.yaml` files, parsed.
    pub tests: Vec<TestFile>,
    pub sources: Arc<Sources>,
    /// What layers of the set replace or remove of the layers below them, except for whole files with the same path.
    pub overrides: Vec<Override>,
    /// Maps a value that violates its schema back to the YAML line that produced it.
    pub dialect_sources: DialectSources,
    schemas: CompiledSchemas,
    /// How many of the `sources` were read; the others are derived.
    pub(super) written_files: usize,
    /// Identifies what tests read of the gateway.
    pub(super) tested_gateway: u64,
}

/// What was known before a load.
#[derive(Default)]
pub struct Before<'b> {
    /// The plan before: its compiled schemas are used again if their files have not changed.
    pub plan: Option<&'b Plan>,
    /// Sets with files that need no second check, unless a route uses them.
    pub checked: Vec<CheckedSet<'b>>,
}

#[derive(Debug)]
pub struct TestFile {
    pub name: String,
    pub node: Node,
}

/// The result of a load: a plan, or errors. A plan may come with warnings.
pub struct LoadOutcome {
    pub plan: Option<Plan>,
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Arc<Sources>,
}

impl Plan {
    /// The dialect as the files define it, without settings from the environment. Mapping tests use this one. What the
    /// clients of a route get is in its [`variants`](super::config::route::RoutePlan::variants).
    pub fn dialect(&self, name: &str, profile: Option<&str>) -> Option<&Arc<DialectPlan>> {
        self.dialects.iter().find(|d| d.name == name && d.profile.as_deref() == profile)
    }

    /// The dialect of a test that sets policies, by the span of the test.
    pub fn test_dialect(&self, test: Span) -> Option<&Arc<DialectPlan>> {
        self.test_dialects.get(test)
    }

    pub fn dialects(&self) -> impl Iterator<Item = &Arc<DialectPlan>> {
        self.dialects.iter()
    }

    pub fn backend(&self, name: &str) -> Option<&Arc<BackendPlan>> {
        self.backends.iter().find(|b| b.name == name)
    }

    /// Drops what only the verification of the set reads: tests, files as YAML, and what no route uses. The variants of
    /// the routes keep their dialects.
    pub fn keep_what_turns_need(&mut self) {
        let scripts = self.gateway.backends.iter().filter_map(|backend| backend.script.as_deref());
        let played = scripts.flat_map(ScriptPlan::transcripts).map(|transcript| transcript.backend.as_str());
        let routed = self.gateway.backends.iter().map(|backend| backend.plan.name.as_str());
        let used: HashSet<&str> = played.chain(routed).collect();
        self.backends.retain(|backend| used.contains(backend.name.as_str()));
        self.dialects = Vec::new();
        self.test_dialects = TestDialects::default();
        self.transcripts = Vec::new();
        self.scripts = Vec::new();
        self.tests = Vec::new();
        self.dialect_sources = DialectSources::default();
    }
}

pub fn load(files: &[SourceFile]) -> LoadOutcome {
    load_with(files, None, &Overrides::default())
}

/// Loads with overrides. Reuses the compiled schemas of the `previous` plan if their files have not changed.
pub fn load_with(files: &[SourceFile], previous: Option<&Plan>, overrides: &Overrides) -> LoadOutcome {
    load_within(files, previous, overrides, &WorkBudget::default())
}

/// Loads with a limit for the work. A load that exceeds it reports only that.
pub fn load_within(
    files: &[SourceFile],
    previous: Option<&Plan>,
    overrides: &Overrides,
    budget: &WorkBudget,
) -> LoadOutcome {
    load_after(files, &Before { plan: previous, checked: Vec::new() }, overrides, budget)
}

/// The same, without a second check of what was checked before.
pub fn load_after(files: &[SourceFile], before: &Before, overrides: &Overrides, budget: &WorkBudget) -> LoadOutcome {
    let mut sources = Sources::default();
    let written_files = files.len();
    let findings = Findings::default();
    let mut parsed = MappingFiles::default();
    parsed.without_tests = before.checked.iter().any(|set| set.is_same(files));
    parse_files::parse(files, &mut sources, &mut parsed, &findings, budget);
    let renamed = renamed_schemas::derive(files, &parsed, budget);
    parse_files::parse(&renamed, &mut sources, &mut parsed, &findings, budget);
    let sources = Arc::new(sources);
    let cx = LoadContext { sources: &sources, findings: &findings, budget, selectors: Default::default() };
    parsed.merge_layers(cx);
    parsed.resolve_derived_backends(cx);
    parsed.suppress_consequences(cx);
    let plan = compile(parsed, &sources, written_files, before, overrides, cx);
    if let Some(diagnostic) = exhausted::diagnostic(budget, &sources) {
        return LoadOutcome { plan: None, diagnostics: vec![diagnostic], sources };
    }
    let mut diagnostics = dedupe(findings.into_sorted(), &sources);
    let failed = diagnostics.iter().any(|d| d.severity() == Severity::Error);
    // Suppress lint warnings while there are errors.
    diagnostics.retain(|d| !failed || !lint::is_lint(d.code));
    debug_assert!(failed || plan.is_some(), "a load without a plan must report an error");
    LoadOutcome { plan: plan.filter(|_| !failed), diagnostics, sources }
}

fn compile(
    mut files: MappingFiles,
    sources: &Arc<Sources>,
    written_files: usize,
    before: &Before,
    overrides: &Overrides,
    cx: LoadContext,
) -> Option<Plan> {
    let (mut tests, layer_overrides) = (std::mem::take(&mut files.tests), std::mem::take(&mut files.overrides));
    let schemas = SchemaSet::new(files.schemas.iter().cloned());
    let schema_names = files.schemas.iter().map(|(name, _)| name).chain(&files.unreadable.schemas);
    let cache = SchemaCache::new(&schemas, schema_names.map(String::as_str).collect(), &files.unreadable.schemas);
    let schemas_hash = hash_schema_files(sources);
    if let Some(plan) = before.plan.filter(|plan| plan.schemas.hash == schemas_hash) {
        cache.reuse(&plan.schemas);
    }
    let shared = files.shared().and_then(|node| Shared::from_file(node, cx));
    let shared_tables = shared.as_ref().map_or_else(Tables::default, |s| Tables::parse_shared(&s.tables, cx));
    let shared_fragments = shared.map_or(&[] as &[Entry], |s| s.fragments.items);
    for kind in [SetFile::Dialect, SetFile::Backend, SetFile::Profile, SetFile::Script] {
        check_unique_names(files.of(kind), kind.name(), cx);
    }
    let begin = |node: &Node| {
        let file = sources.get(node.span.file).map_or("", |source| source.name.as_str());
        cx.budget.begin(file, "compiling this file");
    };
    let backends: Vec<_> = files
        .of(SetFile::Backend)
        .inspect(|node| begin(node))
        .filter_map(|n| BackendPlan::parse(n, &shared_tables, shared_fragments, cx))
        .map(Arc::new)
        .collect();
    check_backends_of_transcripts(&files, cx);
    let transcripts =
        script::KnownTranscripts { transcripts: &files.transcripts, unreadable: &files.unreadable.transcripts };
    let scripts: Vec<Arc<ScriptPlan>> =
        files.of(SetFile::Script).filter_map(|n| script::parse(n, &transcripts, cx)).map(Arc::new).collect();
    let profiles: Vec<Profile> = files.of(SetFile::Profile).filter_map(|n| Profile::from_file(n, cx)).collect();
    let chains = Profile::chains(&profiles, &files.names(SetFile::Profile), cx);
    let dialect_index = DialectIndex::new(files.names(SetFile::Dialect), files.of(SetFile::Dialect));
    let context = DialectContext {
        cx,
        shared_tables: &shared_tables,
        shared_fragments,
        schemas: &cache,
        dialects: &dialect_index,
        expressions: Rc::default(),
        shared: RefCell::default(),
    };
    let patched_dialects = profile_patch::patched_dialects(files.of(SetFile::Dialect), &chains, cx);
    let profiles_of = |source: &PatchedDialect| {
        let is_of = |chain: &&ProfileChain| chain.last().map(|p| p.name) == source.profile.as_deref();
        chains.iter().find(is_of).map_or(&[][..], Vec::as_slice)
    };
    let resolved: Vec<ResolvedPolicies> =
        patched_dialects.iter().map(|source| dialect::resolve(source, profiles_of(source), &context)).collect();
    let known = gateway::KnownNames {
        backends: &backends,
        backend_names: &files.names(SetFile::Backend),
        scripts: &scripts,
        script_names: &files.names(SetFile::Script),
        dialects: &dialect_index.names,
        profiles: &files.names(SetFile::Profile),
        tables: &shared_tables,
        fragments: shared_fragments,
        schemas: &cache,
        policies: policies_of_all(&resolved),
    };
    let gateway = configured_gateway::file(&files, cx).and_then(|gateway| {
        begin(gateway);
        configured_gateway::parse(gateway, &known, &chains, &profiles, overrides, cx)
    });
    let unchanged = UnchangedParts::new(&before.checked, sources, written_files, gateway.as_ref().map(|g| g.1), &files);
    let names_of = |source| profiles_of(source).iter().map(|profile| profile.name).collect();
    let parts: Vec<DialectPart> =
        patched_dialects.iter().map(|source| DialectPart { source, profiles: names_of(source) }).collect();
    tests.retain(|tests| !unchanged.has_tests(tests, &parts));
    let is_served = |source: &PatchedDialect| {
        gateway
            .as_ref()
            .is_none_or(|(gateway, _)| precedence::may_use(gateway, &source.dialect, source.profile.as_deref()))
    };
    let is_skipped =
        |part: &DialectPart| unchanged.has_dialect(part) && !is_served(part.source) && !part.is_tested(&tests);
    let (mut dialects, mut skipped, mut bases) = (Vec::new(), Vec::new(), Vec::new());
    for (part, resolved) in parts.iter().zip(&resolved) {
        let source = part.source;
        if is_skipped(part) {
            skipped.push(source);
            bases.push((source, resolved));
            continue;
        }
        begin(&source.node);
        // The variants of the routes share it. A complete check needs to know what each policy alone decides.
        let open = match &gateway {
            Some((gateway, _)) if !before.checked.is_empty() => {
                precedence::open_policies(gateway, &source.dialect, source.profile.as_deref())
            }
            Some(_) | None => Vec::new(),
        };
        if let Some(dialect) =
            dialect::compile(source, profiles_of(source), GivenPolicies { resolved, open: &open }, &context)
        {
            dialects.push(Arc::new(dialect));
            bases.push((source, resolved));
        }
    }
    let (mut gateway, tested_gateway) = gateway?;
    let environment = precedence::environment_settings(&bases, &chains, &dialect_index, &overrides.environment, cx);
    let compile = |base: &DialectPlan, given: GivenPolicies| {
        let source = patched_dialects.iter().find(|p| p.dialect == base.name && p.profile == base.profile)?;
        begin(&source.node);
        dialect::compile(source, profiles_of(source), given, &context)
    };
    precedence::PolicyLayers {
        bases: &dialects,
        dialects: &dialect_index,
        environment: &environment,
        tables: &shared_tables,
        compile: &compile,
        cx,
    }
    .compile_variants(&mut gateway);
    let test_dialects = match cx.findings.errors() {
        0 => TestDialects::compile(&tests, &dialects, &compile, cx),
        _ => TestDialects::default(),
    };
    gateway.collect_client_headers();
    let mut plan = Plan {
        gateway,
        backends,
        dialects,
        test_dialects,
        transcripts: files.transcripts.clone(),
        scripts,
        profiles: files.of(SetFile::Profile).filter_map(|n| profile_name(n)).collect(),
        tests,
        sources: sources.clone(),
        overrides: layer_overrides,
        dialect_sources: DialectSources::default(),
        schemas: cache.into_compiled(schemas_hash),
        written_files,
        tested_gateway,
    };
    if cx.findings.errors() == 0 {
        dialect_index::check_reachable(&plan, &patched_dialects, cx);
    }
    if cx.findings.errors() == 0 {
        lint::run(&plan, &files, &profiles, &patched_dialects, &skipped, cx);
    }
    plan.dialect_sources = DialectSources { dialects: patched_dialects, shared: files.shared().cloned() };
    Some(plan)
}

/// The policies of all dialects, each with the values that it has in any of them.
fn policies_of_all(dialects: &[ResolvedPolicies]) -> PolicyWords {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for (name, values) in dialects.iter().flat_map(|resolved| resolved.words().to_vec()) {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                let new: Vec<String> = values.into_iter().filter(|value| !known.contains(value)).collect();
                known.extend(new);
            }
            None => all.push((name, values)),
        }
    }
    all.into()
}

fn check_backends_of_transcripts(files: &MappingFiles, cx: LoadContext) {
    let known = files.names(SetFile::Backend);
    for transcript in files.transcripts.iter().filter(|t| !known.contains(&t.backend.as_str())) {
        let message = format!("no backend file defines `backend: {}`", transcript.backend);
        let known = known.iter().copied();
        cx.unknown(Code::UnknownReference, transcript.backend_span, message, &transcript.backend, known);
    }
}

fn profile_name(node: &Node) -> Option<(String, Span)> {
    let name = node.get(SetFile::Profile.name())?;
    Some((name.as_text()?.to_owned(), name.span))
}

fn check_unique_names<'n>(nodes: impl Iterator<Item = &'n Arc<Node>>, key: &'static str, cx: LoadContext) {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    for name in nodes.filter_map(|n| n.get(key)) {
        let Some(text) = name.as_text() else { continue };
        match seen.iter().find(|(n, _)| *n == text) {
            Some((_, first)) => cx.duplicate(name.span, format!("two files define `{key}: {text}`"), *first),
            None => seen.push((text, name.span)),
        }
    }
}

/// Hash of the names and texts of all schema files.
fn hash_schema_files(sources: &Sources) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (_, source) in sources.iter().filter(|(_, s)| SetFile::Schema.matches(&s.name)) {
        (&source.name, &source.text).hash(&mut hasher);
    }
    hasher.finish()
}
