//! A JSON text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reframe::testing::fuzz;

fuzz_target!(|bytes: &[u8]| fuzz::json_parser(bytes));
