//! From a value or a frame back to the YAML line and the policies behind it, for diagnostics, `explain` and tests.

pub mod policies;
pub mod values;
