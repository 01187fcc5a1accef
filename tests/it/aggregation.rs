//! Aggregation and conversion: the request decides whether the client gets one JSON body or a stream, independent of
//! what the backend sends. The tests run the real binary with a mock backend.

mod aggregator;
mod errors;
mod logging;
mod policies;
mod response_form;
mod samples;
mod stream_and_json;

use crate::support::{TestDir, TestGateway};
use std::sync::LazyLock;

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
