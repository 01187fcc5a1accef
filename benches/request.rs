//! The cost of a request: `cargo bench --bench request`. Only ratios within one run are meaningful.
//!
//! Each sample is one request, from the bytes of the client's body to the bytes of the backend's body: parsed, checked,
//! adapted to the backend's capabilities and rendered.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use divan::{AllocProfiler, Bencher, black_box};
use reframe::testing::engine::request;
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;
use reframe::testing::upstream::build_request::prepare;
use std::sync::LazyLock;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const GATEWAY: &str = r#"
backends:
  openai-chat: { use: openai-chat, url: "http://backend.test/v1" }
  openai-responses: { use: openai-responses, url: "http://backend.test/v1" }
  anthropic-messages: { use: anthropic-messages, url: "http://backend.test/v1" }
  gemini-generate: { use: gemini-generate, url: "http://backend.test/v1" }
models: [ { match: "*", backend: openai-chat } ]
routes: [ { endpoint: POST /chat, dialect: chat, profile: openai } ]
"#;

/// The embedded set with an address for each HTTP backend.
static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let mut files: Vec<SourceFile> = embedded::files().into_iter().filter(|f| f.name != "gateway.yaml").collect();
    let name = "gateway.yaml".to_owned();
    files.push(SourceFile { shown: name.clone(), name, layer: 0, text: GATEWAY.into() });
    load(&files).plan.expect("the set loads")
});

const BACKENDS: &[&str] = &["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"];

/// Three messages and two tools.
const CHAT: &str = r#"{"model":"gpt-5.2","stream":true,"temperature":0.7,"max_completion_tokens":512,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is the weather in Paris?"},{"role":"user","content":[{"type":"text","text":"And in Rome?"}]}],"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string","description":"the city"},"unit":{"type":"string","enum":["c","f"]}},"required":["city"]}}},{"type":"function","function":{"name":"get_time","description":"The time in a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]}"#;

/// The history of an agent: this many calls, each with its result.
fn history(calls: usize) -> String {
    let call = |i| {
        format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{i}","type":"function","function":{{"name":"read","arguments":"{{\"line\":{i}}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{i}","content":"line {i}"}}"#
        )
    };
    let calls: String = (0..calls).map(call).collect();
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"Read the file."}}{calls}]}}"#)
}

fn main() {
    divan::main();
}

fn body_to_body(bencher: Bencher, backend: &str, body: &str) {
    let client = &PLAN.dialect("chat", Some("openai")).unwrap().request;
    let backend = PLAN.gateway.backends.iter().find(|b| b.name == backend).unwrap();
    let (template, address) = (backend.plan.request_template.as_ref().unwrap(), backend.address.as_ref().unwrap());
    bencher.bench_local(|| {
        let request = request::read(client, black_box(body).as_bytes()).unwrap();
        prepare(template, address, None, &request, client).unwrap().body
    });
}

#[divan::bench(args = BACKENDS)]
fn chat_request(bencher: Bencher, backend: &str) {
    body_to_body(bencher, backend, CHAT);
}

#[divan::bench(args = [100, 1000])]
fn agent_history(bencher: Bencher, calls: usize) {
    body_to_body(bencher, "openai-chat", &history(calls));
}

/// Reading alone: from the bytes of the client's body to the normalized request.
#[divan::bench]
fn read_chat_request(bencher: Bencher) {
    let client = &PLAN.dialect("chat", Some("openai")).unwrap().request;
    bencher.bench_local(|| request::read(client, black_box(CHAT).as_bytes()).unwrap());
}
