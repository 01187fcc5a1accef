//! The acceptance criteria of mission 003: what a client asked for decides whether it gets one JSON body or a stream,
//! whatever the backend sends. The real binary, with a scripted backend behind it.

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
use support::{Behind, Disk};

/// The gateway's own profile, before a backend that speaks Responses.
fn openai() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| Behind::shared("openai-responses", "openai", Disk::empty()));
    &SHARED
}

/// The mission's profile.
fn codex_proxy() -> &'static Behind {
    static SHARED: LazyLock<Behind> =
        LazyLock::new(|| Behind::shared("openai-responses", "codex-proxy", Disk::empty()));
    &SHARED
}

/// Before a backend that speaks Chat.
fn chat_backend() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| Behind::shared("openai-chat", "openai", Disk::empty()));
    &SHARED
}
