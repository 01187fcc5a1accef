//! What a frame costs: `cargo bench`. Only ratios within one run mean anything.
//!
//! A turn is opened, and then told one more piece of text, as often as it takes: each sample is one piece, from the event
//! (or from the backend's JSON, or from its bytes) to the bytes that leave, checked by its schema and its order.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use divan::{AllocProfiler, Bencher, black_box};
use reframe::domain::{Event, Piece, Tree};
use reframe::engine::pipeline::{Answer, Filling, Order, Pipeline};
use reframe::engine::request;
use reframe::mapping::config::gateway::Validation;
use reframe::mapping::{Plan, load};
use reframe::reload::embedded;
use reframe::turn::Ids;
use reframe_json::Limits;
use std::sync::{Arc, LazyLock};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

static PLAN: LazyLock<Plan> = LazyLock::new(|| load(&embedded::files()).plan.expect("the embedded set loads"));

const CHUNK: &str = r#"{"id":"chatcmpl-8x2kQ","object":"chat.completion.chunk","created":1767225600,"model":"gpt-5.2","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}"#;
const DIALECTS: &[&str] = &["chat", "responses"];

fn main() {
    divan::main();
}

fn opened(dialect: &str, filling: Filling, validation: Validation) -> Pipeline {
    let dialect = PLAN.dialect(dialect, Some("openai")).unwrap().clone();
    let body = match dialect.name.as_str() {
        "chat" => r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
        _ => r#"{"model":"m","stream":true,"input":"hi"}"#,
    };
    let request = request::read(&dialect.request, body.as_bytes()).unwrap();
    let mut pipeline = Pipeline::new(Order {
        backend: PLAN.backend("openai-chat").unwrap().clone(),
        dialect,
        request: Arc::new(request),
        validation,
        answer: Answer::Stream,
        masks: Default::default(),
        hidden: None,
        ids: Ids::Seeded(7),
        now_ms: 0,
    })
    .writing()
    .filling(filling);
    pipeline.push(&Tree::parse(CHUNK.as_bytes()).unwrap(), 0);
    pipeline
}

fn piece() -> Event {
    Event::Text { choice: 0, item: None, part: None, piece: Piece::Delta(" word".to_owned()) }
}

fn from_event(bencher: Bencher, dialect: &str, filling: Filling, validation: Validation) {
    let mut pipeline = opened(dialect, filling, validation);
    let mut out = Vec::with_capacity(1 << 16);
    bencher.with_inputs(piece).bench_local_values(|event| {
        pipeline.hear(event, 1);
        out.clear();
        pipeline.drain(&mut out);
        black_box(out.len())
    });
}

#[divan::bench(args = DIALECTS)]
fn event_patched_strict(bencher: Bencher, dialect: &str) {
    from_event(bencher, dialect, Filling::Patched, Validation::Strict);
}

#[divan::bench(args = DIALECTS)]
fn event_patched_unchecked(bencher: Bencher, dialect: &str) {
    from_event(bencher, dialect, Filling::Patched, Validation::Off);
}

#[divan::bench(args = DIALECTS)]
fn event_interpreted_strict(bencher: Bencher, dialect: &str) {
    from_event(bencher, dialect, Filling::Interpreted, Validation::Strict);
}

#[divan::bench(args = DIALECTS)]
fn json_patched_strict(bencher: Bencher, dialect: &str) {
    let mut pipeline = opened(dialect, Filling::Patched, Validation::Strict);
    let raw = Tree::parse(CHUNK.as_bytes()).unwrap();
    let mut out = Vec::with_capacity(1 << 16);
    bencher.bench_local(|| {
        pipeline.push(black_box(&raw), 1);
        out.clear();
        pipeline.drain(&mut out);
        black_box(out.len())
    });
}

#[divan::bench(args = DIALECTS)]
fn bytes_patched_strict(bencher: Bencher, dialect: &str) {
    let mut pipeline = opened(dialect, Filling::Patched, Validation::Strict);
    let mut out = Vec::with_capacity(1 << 16);
    bencher.bench_local(|| {
        let raw = Tree::parse_with(black_box(CHUNK.as_bytes()), &Limits::default()).unwrap();
        pipeline.push(&raw, 1);
        out.clear();
        pipeline.drain(&mut out);
        black_box(out.len())
    });
}

#[divan::bench]
fn parse_a_chunk() -> Tree {
    Tree::parse(black_box(CHUNK.as_bytes())).unwrap()
}
