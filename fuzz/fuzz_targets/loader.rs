//! One file of a mapping set.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reframe::testing::fuzz;

fuzz_target!(|bytes: &[u8]| fuzz::loader(bytes));
