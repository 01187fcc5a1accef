//! Policies: who sets them, which setting wins, and the compiled dialect for each client.

pub mod environment;
pub mod owners;
pub mod precedence;
pub mod resolve;
pub mod variants;
