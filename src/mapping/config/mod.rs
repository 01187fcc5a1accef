//! Compiles YAML to plans: one module per kind of mapping file, or section of one.

pub mod admin;
pub mod backend;
pub mod backend_address;
pub mod backend_request;
pub mod capabilities;
pub mod dialect;
pub mod dialect_capture;
pub mod dialect_order;
pub mod dialect_request;
pub mod dialect_stream;
pub mod gateway;
pub mod headers;
pub mod models;
pub mod overrides;
pub mod path_template;
pub mod profile;
pub mod profile_patch;
pub mod rename_fields;
pub mod route;
pub mod schemas;
pub mod script;
pub mod static_routes;
pub mod timeouts;
pub mod transcript;
