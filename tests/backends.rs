//! HTTP backends as seen by a client: the real binary with a mock backend.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "backends/backend_streams.rs"]
mod backend_streams;
#[path = "backends/gateway_fixture.rs"]
mod gateway_fixture;
#[path = "backends/matrix.rs"]
mod matrix;
#[path = "backends/models.rs"]
mod models;
#[path = "backends/received.rs"]
mod received;
#[path = "backends/safety.rs"]
mod safety;
#[path = "backends/transport.rs"]
mod transport;
