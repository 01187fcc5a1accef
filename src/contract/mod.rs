//! May this frame leave? Its schema, and its place in the order of the stream; and what a turn can tell at all.

pub mod life;
pub mod model;
pub mod order;

pub use order::{Automaton, OrderCheck, OrderError, Orders};
