//! A client's request, in every dialect and with every backend.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reframe::testing::fuzz;

fuzz_target!(|bytes: &[u8]| fuzz::client_body(bytes));
