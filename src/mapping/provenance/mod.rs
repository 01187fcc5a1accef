//! Traces a value or a frame back to the YAML line and the policies that produced it, for diagnostics, `explain` and
//! tests.

pub mod origins;
pub mod policies;
pub mod values;
