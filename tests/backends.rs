//! Backends over HTTP, as a client meets them: the real binary, and a scripted backend behind it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "backends/matrix.rs"]
mod matrix;
#[path = "backends/models.rs"]
mod models;
#[path = "backends/rig.rs"]
mod rig;
#[path = "backends/safety.rs"]
mod safety;
#[path = "backends/spoken.rs"]
mod spoken;
#[path = "backends/told.rs"]
mod told;
#[path = "backends/transport.rs"]
mod transport;
