//! The order of moments in a stream: the automaton of an `order:` expression, the check of a live stream, and the
//! static verification that no turn can violate the order.

pub mod automaton;
pub mod proof;
pub mod turn_model;

pub use automaton::{Automaton, OrderCheck, OrderError, Orders};
