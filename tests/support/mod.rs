//! Shared by the tests over HTTP: the real binary as a guarded process, temporary folders to serve from, and a client.
//!
//! Nothing here depends on the gateway's internals: the client is written on `std::net`, so a test sees the bytes on
//! the wire, chunk by chunk.

pub mod admin_client;
pub mod backend;
pub mod backend_events;
pub mod client;
pub mod docs;
pub mod gateway_with_backend;
pub mod parallel;
pub mod replay;
pub mod server;
pub mod small_set;
pub mod sse;
pub mod suites;
pub mod temp_sets;
pub mod timing;

pub use admin_client::AdminClient;
pub use backend::{Gate, MockBackend, MockResponse, RecordedRequest, RefusingPort};
pub use client::{ChatRequest, Client, Frame, Reply, Request, ResponseStream, chat};
pub use gateway_with_backend::{TestGateway, assert_contains, dialect_request};
pub use parallel::in_parallel;
pub use server::{Exit, Launch, Server, demo, serve, serve_with};
pub use sse::SseMessage;
pub use temp_sets::{TestDir, edited, repo};
pub use timing::{TIMEOUT, assert_within, eventually, ms};

use serde_json::{Value, json};

/// Checks the id and time of a chunk or body and replaces both by fixed values.
pub fn normalize(mut value: Value) -> Value {
    let id = value["id"].as_str().unwrap_or_default();
    assert!(id.strip_prefix("chatcmpl-").is_some_and(|rest| rest.len() >= 16), "a bad id: {value}");
    assert!(value["created"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "a bad time: {value}");
    (value["id"], value["created"]) = (json!("ID"), json!(0));
    value
}

/// The normalised chunks of a stream. Checks that all have the same id and time, and that `[DONE]` is last.
pub fn chunks(frames: &[Frame]) -> Vec<Value> {
    let (done, chunks) = frames.split_last().unwrap();
    assert_eq!(done.data, "[DONE]", "the stream did not end as it should");
    let chunks: Vec<Value> = chunks.iter().map(Frame::json).collect();
    for chunk in &chunks {
        assert_eq!((&chunk["id"], &chunk["created"]), (&chunks[0]["id"], &chunks[0]["created"]));
    }
    chunks.into_iter().map(normalize).collect()
}

pub const GREETING: &str = "Hello! I am a recorded turn, played back through your mapping. Change one line of it, and the next answer differs.";

/// The chunks of the recorded greeting: the role, one per word, the finish reason.
pub fn greeting_chunks() -> Vec<Value> {
    let mut deltas = vec![(json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null)];
    deltas.extend(words(GREETING).map(|word| (json!({ "content": word }), Value::Null)));
    deltas.push((json!({}), json!("stop")));
    deltas.into_iter().map(|(delta, finish)| chunk(0, delta, finish)).collect()
}

pub fn chunk(index: usize, delta: Value, finish: Value) -> Value {
    json!({
        "id": "ID",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "demo",
        "system_fingerprint": null,
        "choices": [{ "index": index, "delta": delta, "logprobs": null, "finish_reason": finish }],
    })
}

/// Splits a text as models do: each word with the space before it.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().filter(|(at, c)| *at == 0 || *c == ' ').map(|(at, _)| at);
    let ends = text.char_indices().filter(|(at, c)| *at > 0 && *c == ' ').map(|(at, _)| at).chain([text.len()]);
    starts.zip(ends).map(|(from, to)| &text[from..to])
}
