//! The integration tests: one binary with a module per subject. Timing tests are in tests/slow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admin;
mod aggregation;
mod backends;
mod client_limits;
mod commands;
mod decoder_splits;
mod diagnostics;
mod empty_success;
mod examples;
mod finished_turns;
mod fuzz_targets;
mod golden;
mod http;
mod language;
mod laws;
mod malformed_extras;
mod mapping_schemas;
mod openai_schemas;
mod openapi;
mod policies;
mod precedence;
mod refused_uploads;
mod reload;
mod reload_refusals;
mod request_limits;
mod requests;
mod responses_v2;
mod schema_violations;
mod scripted_backend;
mod shipped_mappings;
#[path = "../support/mod.rs"]
mod support;
mod test_watch;
mod tidy;
mod tool_aliases;
mod turn_memory;
mod validate;
mod work_budget;
