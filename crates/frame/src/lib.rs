//! The frame tree: ordered JSON with exact numbers, its parser, its bytes and its validator.
//!
//! A backend's event is parsed into a [`Tree`], a frame is built as one, checked by a [`Schema`]
//! as it stands and then written. Nothing on that way goes through `serde_json::Value`, which
//! would round numbers and refuse the halves of characters that some backends send.

mod equal;
mod error;
mod limits;
mod members;
mod num;
mod parse;
mod query;
mod schema;
mod torn;
mod tree;
mod value;
mod write;

pub use error::ParseError;
pub use limits::Limits;
pub use num::{NotFinite, Num};
pub use schema::{Breach, Schema, SchemaError, SchemaSet};
pub use torn::Torn;
pub use tree::Tree;
pub use write::write_str;
