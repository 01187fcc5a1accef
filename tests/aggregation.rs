//! Aggregation and conversion: the request decides whether the client gets one JSON body or a stream, independent of
//! what the backend sends. The tests run the real binary with a mock backend.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "aggregation/aggregator.rs"]
mod aggregator;
#[path = "aggregation/errors.rs"]
mod errors;
#[path = "aggregation/logging.rs"]
mod logging;
#[path = "aggregation/policies.rs"]
mod policies;
#[path = "aggregation/response_form.rs"]
mod response_form;
#[path = "aggregation/samples.rs"]
mod samples;
#[path = "aggregation/stream_and_json.rs"]
mod stream_and_json;

use std::sync::LazyLock;
use support::{TestDir, TestGateway};

/// The profile `openai` with a Responses backend.
fn openai() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> =
        LazyLock::new(|| TestGateway::shared("openai-responses", "openai", TestDir::empty()));
    &SHARED
}

/// The profile `codex-proxy` with a Responses backend.
fn codex_proxy() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> =
        LazyLock::new(|| TestGateway::shared("openai-responses", "codex-proxy", TestDir::empty()));
    &SHARED
}

/// The profile `openai` with a Chat backend.
fn chat_backend() -> &'static TestGateway {
    static SHARED: LazyLock<TestGateway> =
        LazyLock::new(|| TestGateway::shared("openai-chat", "openai", TestDir::empty()));
    &SHARED
}
