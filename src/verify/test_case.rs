//! Parses the tests of a `*.test.yaml` file: the given events and the expectation of each.

use super::expectation::Expectation;
use crate::diagnostics::{Code, Diagnostic, Findings, Span, describe_known, did_you_mean};
use crate::domain::Tree;
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::script::ScriptPlan;
use crate::mapping::config::transcript::RecordedEvent;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, constant};
use crate::mapping::source::layout::{SetFile, tested_by};
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

#[derive(Debug)]
pub struct TestCase {
    pub name: String,
    pub span: Span,
    /// The whole test, to find it by a line number.
    pub whole: Span,
    pub backend: Arc<BackendPlan>,
    pub dialect: Option<Arc<DialectPlan>>,
    pub script: Option<Arc<ScriptPlan>>,
    pub request: Option<Tree>,
    pub given: Vec<RecordedEvent>,
    pub expect: Expectation,
}

/// The valid tests of a file, and the diagnostics of the others.
pub fn parse(file: &str, node: &Node, plan: &Plan) -> (Vec<TestCase>, Vec<Diagnostic>) {
    let findings = Findings::default();
    let cx = LoadContext { sources: &plan.sources, findings: &findings };
    let mut cases = Vec::new();
    if let Some(fields) = FieldReader::of(node, "a test file", cx) {
        fields.required("tests");
        let tests = fields.list("tests");
        if let (Some(entry), []) = (fields.entry("tests"), tests) {
            cx.error(Code::MissingKey, entry.key_span, "`tests:` is empty");
        }
        for node in tests {
            let before = findings.errors();
            let case = parse_case(file, node, plan, cx);
            // A test with errors is not run: it would report them a second time.
            cases.extend(case.filter(|_| findings.errors() == before));
        }
        fields.finish();
    }
    (cases, findings.into_sorted())
}

fn parse_case(file: &str, node: &Node, plan: &Plan, cx: LoadContext) -> Option<TestCase> {
    let fields = FieldReader::of(node, "a test", cx)?;
    let name = fields.required_text("name")?.to_owned();
    let span = fields.get("name").map_or(node.span, |n| n.span);
    // A test is for the mapping next to it, unless it names another one.
    let tested = tested_by(file);
    let own = |kind: SetFile| fields.text(kind.name()).or(tested.and_then(|(k, name)| (k == kind).then_some(name)));
    let (profile, dialect) = (own(SetFile::Profile), own(SetFile::Dialect));
    let (backend, script) = (own(SetFile::Backend).map(str::to_owned), own(SetFile::Script));
    let expect = fields.required("expect").and(fields.entry("expect")).and_then(|e| Expectation::parse(e, cx));
    let request = fields.get("request").map(constant);
    let mut references = References { node, span, plan, cx, backend, given: Vec::new() };
    references.given.extend(fields.list("given").iter().map(|n| RecordedEvent::Raw(constant(n))));
    if let Some(wanted) = fields.text("transcript") {
        if let Some(entry) = fields.entry("given") {
            let message = "`given:` and `transcript:` cannot be combined: a transcript replaces given events";
            cx.add(Diagnostic::new(Code::UnknownKey, entry.key_span, message).help("keep one of the two"));
            return None;
        }
        references.transcript(wanted)?;
    }
    if let Some(why) = fields.text("disconnect") {
        references.given.push(RecordedEvent::Disconnect(why.to_owned()));
    }
    fields.finish();
    let backend = references.backend()?;
    let dialect = match dialect {
        Some(name) => Some(references.dialect(name, profile)?),
        None => None,
    };
    let script = match script {
        Some(name) => Some(references.script(name)?),
        None => None,
    };
    let given = references.given;
    let expect = expect?;
    let case = TestCase { name, span, whole: node.span, backend, dialect, script, request, given, expect };
    case.is_satisfiable(cx).then_some(case)
}

/// Resolves the names in a test to the items of the plan.
struct References<'p> {
    node: &'p Node,
    span: Span,
    plan: &'p Plan,
    cx: LoadContext<'p>,
    backend: Option<String>,
    given: Vec<RecordedEvent>,
}

impl References<'_> {
    /// The span of the name, or of the test if the name comes from its file.
    fn at(&self, key: &str) -> Span {
        self.node.get(key).map_or(self.span, |n| n.span)
    }

    fn unknown<'k>(&self, key: &str, word: &str, message: String, known: impl IntoIterator<Item = &'k str>) {
        if self.node.get(key).is_none() {
            self.misnamed(key, word, &message, known.into_iter().collect());
            return;
        }
        self.cx.unknown(Code::UnknownReference, self.at(key), message, word, known);
    }

    /// The name comes from the file name, so it is wrong for all tests of the file and reported once.
    fn misnamed(&self, key: &str, word: &str, message: &str, mut known: Vec<&str>) {
        known.dedup();
        let meant = match did_you_mean(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}.test.yaml`? "),
            None => String::new(),
        };
        let file = Span::new(self.node.span.file, 0, 0);
        let message = format!("{message} (from the file name `{word}.test.yaml`)");
        let help = format!("{meant}{}; or add `{key}: NAME` to each test", describe_known(known));
        self.cx.add(Diagnostic::new(Code::UnknownReference, file, message).help(help));
    }

    fn transcript(&mut self, wanted: &str) -> Option<()> {
        let transcripts = &self.plan.transcripts;
        let Some(transcript) = transcripts.iter().find(|t| t.name == wanted) else {
            let known = transcripts.iter().map(|t| t.name.as_str());
            self.unknown("transcript", wanted, format!("unknown transcript `{wanted}`"), known);
            return None;
        };
        self.given.extend(transcript.lines.iter().map(|l| l.event.clone()));
        self.backend.get_or_insert_with(|| transcript.backend.clone());
        Some(())
    }

    fn backend(&self) -> Option<Arc<BackendPlan>> {
        let found = match &self.backend {
            Some(name) => self.plan.backend(name),
            // No events are given, so any backend will do.
            None if self.given.is_empty() => self.plan.backends.first(),
            None => {
                let message = "this test does not name the backend of its events";
                self.cx.add(Diagnostic::new(Code::MissingKey, self.at("given"), message).help("add `backend: NAME`"));
                return None;
            }
        };
        if found.is_none() {
            let name = self.backend.as_deref().unwrap_or_default();
            let known = self.plan.backends.iter().map(|b| b.name.as_str());
            self.unknown("backend", name, format!("no backend file defines `backend: {name}`"), known);
        }
        found.cloned()
    }

    fn dialect(&self, name: &str, profile: Option<&str>) -> Option<Arc<DialectPlan>> {
        let plan = self.plan;
        let found = plan.dialect(name, profile).cloned();
        if found.is_none() {
            // If the dialect exists, its profile is unknown.
            let named = plan.dialects().any(|d| d.name == name);
            let (key, word) = match profile.filter(|_| named) {
                Some(profile) => ("profile", profile),
                None => ("dialect", name),
            };
            let of = |d: &'_ Arc<DialectPlan>| if named { d.profile.clone() } else { Some(d.name.clone()) };
            let known: Vec<String> = plan.dialects().filter_map(of).collect();
            self.unknown(key, word, format!("unknown {key} `{word}`"), known.iter().map(String::as_str));
        }
        found
    }

    fn script(&self, name: &str) -> Option<Arc<ScriptPlan>> {
        let scripts = &self.plan.scripts;
        let found = scripts.iter().find(|s| s.name == name).cloned();
        if found.is_none() {
            let known = scripts.iter().map(|s| s.name.as_str());
            self.unknown("script", name, format!("unknown script `{name}`"), known);
        }
        found
    }
}

impl TestCase {
    /// Reports expectations that cannot match because the test lacks an input.
    fn is_satisfiable(&self, cx: LoadContext) -> bool {
        let mut is_valid = true;
        for (key, span) in &self.expect.keys {
            let needs_events = matches!(*key, "frames" | "where" | "stream" | "events" | "body");
            let needs_dialect = matches!(*key, "frames" | "where" | "stream" | "body" | "request" | "plays");
            let (message, help) = match *key {
                _ if needs_events && self.given.is_empty() => {
                    (format!("`{key}:` is expected, but no events are given"), "add `given:` or `transcript:`")
                }
                _ if needs_dialect && self.dialect.is_none() => {
                    (format!("`{key}:` is expected, but no dialect is named"), "add `dialect: NAME`")
                }
                "request" if self.request.is_none() => {
                    (format!("`{key}:` is expected, but the test sends none"), "add `request:`, the client's body")
                }
                "plays" if self.script.is_none() => {
                    (format!("`{key}:` is expected, but no script is named"), "add `script: NAME`")
                }
                _ => continue,
            };
            cx.add(Diagnostic::new(Code::MissingKey, *span, message).help(help));
            is_valid = false;
        }
        is_valid
    }
}
