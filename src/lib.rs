//! Reframe: YAML files say how a backend's events become the frames that a client expects.
//!
//! The modules, in the order of the data. Read [`pipeline`] first.

pub mod canon;
pub mod diag;
pub mod mapping;

pub mod ingress;
pub mod upstream;

pub mod ingest;
pub mod turn;
pub mod egress;
pub mod contract;
pub mod wire;
pub mod pipeline;

pub mod reload;
pub mod trial;
pub mod serve;
pub mod observe;
pub mod cli;
