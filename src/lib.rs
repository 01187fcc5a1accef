//! Reframe: YAML files say how a backend's events become the frames that a client expects.
//!
//! The modules, in the order of the data. Read [`pipeline`] first.

pub mod capture;
pub mod cli;
pub mod diagnostics;
pub mod domain;
pub mod engine;
pub mod mapping;
pub mod openapi;
pub mod order;
pub mod reload;
pub mod server;
pub mod telemetry;
pub mod turn;
pub mod upstream;
pub mod verify;
