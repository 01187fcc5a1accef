//! Plan + raw events → frames. Run time only; pure: no IO, no clock, no randomness.

pub mod backend_request;
mod body;
pub mod decode;
pub mod emission_budget;
pub mod encode;
pub mod fields;
pub mod frame_validation;
pub mod frames;
pub mod inline;
pub mod lines;
pub mod observer;
pub mod param;
pub mod pipeline;
pub mod render;
pub mod request;
mod request_items;
pub mod response_head;
pub mod rules;
pub mod script_step;
pub mod selector;
mod signals;
pub mod sse;
pub mod sse_parser;
pub mod static_route;
mod unknown_values;
pub mod unread;
pub mod variant;
