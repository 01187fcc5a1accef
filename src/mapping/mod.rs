//! YAML text → spanned tree → checked model → plan. Everything that is wrong is said at once, with its place.

pub mod config;
pub mod language;
pub mod lint;
pub mod load;
pub mod policy;
pub mod provenance;
pub mod source;
pub mod spec;

pub use config::overrides::Overrides;
pub use load::{FileText, Loaded, Plan, load, load_after};
pub use policy::environment::Environment;
