//! May this frame leave? Its schema, and its place in the order of the stream.

pub mod order;

pub use order::{Automaton, OrderCheck, OrderError, Orders};
