//! HTTP: routes, bodies, streams. What is said in them comes from the mappings.

mod answer;
mod body;
mod endpoint;
pub mod listen;
mod pages;
mod reply;

pub use endpoint::Gateway;
