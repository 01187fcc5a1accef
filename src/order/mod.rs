//! May this frame leave? Its schema, and its place in the order of the stream; and what a turn can tell at all.

pub mod automaton;
pub mod proof;
pub mod turn_model;

pub use automaton::{Automaton, OrderCheck, OrderError, Orders};
