//! The acceptance criteria of mission 003: what a client asked for decides whether it gets one JSON body or a stream,
//! whatever the backend sends. The real binary, with a scripted backend behind it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "ac_003/bridges.rs"]
mod bridges;
#[path = "ac_003/converter.rs"]
mod converter;
#[path = "ac_003/errors.rs"]
mod errors;
#[path = "ac_003/handler.rs"]
mod handler;
#[path = "ac_003/logging.rs"]
mod logging;
#[path = "ac_003/policies.rs"]
mod policies;
#[path = "ac_003/samples.rs"]
mod samples;

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
