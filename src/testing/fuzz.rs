//! Fuzz targets: functions of bytes that must neither panic nor hang, whatever the bytes are. The fuzzers in `fuzz/` and
//! the properties in `tests/it/fuzz_targets.rs` call the same ones.

use crate::diagnostics::{Findings, Sources, Span, render_all};
use crate::domain::variables;
use crate::domain::{StreamEnd, Tree, TurnRequest, WorkBudget};
use crate::engine::pipeline::{Pipeline, ResponseMode};
use crate::engine::render::{self, Scope};
use crate::engine::selector::Cursor;
use crate::engine::{backend_request, encode, request};
use crate::mapping::config::backend::Framing;
use crate::mapping::language::expression::ExpressionPoolBuilder;
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::{Plan, SourceFile, load};
use crate::order::Automaton;
use crate::reload::embedded;
use crate::upstream::decode::Decoder;
use crate::verify::test_turn_spec;
use std::sync::{Arc, LazyLock};

/// A name, and the function.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("loader", loader),
    ("expression", expression),
    ("order", order),
    ("selector", selector),
    ("sse_reader", sse_reader),
    ("json_parser", json_parser),
    ("client_body", client_body),
    ("raw_event", raw_event),
];

/// The kinds of files of a set.
const FILES: &[&str] = &[
    "gateway.yaml",
    "shared.yaml",
    "dialects/fuzz.yaml",
    "backends/fuzz.yaml",
    "profiles/fuzz.yaml",
    "scripts/fuzz.yaml",
    "dialects/fuzz.test.yaml",
    "transcripts/fuzz.jsonl",
    "schemas/fuzz/body.json",
];

/// An address for every shipped backend.
const BACKENDS: &str = r#"
backends:
  demo: { use: replay, script: demo }
  openai-chat: { use: openai-chat, url: "http://backend.test/v1" }
  openai-responses: { use: openai-responses, url: "http://backend.test/v1" }
  anthropic-messages: { use: anthropic-messages, url: "http://backend.test/v1" }
  gemini-generate: { use: gemini-generate, url: "http://backend.test/v1" }
"#;

/// The shipped set.
static PLAN: LazyLock<Option<Plan>> = LazyLock::new(|| {
    let mut files = embedded::files();
    for file in files.iter_mut().filter(|file| file.name == "gateway.yaml") {
        file.text = file.text.replace("\nbackends:\n  demo: { use: replay, script: demo }\n", BACKENDS).into();
    }
    load(&files).plan
});

/// The first byte selects the kind of the file, the rest is its text. Alone, a file loads with errors about what is
/// missing, which are rendered too.
pub fn loader(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    let name = FILES[usize::from(*kind) % FILES.len()].to_owned();
    let text = String::from_utf8_lossy(text).into();
    let loaded = load(&[SourceFile { shown: name.clone(), name, layer: 0, text }]);
    render_all(&loaded.diagnostics, &loaded.sources, false);
}

/// An expression, checked, compiled and evaluated.
pub fn expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    with_context(&text, |span, cx| {
        let pool = ExpressionPoolBuilder::new(Tables::default());
        let scope = VariableScope::new("a fuzz target", [variables::REQUEST]);
        let added = pool.add(&text, span, &scope, cx);
        if let Some((expression, _)) = added {
            let pool = pool.build();
            let request = TurnRequest::minimal("m", true);
            let _ = render::is_true(&expression, &Scope::request(&request), &pool);
        }
    });
}

pub fn order(bytes: &[u8]) {
    let _ = Automaton::parse(&String::from_utf8_lossy(bytes));
}

/// A selector up to the first line break; the rest is the document.
pub fn selector(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (text, document) = (String::from_utf8_lossy(&bytes[..at]), Tree::parse(&bytes[at..]).unwrap_or_default());
    with_context(&text, |span, cx| {
        if let Some(selector) = Selector::parse(&text, span, cx) {
            let cursor = Cursor::new(&document);
            selector.one(&cursor);
            selector.many(&cursor).for_each(drop);
            selector.param(&cursor);
        }
    });
}

/// A stream, in chunks as large as its first byte: they do not change its events.
pub fn sse_reader(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let Some(backend) = PLAN.as_ref().and_then(|plan| plan.backend("openai-chat")) else { return };
    let events = |chunk: usize| {
        let (mut decoder, mut events) = (Decoder::new(backend, Framing::Sse, 1 << 16), Vec::new());
        let pushed = bytes.chunks(chunk).try_for_each(|chunk| decoder.push(chunk, &mut events));
        pushed.is_ok().then(|| {
            decoder.finish(&mut events);
            events
        })
    };
    assert_eq!(events(usize::from(*size).max(1)), events(bytes.len().max(1)));
}

/// What was parsed is written as JSON of the same value.
pub fn json_parser(bytes: &[u8]) {
    if let Ok(tree) = Tree::parse(bytes) {
        assert_eq!(Tree::parse(tree.to_json().as_bytes()), Ok(tree));
    }
}

/// A client's body in every dialect, with every backend.
pub fn client_body(bytes: &[u8]) {
    let Some(plan) = &*PLAN else { return };
    for dialect in plan.dialects() {
        let request = match request::read(&dialect.request, bytes) {
            Ok(request) => request,
            Err(fault) => {
                assert!(fault.status() < 500, "{}", fault.message);
                assert!(encode::error(dialect, &fault).is_ok());
                continue;
            }
        };
        for backend in &plan.gateway.backends {
            if let (Some(template), Some(address)) = (&backend.plan.request_template, &backend.address) {
                let prepared = backend_request::prepare(template, &address.settings, None, &request, &dialect.request);
                assert!(prepared.is_ok() || prepared.is_err_and(|fault| fault.status() < 500));
            }
        }
    }
}

/// One event of every backend on each line, as a stream and as a body, in every dialect.
pub fn raw_event(bytes: &[u8]) {
    let Some(plan) = &*PLAN else { return };
    let events: Vec<Tree> = bytes.split(|byte| *byte == b'\n').filter_map(|line| Tree::parse(line).ok()).collect();
    for (dialect, backend) in plan.dialects().flat_map(|dialect| plan.backends.iter().map(move |b| (dialect, b))) {
        for response_mode in [ResponseMode::Stream, ResponseMode::Body] {
            let request = Arc::new(TurnRequest::minimal("m", response_mode == ResponseMode::Stream));
            let mut pipeline = Pipeline::new(test_turn_spec(backend, dialect, request, response_mode));
            pipeline.begin();
            for event in &events {
                pipeline.push(event, 0);
            }
            pipeline.finish(StreamEnd::Eof, 0);
            let _ = pipeline.body();
        }
    }
}

/// Calls with a context in which `text` is a whole file. Renders what was reported.
pub(crate) fn with_context(text: &str, check: impl FnOnce(Span, LoadContext)) {
    let mut sources = Sources::default();
    let file = sources.add("fuzz", "fuzz", Arc::from(text));
    let findings = Findings::default();
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    check(
        Span { file, start: 0, end },
        LoadContext {
            sources: &sources,
            findings: &findings,
            budget: &WorkBudget::default(),
            selectors: Default::default(),
        },
    );
    render_all(&findings.into_sorted(), &sources, false);
}
