//! HTTP backends as seen by a client: the real binary with a mock backend.

mod backend_streams;
mod gateway_fixture;
mod matrix;
mod models;
mod received;
mod safety;
mod transport;
