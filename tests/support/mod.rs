//! What the tests over HTTP share: the real binary as a guarded process, folders to serve from, and a plain client.
//!
//! Nothing here knows the inside of the gateway: the client is written on `std::net`, so that what a test sees is what
//! is on the wire, piece by piece.

// Each test file is a program of its own and uses its own part of this one.
#![allow(dead_code, unused_imports)]

pub mod admin_client;
pub mod backend;
pub mod backend_events;
pub mod client;
pub mod gateway_with_backend;
pub mod server;
pub mod small_set;
pub mod sse;
pub mod temp_sets;

pub use admin_client::Operator;
pub use backend::{Answer, Backend, Delimited, Refusing, Seen, Step};
pub use client::{Chat, Client, Frame, Piece, Reply, Request, Streaming, chat};
pub use gateway_with_backend::{Behind, asking, holds};
pub use server::{Exit, Launch, Server, demo, serve, serve_with};
pub use sse::{Listening, Told};
pub use temp_sets::{Disk, edited, repo};

use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Nothing in these tests takes this long; what does is lost.
pub const FAR_TOO_LONG: Duration = Duration::from_secs(10);

/// Prints what was measured. A busy machine is slow, so only ten times the limit is a failure.
pub fn within(what: &str, took: Duration, limit: Duration) {
    println!("{what}: {took:.1?} (limit {limit:?})");
    assert!(took < limit * 10, "{what}: {took:?}, ten times the limit of {limit:?}");
}

/// Tries until it holds.
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(begun.elapsed() < FAR_TOO_LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A chunk or body with its id and time replaced, after both were looked at.
pub fn normal(mut value: Value) -> Value {
    let id = value["id"].as_str().unwrap_or_default();
    assert!(id.strip_prefix("chatcmpl-").is_some_and(|rest| rest.len() >= 16), "a bad id: {value}");
    assert!(value["created"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "a bad time: {value}");
    (value["id"], value["created"]) = (json!("ID"), json!(0));
    value
}

/// The chunks of a stream, normalised; id and time are the same in all of them, and `[DONE]` is the end.
pub fn chunks(frames: &[Frame]) -> Vec<Value> {
    let (done, chunks) = frames.split_last().unwrap();
    assert_eq!(done.data, "[DONE]", "the stream did not end as it should");
    let chunks: Vec<Value> = chunks.iter().map(Frame::json).collect();
    for chunk in &chunks {
        assert_eq!((&chunk["id"], &chunk["created"]), (&chunks[0]["id"], &chunks[0]["created"]));
    }
    chunks.into_iter().map(normal).collect()
}

pub const GREETING: &str = "Hello! I am a recorded turn, played back through your mapping. Change one line of it, and the next answer differs.";

/// The chunks of the recorded greeting: who speaks, word by word, why it stopped.
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

/// As a model sends them: each word with the space before it.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().filter(|(at, c)| *at == 0 || *c == ' ').map(|(at, _)| at);
    let ends = text.char_indices().filter(|(at, c)| *at > 0 && *c == ' ').map(|(at, _)| at).chain([text.len()]);
    starts.zip(ends).map(|(from, to)| &text[from..to])
}
