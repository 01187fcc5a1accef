//! The steps of a request, and its growth: `cargo bench --bench request`. Only ratios within one run are meaningful.
//! The whole way for every backend and dialect is in whole_ways.rs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The other benches use the rest of it.
#[allow(dead_code)]
mod end_to_end;

use divan::{AllocProfiler, Bencher, black_box};
use end_to_end::PLAN;
use reframe::testing::engine::backend_request::prepare;
use reframe::testing::engine::request;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const CHAT: &str = include_str!("end_to_end/samples/chat.request.json");

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

/// From the client's body to the backend's.
#[divan::bench(args = [100, 1000])]
fn agent_history(bencher: Bencher, calls: usize) {
    let body = history(calls);
    let client = &PLAN.dialect("chat", Some("openai")).unwrap().request;
    let backend = PLAN.gateway.backends.iter().find(|b| b.name == "openai-chat").unwrap();
    let (template, address) = (backend.plan.request_template.as_ref().unwrap(), backend.address.as_ref().unwrap());
    bencher.bench_local(|| {
        let request = request::read(client, black_box(&body).as_bytes()).unwrap();
        prepare(template, &address.settings, None, &request, client).unwrap().body
    });
}

/// Reading alone: from the bytes of the client's body to the normalized request.
#[divan::bench]
fn read_chat_request(bencher: Bencher) {
    let client = &PLAN.dialect("chat", Some("openai")).unwrap().request;
    bencher.bench_local(|| request::read(client, black_box(CHAT).as_bytes()).unwrap());
}
