//! A backend's stream of server-sent events.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reframe::testing::fuzz;

fuzz_target!(|bytes: &[u8]| fuzz::sse_reader(bytes));
