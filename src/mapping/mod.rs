//! Compiles mapping files: YAML text → tree with spans → checked plan. Reports all mistakes of a set at once, each
//! with its source span.

pub mod checked;
pub mod config;
pub mod exhausted;
pub mod grammar;
pub mod language;
pub mod lint;
pub mod load;
pub mod policy;
pub mod provenance;
pub mod source;
pub mod spec;
pub mod two_threads;

pub use crate::domain::WorkBudget;
pub use checked::CheckedSet;
pub use config::overrides::Overrides;
pub use load::{Before, LOAD_STACK_BYTES, LoadOutcome, Plan, SourceFile, load, load_after, load_with, load_within};
