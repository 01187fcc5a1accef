//! Policies: where they are set, which setting takes precedence, and the compiled dialect for each kind of client.

pub mod environment;
pub mod owners;
pub mod precedence;
pub mod resolve;
pub mod test_policies;
pub mod variants;
