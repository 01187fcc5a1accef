//! One test, as it is written: what is given, and what is expected.

use super::expectation::Expect;
use crate::diagnostics::{Code, Diagnostic, Findings, Span, did_you_mean, there_is};
use crate::domain::Tree;
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::script::ScriptPlan;
use crate::mapping::config::transcript::Arrival;
use crate::mapping::source::field_reader::{Cx, Fields, constant};
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub span: Span,
    /// All of it, to be found by a line.
    pub whole: Span,
    pub backend: Arc<BackendPlan>,
    pub dialect: Option<Arc<DialectPlan>>,
    pub script: Option<Arc<ScriptPlan>>,
    pub request: Option<Tree>,
    pub given: Vec<Arrival>,
    pub expect: Expect,
}

/// The tests of a file, and what is wrong with them.
pub fn parse(file: &str, node: &Node, plan: &Plan) -> (Vec<Case>, Vec<Diagnostic>) {
    let findings = Findings::default();
    let cx = Cx { sources: &plan.sources, findings: &findings };
    let mut cases = Vec::new();
    if let Some(fields) = Fields::of(node, "a test file", cx) {
        fields.required("tests");
        let tests = fields.list("tests");
        if let (Some(entry), []) = (fields.entry("tests"), tests) {
            cx.error(Code::MissingKey, entry.key_span, "`tests:` is empty");
        }
        for node in tests {
            let before = findings.errors();
            let case = parse_case(file, node, plan, cx);
            // What is wrong with a test is said; to run it all the same would say it twice.
            cases.extend(case.filter(|_| findings.errors() == before));
        }
        fields.done();
    }
    (cases, findings.into_sorted())
}

fn parse_case(file: &str, node: &Node, plan: &Plan, cx: Cx) -> Option<Case> {
    let fields = Fields::of(node, "a test", cx)?;
    let name = fields.required_text("name")?.to_owned();
    let span = fields.get("name").map_or(node.span, |n| n.span);
    let (folder, stem) = file.split_once('/').unwrap_or(("", file));
    let own = |wanted: &str| (folder == wanted).then(|| stem.trim_end_matches(".test.yaml"));
    let profile = fields.text("profile").or(own("profiles"));
    let dialect = fields.text("dialect").or(own("dialects"));
    let backend = fields.text("backend").or(own("backends")).map(str::to_owned);
    let script = fields.text("script").or(own("scripts"));
    let expect = fields.required("expect").and(fields.entry("expect")).and_then(|e| Expect::parse(e, cx));
    let request = fields.get("request").map(constant);
    let mut said = Said { node, span, plan, cx, backend, given: Vec::new() };
    said.given.extend(fields.list("given").iter().map(|n| Arrival::Raw(constant(n))));
    if let Some(wanted) = fields.text("transcript") {
        if let Some(entry) = fields.entry("given") {
            let message = "`given:` beside `transcript:`: a transcript stands in place of given events";
            cx.add(Diagnostic::new(Code::UnknownKey, entry.key_span, message).help("keep one of the two"));
            return None;
        }
        said.transcript(wanted)?;
    }
    if let Some(why) = fields.text("cut") {
        said.given.push(Arrival::Cut(why.to_owned()));
    }
    fields.done();
    let backend = said.backend()?;
    let dialect = match dialect {
        Some(name) => Some(said.dialect(name, profile)?),
        None => None,
    };
    let script = match script {
        Some(name) => Some(said.script(name)?),
        None => None,
    };
    let given = said.given;
    let expect = expect?;
    let case = Case { name, span, whole: node.span, backend, dialect, script, request, given, expect };
    case.can_hold(cx).then_some(case)
}

/// What a test names, looked up in the plan.
struct Said<'p> {
    node: &'p Node,
    span: Span,
    plan: &'p Plan,
    cx: Cx<'p>,
    backend: Option<String>,
    given: Vec<Arrival>,
}

impl Said<'_> {
    /// The word that names something, where the test says it.
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

    /// The name is the file's, so it is wrong for all of its tests, and said once.
    fn misnamed(&self, key: &str, word: &str, message: &str, mut known: Vec<&str>) {
        known.dedup();
        let meant = match did_you_mean(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}.test.yaml`? "),
            None => String::new(),
        };
        let file = Span::new(self.node.span.file, 0, 0);
        let message = format!("{message}, and `{word}.test.yaml` is named after it");
        let help = format!("{meant}{}; or let each test say `{key}: NAME`", there_is(known));
        self.cx.add(Diagnostic::new(Code::UnknownReference, file, message).help(help));
    }

    fn transcript(&mut self, wanted: &str) -> Option<()> {
        let transcripts = &self.plan.transcripts;
        let Some(transcript) = transcripts.iter().find(|t| t.name == wanted) else {
            let known = transcripts.iter().map(|t| t.name.as_str());
            self.unknown("transcript", wanted, format!("no transcript is called `{wanted}`"), known);
            return None;
        };
        self.given.extend(transcript.lines.iter().map(|l| l.what.clone()));
        self.backend.get_or_insert_with(|| transcript.backend.clone());
        Some(())
    }

    fn backend(&self) -> Option<Arc<BackendPlan>> {
        let found = match &self.backend {
            Some(name) => self.plan.backend(name),
            // Nothing is played, so any will do.
            None if self.given.is_empty() => self.plan.backends.first(),
            None => {
                let message = "this test does not say whose events are given";
                self.cx.add(Diagnostic::new(Code::MissingKey, self.at("given"), message).help("add `backend: NAME`"));
                return None;
            }
        };
        if found.is_none() {
            let name = self.backend.as_deref().unwrap_or_default();
            let known = self.plan.backends.iter().map(|b| b.name.as_str());
            self.unknown("backend", name, format!("no backend file says `backend: {name}`"), known);
        }
        found.cloned()
    }

    fn dialect(&self, name: &str, profile: Option<&str>) -> Option<Arc<DialectPlan>> {
        let plan = self.plan;
        let found = plan.dialect(name, profile).cloned();
        if found.is_none() {
            // The pair may be unknown for its profile only.
            let named = plan.dialects().any(|d| d.name == name);
            let (key, word) = match profile.filter(|_| named) {
                Some(profile) => ("profile", profile),
                None => ("dialect", name),
            };
            let of = |d: &'_ Arc<DialectPlan>| if named { d.profile.clone() } else { Some(d.name.clone()) };
            let known: Vec<String> = plan.dialects().filter_map(of).collect();
            self.unknown(key, word, format!("no {key} is called `{word}`"), known.iter().map(String::as_str));
        }
        found
    }

    fn script(&self, name: &str) -> Option<Arc<ScriptPlan>> {
        let scripts = &self.plan.scripts;
        let found = scripts.iter().find(|s| s.name == name).cloned();
        if found.is_none() {
            let known = scripts.iter().map(|s| s.name.as_str());
            self.unknown("script", name, format!("no script is called `{name}`"), known);
        }
        found
    }
}

impl Case {
    /// What is expected although nothing could bring it about is a mistake of the test.
    fn can_hold(&self, cx: Cx) -> bool {
        let mut sound = true;
        for (key, span) in &self.expect.said {
            let played = matches!(*key, "frames" | "where" | "stream" | "events" | "body");
            let spoken = matches!(*key, "frames" | "where" | "stream" | "body" | "request" | "plays");
            let (message, help) = match *key {
                _ if played && self.given.is_empty() => {
                    (format!("`{key}:` is expected, and nothing is given"), "add `given:` or `transcript:`")
                }
                _ if spoken && self.dialect.is_none() => {
                    (format!("`{key}:` is expected, and no dialect is named"), "add `dialect: NAME`")
                }
                "request" if self.request.is_none() => {
                    (format!("`{key}:` is expected, and none is sent"), "add `request:`, the client's body")
                }
                "plays" if self.script.is_none() => {
                    (format!("`{key}:` is expected, and no script is named"), "add `script: NAME`")
                }
                _ => continue,
            };
            cx.add(Diagnostic::new(Code::MissingKey, *span, message).help(help));
            sound = false;
        }
        sound
    }
}
