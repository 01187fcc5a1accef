//! Reframe: YAML files say how a backend's events become the frames that a client expects.
//!
//! The modules, in the order of the data. Read [`pipeline`] first.

pub mod canon;
pub mod diag;
pub mod mapping;

pub mod ingress;
pub mod upstream;

pub mod contract;
pub mod egress;
pub mod fill;
pub mod ingest;
pub mod openapi;
pub mod pipeline;
pub mod turn;
pub mod wire;

pub mod cli;
pub mod observe;
pub mod reload;
pub mod serve;
pub mod trial;
