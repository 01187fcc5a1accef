//! The cost of a frame: `cargo bench`. Only ratios within one run are meaningful.
//!
//! Each sample is one more text delta in an open turn, from the event (or the backend's JSON, or its bytes) to the
//! bytes sent to the client, including validation of schema and order.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use divan::{AllocProfiler, Bencher, black_box};
use reframe::testing::domain::{Delta, Event, Tree};
use reframe::testing::engine::pipeline::{Pipeline, RenderMode, ResponseMode, TurnSpec};
use reframe::testing::engine::request;
use reframe::testing::mapping::config::gateway::Validation;
use reframe::testing::mapping::{Plan, load};
use reframe::testing::reload::embedded;
use reframe::testing::verify::test_turn_spec;
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

fn open_pipeline(dialect: &str, render_mode: RenderMode, validation: Validation) -> Pipeline {
    let dialect = PLAN.dialect(dialect, Some("openai")).unwrap().clone();
    let body = match dialect.name.as_str() {
        "chat" => r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
        _ => r#"{"model":"m","stream":true,"input":"hi"}"#,
    };
    let request = request::read(&dialect.request, body.as_bytes()).unwrap();
    let spec = test_turn_spec(PLAN.backend("openai-chat").unwrap(), &dialect, Arc::new(request), ResponseMode::Stream);
    let mut pipeline = Pipeline::new(TurnSpec { validation, ..spec }).with_byte_output().with_render_mode(render_mode);
    pipeline.push(&Tree::parse(CHUNK.as_bytes()).unwrap(), 0);
    pipeline
}

fn text_delta() -> Event {
    Event::Text { choice: 0, item: None, part: None, delta: Delta::Append(" word".to_owned()) }
}

fn from_event(bencher: Bencher, dialect: &str, render_mode: RenderMode, validation: Validation) {
    let mut pipeline = open_pipeline(dialect, render_mode, validation);
    let mut out = Vec::with_capacity(1 << 16);
    bencher.with_inputs(text_delta).bench_local_values(|event| {
        pipeline.push_event(event, 1);
        out.clear();
        pipeline.drain(&mut out);
        black_box(out.len())
    });
}

#[divan::bench(args = DIALECTS)]
fn event_cached_strict(bencher: Bencher, dialect: &str) {
    from_event(bencher, dialect, RenderMode::Cached, Validation::Strict);
}

#[divan::bench(args = DIALECTS)]
fn event_cached_unvalidated(bencher: Bencher, dialect: &str) {
    from_event(bencher, dialect, RenderMode::Cached, Validation::Off);
}

#[divan::bench(args = DIALECTS)]
fn event_interpreted_strict(bencher: Bencher, dialect: &str) {
    from_event(bencher, dialect, RenderMode::Interpreted, Validation::Strict);
}

#[divan::bench(args = DIALECTS)]
fn json_cached_strict(bencher: Bencher, dialect: &str) {
    let mut pipeline = open_pipeline(dialect, RenderMode::Cached, Validation::Strict);
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
fn bytes_cached_strict(bencher: Bencher, dialect: &str) {
    let mut pipeline = open_pipeline(dialect, RenderMode::Cached, Validation::Strict);
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
