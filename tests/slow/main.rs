//! Tests of time limits, disconnects and reloads under load. They run one at a time, so that they do not disturb each
//! other's measurements: `cargo test --test slow -- --test-threads=1`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disconnects;
mod http2_client;
mod reload_memory;
mod reload_stress;
mod request_cost;
mod soak;
mod witness_cost;
// What nobody uses is reported in tests/it.
#[allow(dead_code, unused_imports)]
#[path = "../support/mod.rs"]
mod support;

/// The resident memory of the process, in bytes.
fn resident(server: &support::Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}
