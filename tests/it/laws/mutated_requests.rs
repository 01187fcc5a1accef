//! Sends mutated requests of every dialect through every shipped backend, without a network: the request is read,
//! adapted and rendered for the backend, and a recorded response of that backend goes back to the client, as a stream
//! and as a body, validated strictly.

use super::full_requests::{SEEDS, Seed};
use super::mutations;
use crate::support::replay::{self, LoadedSet, NOW_MS};
use proptest::prelude::*;
use reframe::testing::domain::{Fault, FaultKind, ToolAliases, Tree, TurnRequest};
use reframe::testing::engine::backend_request::prepare;
use reframe::testing::engine::pipeline::{Pipeline, ResponseMode, TurnSpec};
use reframe::testing::engine::{conversation, encode, request, script_step};
use reframe::testing::mapping::SourceFile;
use reframe::testing::mapping::config::dialect::DialectPlan;
use reframe::testing::mapping::config::transcript::Transcript;
use reframe::testing::reload::embedded;
use reframe::testing::verify::test_turn_spec;
use std::ops::Add;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The shipped backends, each with a recorded response.
const RESPONSES: &[(&str, &str)] = &[
    ("openai-chat", "openai-chat/matrix-text-then-call"),
    ("openai-responses", "openai-responses/matrix-text-then-call"),
    ("anthropic-messages", "anthropic-messages/matrix-text-then-call"),
    ("gemini-generate", "gemini-generate/thoughts-and-text"),
    ("codex-app-server", "codex-app-server/matrix-text-then-call"),
    ("codex-legacy", "codex-legacy/usage-at-the-end"),
];

struct Fixture {
    set: LoadedSet,
    transcripts: Vec<(&'static str, Transcript)>,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let mut files: Vec<SourceFile> = embedded::files();
    let gateway = files.iter_mut().find(|file| file.name == "gateway.yaml").unwrap();
    let entries = RESPONSES.iter().map(|(name, _)| {
        let url = if name.starts_with("codex") { "" } else { ", url: \"http://backend.test/v1\"" };
        format!(
            "  {name}: {{ use: {name}{url} }}\n  \
             strict-{name}: {{ use: {name}{url}, unknown_fields: reject }}\n"
        )
    });
    let entries: String = entries.collect();
    gateway.text = gateway.text.replace("\nbackends:\n", &format!("\nbackends:\n{entries}")).into();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let transcript = |case: &str| replay::transcript(&folder.join(case).join("events.jsonl"));
    let transcripts = RESPONSES.iter().map(|(name, case)| (*name, transcript(case))).collect();
    Fixture { set: LoadedSet::of(&files), transcripts }
});

/// A request of a dialect with up to three mutations.
pub fn mutated_request() -> impl Strategy<Value = Seed> {
    // The full requests have most of the members, so half of the mutants start from them.
    let seed = prop_oneof![0..3usize, 0..SEEDS.len()];
    (seed, mutations::mutations()).prop_map(|(at, mutations)| {
        let (dialect, mut body): Seed = SEEDS[at].clone();
        mutations.iter().for_each(|mutation| mutation.apply(&mut body));
        (dialect, body)
    })
}

/// How many backends, with each profile, answered, and how many rejections there were.
#[derive(Default)]
pub struct Outcomes {
    pub rejected: usize,
    pub answered: usize,
}

impl Add for Outcomes {
    type Output = Outcomes;

    fn add(self, other: Outcomes) -> Outcomes {
        Outcomes { rejected: self.rejected + other.rejected, answered: self.answered + other.answered }
    }
}

/// Panics if the gateway itself is at fault for an error, or if a rejection does not name its member.
pub fn assert_never_our_fault(dialect: &str, body: &Tree) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let bytes = body.to_json().into_bytes();
    for (_, profile) in FIXTURE.set.pairs().iter().filter(|(name, _)| name == dialect) {
        let plan = FIXTURE.set.plan.dialect(dialect, Some(profile)).unwrap();
        let request = match request::read(&plan.request, &bytes) {
            Ok(request) => Arc::new(request),
            Err(fault) => {
                assert_rejection(plan, &fault);
                outcomes.rejected += 1;
                continue;
            }
        };
        for backend in &FIXTURE.set.plan.gateway.backends {
            match response(plan, &request, &backend.name) {
                Ok(()) => outcomes.answered += 1,
                Err(fault) => {
                    assert_rejection(plan, &fault);
                    outcomes.rejected += 1;
                }
            }
        }
    }
    outcomes
}

/// Reads a request as the route of the gateway does.
pub fn is_accepted(dialect: &str, body: &Tree) -> Result<(), String> {
    let plan = FIXTURE.set.plan.dialect(dialect, Some("openai")).unwrap();
    request::read_tree(&plan.request, body.clone()).map(drop).map_err(|fault| fault.message)
}

/// The response of a backend to the request, or the rejection before it was sent.
fn response(dialect: &Arc<DialectPlan>, request: &Arc<TurnRequest>, backend: &str) -> Result<(), Fault> {
    let plan = &FIXTURE.set.plan;
    let backend = plan.gateway.backends.iter().find(|b| b.name == backend).unwrap();
    let tool_aliases = if let Some(address) = &backend.address {
        let template = backend.plan.request_template.as_ref().unwrap();
        let prepared = prepare(template, &address.settings, None, request, &dialect.request)?;
        Tree::parse(prepared.body.as_bytes()).unwrap();
        prepared.tool_aliases
    } else if let Some(child) = &backend.child {
        let prepared = conversation::prepare(&backend.plan, &child.settings, request, &dialect.request)?;
        let calls = conversation::preview(&prepared)?;
        assert!(calls.get("calls").and_then(Tree::as_list).is_some_and(|calls| !calls.is_empty()), "{calls}");
        prepared.tool_aliases
    } else {
        let (transcript, _) = script_step::select_transcript(backend.script.as_ref().unwrap(), request)?;
        play(dialect, request, &transcript, &ToolAliases::default());
        return Ok(());
    };
    let kind = &backend.plan.name;
    let (_, transcript) = FIXTURE.transcripts.iter().find(|(name, _)| name == kind).unwrap();
    play(dialect, request, transcript, &tool_aliases);
    Ok(())
}

fn play(dialect: &Arc<DialectPlan>, request: &Arc<TurnRequest>, transcript: &Transcript, aliases: &ToolAliases) {
    for response_mode in [ResponseMode::Stream, ResponseMode::Body] {
        let backend = FIXTURE.set.plan.backend(&transcript.backend).unwrap();
        let spec = test_turn_spec(backend, dialect, request.clone(), response_mode);
        let mut pipeline = Pipeline::new(TurnSpec { tool_aliases: aliases.clone(), now_ms: NOW_MS, ..spec });
        replay::feed(&mut pipeline, transcript);
        let body = if response_mode == ResponseMode::Body { pipeline.body().err() } else { None };
        if let Some(fault) = body.as_ref().or(pipeline.fault()) {
            let ours = matches!(fault.kind, FaultKind::Violation | FaultKind::Internal);
            assert!(!ours, "{response_mode:?}: {}", fault.message);
        }
    }
}

/// A rejection is a 400 in the client's dialect, and names the member at fault.
fn assert_rejection(dialect: &DialectPlan, fault: &Fault) {
    let Fault { kind, message, param, .. } = fault;
    assert_eq!(fault.status(), 400, "{kind:?}: {message}");
    // A body that cannot be parsed, or is nested too deeply, has no member that is at fault.
    assert!(param.is_some() || *kind == FaultKind::NotJson, "no param: {message}");
    let error = encode::error(dialect, fault).unwrap();
    let inner = error.get("error").unwrap_or_else(|| panic!("{error}"));
    let named = inner.get("param").and_then(Tree::as_str);
    // A dialect with a table of faults may have words of its own, and name the element around the member.
    if dialect.faults.is_none() {
        assert_eq!(inner.get("message").and_then(Tree::as_str), Some(&**message));
        assert_eq!(named, param.as_deref());
    }
    assert_eq!(named.is_some(), param.is_some(), "{inner}");
}
