//! Tests of time limits, disconnects and reloads under load. They run one at a time, so that they do not disturb each
//! other's measurements: `cargo test --test slow -- --test-threads=1`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disconnects;
mod reload_stress;
// tests/it and tests/slow share it, and each uses only a part.
#[allow(dead_code, unused_imports)]
#[path = "../support/mod.rs"]
mod support;
