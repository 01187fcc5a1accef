//! YAML text → spanned tree → checked model → plan. Everything that is wrong is said at once, with its place.

pub mod asking;
pub mod backend;
mod check;
mod condition;
pub mod dialect;
pub mod expr;
pub mod fields;
mod files;
pub mod gateway;
pub mod load;
pub mod loss;
pub mod manners;
pub mod model;
pub mod order;
pub mod overrides;
pub mod pace;
pub mod patch;
pub mod policies;
pub mod reach;
pub mod read;
pub mod request;
pub mod rules;
mod schemas;
pub mod script;
pub mod select;
pub mod skeleton;
mod steady;
mod syntax;
pub mod table;
pub mod template;
mod tokens;
pub mod transcript;
pub mod types;
pub mod yaml;

pub use load::{FileText, Loaded, Plan, load, load_after};
pub use overrides::Overrides;
