//! HTTP: routes, bodies, streams. What is said in them comes from the mappings.

pub mod admin;
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
mod told;

pub use endpoint::{Gateway, Shell};
