//! HTTP: routes, bodies, streams. What is said in them comes from the mappings.

pub mod admin;
pub mod api_docs;
pub mod auth;
mod body;
mod deadlines;
pub mod listener;
mod models;
mod response;
mod router;
mod static_routes;
mod status;
mod turn_response;

pub use router::{Gateway, Shell};
