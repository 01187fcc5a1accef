//! HTTP: routes, bodies, streams. What is said in them comes from the mappings.

mod answer;
pub mod auth;
mod body;
mod clock;
mod endpoint;
pub mod listen;
mod models;
pub mod operations;
mod pages;
mod reply;

pub use endpoint::{Gateway, Shell};
