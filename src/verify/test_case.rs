//! Parses the tests of a `*.test.yaml` file: the given events and the expectation of each.

use super::expectation::Expectation;
use crate::diagnostics::{Code, Diagnostic, FileId, Findings, Span, describe_known, did_you_mean};
use crate::domain::{RequestHead, Tree, WorkBudget};
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::backend_request::RequestSettings;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::script::ScriptPlan;
use crate::mapping::config::test_file::{BackendResponse, TestEntry, TestFile, tested_name};
use crate::mapping::config::transcript::RecordedEvent;
use crate::mapping::grammar::FromNode;
use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::grammar::policies::DialectPolicies;
use crate::mapping::grammar::unparsed::AnyNode;
use crate::mapping::policy::resolve::SetBy;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

#[derive(Debug)]
pub struct TestCase {
    pub name: String,
    pub span: Span,
    /// The whole test, to find it by a line number.
    pub whole: Span,
    pub backend: Arc<BackendPlan>,
    /// The settings of an entry of gateway.yaml, instead of those of the backend file.
    pub settings: Option<RequestSettings>,
    /// Whether the request to the backend is built: it is compared, or a test that names a backend gives no events.
    pub sends: bool,
    pub dialect: Option<Arc<DialectPlan>>,
    pub script: Option<Arc<ScriptPlan>>,
    pub request: Option<Tree>,
    pub head: RequestHead,
    pub response: Option<BackendResponse>,
    pub given: Vec<RecordedEvent>,
    pub expect: Expectation,
}

/// In `given:`, a silence until a keepalive is due.
const IDLE: &str = "$idle";

/// How many bytes of a transcript are replayed in one step of the budget.
const BYTES_PER_STEP: u64 = 8;

/// The valid tests of a file, and the diagnostics of the others.
pub fn parse(file: &str, node: &Node, plan: &Plan, budget: &WorkBudget) -> (Vec<TestCase>, Vec<Diagnostic>) {
    let findings = Findings::default();
    let cx = LoadContext { sources: &plan.sources, findings: &findings, budget, selectors: Default::default() };
    let Some(TestFile { tests }) = TestFile::from_file(node, cx) else { return (Vec::new(), findings.into_sorted()) };
    if tests.is_empty() {
        cx.error(Code::MissingKey, tests.key_span, "`tests:` is empty");
    }
    let mut cases = Vec::new();
    for node in tests.items {
        let before = findings.errors();
        let case = parse_case(file, node, plan, cx);
        // A test with errors is not run: it would report them a second time.
        cases.extend(case.filter(|_| findings.errors() == before));
    }
    (cases, findings.into_sorted())
}

fn parse_case(file: &str, node: &Node, plan: &Plan, cx: LoadContext) -> Option<TestCase> {
    let entry = TestEntry::from_file(node, cx)?;
    let subject = |key: &Option<Spanned<String>>, kind: SetFile| {
        let name = tested_name(key.as_ref().map(|name| name.as_str()), file, kind)?;
        Some((name.to_owned(), key.as_ref().map(|name| name.span)))
    };
    let expect = entry.expect.0.and_then(|expect| Expectation::parse(&expect, cx));
    let mut backend = subject(&entry.backend, SetFile::Backend);
    let mut settings = None;
    if let Some(name) = &entry.backend_entry {
        let (file, own) = backend_entry(name, plan, cx)?;
        (backend, settings) = (Some((file, Some(name.span))), Some(own));
    }
    let names_backend = backend.is_some();
    let mut references = References { file: node.span.file, plan, cx, backend, given: Vec::new() };
    let given = entry.given.iter().flat_map(|given| given.iter());
    references.given.extend(given.map(|AnyNode(node)| match node.as_text() {
        Some(IDLE) => RecordedEvent::Idle,
        _ => RecordedEvent::Raw(constant(node)),
    }));
    if let Some(wanted) = &entry.transcript {
        if let Some(given) = &entry.given {
            let message = "`given:` and `transcript:` cannot be combined: a transcript replaces given events";
            cx.add(Diagnostic::new(Code::UnknownKey, given.key_span, message).help("keep one of the two"));
            return None;
        }
        references.transcript(wanted)?;
    }
    references.given.extend(entry.disconnect.map(RecordedEvent::Disconnect));
    let backend = references.backend(entry.given.as_ref().map_or(entry.name.span, |given| given.span))?;
    let profile = subject(&entry.profile, SetFile::Profile);
    let dialect = match subject(&entry.dialect, SetFile::Dialect) {
        Some(name) => Some(references.dialect(&name, profile.as_ref())?),
        None => None,
    };
    let dialect = match &entry.policies {
        Some(policies) => Some(references.with_policies(dialect, policies, node.span)?),
        None => dialect,
    };
    let script = match subject(&entry.script, SetFile::Script) {
        Some(name) => Some(references.script(&name)?),
        None => None,
    };
    let expect = expect?;
    let sends_only = names_backend && references.given.is_empty() && backend.sends().is_some();
    let case = TestCase {
        span: entry.name.span,
        name: entry.name.value,
        whole: node.span,
        backend,
        settings,
        sends: expect.expects_sent() || sends_only && dialect.is_some() && entry.request.is_some(),
        dialect,
        script,
        request: entry.request.map(|AnyNode(node)| constant(node)),
        head: RequestHead {
            path: pairs(&entry.path),
            query: pairs(&entry.query),
            headers: pairs(&entry.headers)
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
        },
        response: entry.backend_response,
        given: references.given,
        expect,
    };
    case.is_satisfiable(cx).then_some(case)
}

fn pairs(map: &Map<String>) -> Vec<(String, String)> {
    map.pairs().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// The backend file and the settings of an entry of gateway.yaml.
fn backend_entry(name: &Spanned<String>, plan: &Plan, cx: LoadContext) -> Option<(String, RequestSettings)> {
    let entries = &plan.gateway.backends;
    let Some(entry) = entries.iter().find(|entry| entry.name == name.value) else {
        let known = entries.iter().map(|entry| entry.name.as_str());
        let message = format!("gateway.yaml has no backend `{}`", name.value);
        cx.unknown(Code::UnknownReference, name.span, message, name, known);
        return None;
    };
    let Some(settings) = entry.settings() else {
        let message = format!("nothing is sent to the backend `{}`", name.value);
        cx.error(Code::UnknownReference, name.span, message);
        return None;
    };
    Some((entry.plan.name.clone(), settings.clone()))
}

/// A name, and its span unless it is the name of the test file.
type NameInTest = (String, Option<Span>);

/// Resolves the names in a test to the items of the plan.
struct References<'p> {
    file: FileId,
    plan: &'p Plan,
    cx: LoadContext<'p>,
    backend: Option<NameInTest>,
    given: Vec<RecordedEvent>,
}

impl References<'_> {
    fn unknown<'k>(&self, key: &str, name: &NameInTest, message: String, known: impl IntoIterator<Item = &'k str>) {
        let (word, span) = name;
        match span {
            Some(span) => self.cx.unknown(Code::UnknownReference, *span, message, word, known),
            None => self.misnamed(key, word, &message, known.into_iter().collect()),
        }
    }

    /// The name comes from the file name, so it is wrong for all tests of the file and reported once.
    fn misnamed(&self, key: &str, word: &str, message: &str, mut known: Vec<&str>) {
        known.dedup();
        let meant = match did_you_mean(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}.test.yaml`? "),
            None => String::new(),
        };
        let message = format!("{message} (from the file name `{word}.test.yaml`)");
        let help = format!("{meant}{}; or add `{key}: NAME` to each test", describe_known(known));
        self.cx.add(Diagnostic::new(Code::UnknownReference, Span::new(self.file, 0, 0), message).help(help));
    }

    fn transcript(&mut self, wanted: &Spanned<String>) -> Option<()> {
        let transcripts = &self.plan.transcripts;
        let Some(transcript) = transcripts.iter().find(|t| t.name == wanted.value) else {
            let known = transcripts.iter().map(|t| t.name.as_str());
            let message = format!("unknown transcript `{}`", wanted.value);
            self.cx.unknown(Code::UnknownReference, wanted.span, message, wanted, known);
            return None;
        };
        // A transcript is copied and replayed by each test that names it.
        let source = self.plan.sources.get(transcript.backend_span.file);
        if !self.cx.budget.spend(source.map_or(0, |source| source.text.len() as u64 / BYTES_PER_STEP)) {
            return None;
        }
        self.given.extend(transcript.lines.iter().map(|l| l.event.clone()));
        self.backend.get_or_insert_with(|| (transcript.backend.clone(), None));
        Some(())
    }

    /// `span`: where to report that no backend is named.
    fn backend(&self, span: Span) -> Option<Arc<BackendPlan>> {
        let Some(name) = &self.backend else {
            // If no events are given, any backend will do.
            if self.given.is_empty() {
                return self.plan.backends.first().cloned();
            }
            let message = "this test does not name the backend of its events";
            self.cx.add(Diagnostic::new(Code::MissingKey, span, message).help("add `backend: NAME`"));
            return None;
        };
        let found = self.plan.backend(&name.0).cloned();
        if found.is_none() {
            let known = self.plan.backends.iter().map(|b| b.name.as_str());
            self.unknown("backend", name, format!("no backend file defines `backend: {}`", name.0), known);
        }
        found
    }

    fn dialect(&self, name: &NameInTest, profile: Option<&NameInTest>) -> Option<Arc<DialectPlan>> {
        let plan = self.plan;
        let found = plan.dialect(&name.0, profile.map(|(profile, _)| profile.as_str())).cloned();
        if found.is_none() {
            // If the dialect exists, its profile is unknown.
            let named = plan.dialects().any(|d| d.name == name.0);
            let (key, wrong) = match profile.filter(|_| named) {
                Some(profile) => ("profile", profile),
                None => ("dialect", name),
            };
            let of = |d: &'_ Arc<DialectPlan>| if named { d.profile.clone() } else { Some(d.name.clone()) };
            let known: Vec<String> = plan.dialects().filter_map(of).collect();
            self.unknown(key, wrong, format!("unknown {key} `{}`", wrong.0), known.iter().map(String::as_str));
        }
        found
    }

    /// The dialect with the policies that the test sets.
    fn with_policies(
        &self,
        dialect: Option<Arc<DialectPlan>>,
        policies: &Spanned<Entries<DialectPolicies>>,
        test: Span,
    ) -> Option<Arc<DialectPlan>> {
        let Some(dialect) = dialect else {
            let message = "`policies:` are those of a dialect, and no dialect is named";
            self.cx.add(Diagnostic::new(Code::MissingKey, policies.key_span, message).help("add `dialect: NAME`"));
            return None;
        };
        dialect.resolved.read(policies.items, &SetBy::Test, self.cx);
        Some(self.plan.test_dialect(test).cloned().unwrap_or(dialect))
    }

    fn script(&self, name: &NameInTest) -> Option<Arc<ScriptPlan>> {
        let scripts = &self.plan.scripts;
        let found = scripts.iter().find(|s| s.name == name.0).cloned();
        if found.is_none() {
            let known = scripts.iter().map(|s| s.name.as_str());
            self.unknown("script", name, format!("unknown script `{}`", name.0), known);
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
            let of_dialect = ["frames", "where", "stream", "body", "request", "sent", "response", "plays"];
            let needs_dialect = of_dialect.contains(key);
            let (message, help) = match *key {
                _ if needs_events && self.given.is_empty() => {
                    (format!("`{key}:` is expected, but no events are given"), "add `given:` or `transcript:`")
                }
                _ if needs_dialect && self.dialect.is_none() => {
                    (format!("`{key}:` is expected, but no dialect is named"), "add `dialect: NAME`")
                }
                "response" if self.given.is_empty() && self.request.is_none() => {
                    (format!("`{key}:` is expected, but nothing is given"), "add `given:`, `transcript:` or `request:`")
                }
                "request" | "sent" if self.request.is_none() => {
                    (format!("`{key}:` is expected, but the test sends none"), "add `request:`, the client's body")
                }
                "sent" if self.backend.sends().is_none() => {
                    let message = format!("`sent:` is expected, but `{}` has no request template", self.backend.name);
                    (message, "name a backend with `request:` or `conversation:`")
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
