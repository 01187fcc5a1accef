//! The frame tree: ordered JSON with exact numbers, its parser, its bytes and its validator.
//!
//! A backend's event is parsed into a [`Tree`], a frame is built as one, checked by a [`Schema`]
//! as it stands and then written. Nothing on that way goes through `serde_json::Value`, which
//! would round numbers and refuse the halves of characters that some backends send.

mod equal;
mod error;
mod limits;
mod members;
mod number;
mod parse;
mod query;
mod schema;
mod serde_value;
mod surrogates;
mod tree;
mod write;

pub use error::ParseError;
pub use limits::Limits;
pub use number::{NotFinite, Num};
pub use schema::{Breach, Schema, SchemaError, SchemaSet};
pub use surrogates::Torn;
pub use tree::Tree;
pub use write::write_str;
