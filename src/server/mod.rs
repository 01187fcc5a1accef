//! The HTTP server: connections, routing, authentication and responses. Their content comes from the mappings.

mod acceptor;
pub mod admin;
mod api_docs;
pub mod auth;
mod body;
mod client_socket;
mod connection;
mod deadlines;
mod keepalive;
mod limits;
pub mod listener;
mod models;
mod origin;
mod report_once;
mod request_head;
mod response;
mod router;
mod start_turn;
mod static_routes;
mod status;
mod turn_response;
mod watched_body;
mod write_stall;

pub use router::{AppState, Gateway};
