//! Ordered JSON with exact numbers: tree, parser, writer and schema validation.
//!
//! A backend's event is parsed into a [`Tree`]. A frame is built as a `Tree`, validated by a [`Schema`] without
//! conversion, and written. `serde_json::Value` is not used on that path because it rounds numbers and rejects the lone
//! surrogates that some backends send.

#![warn(missing_docs)]

mod draft;
mod equal;
mod error;
mod jsonpath_adapter;
mod limits;
mod members;
mod memory;
mod number;
mod parse;
mod pointer;
mod schema;
mod serde_value;
mod special_bytes;
mod surrogates;
mod tree;
mod write;

/// The text of a string or a key: up to 24 bytes are kept in place, so most of them need no allocation.
pub use compact_str::CompactString as Text;
pub use draft::Draft;
pub use error::{ParseError, ParseErrorKind};
pub use limits::Limits;
pub use number::{NotFinite, Num};
pub use parse::{Gap, Shape, ShapeStep};
pub use pointer::{escape_pointer_token, pointer_to_path, pointer_tokens};
pub use schema::{DocumentShape, OuterShape, Schema, SchemaError, SchemaSet, SchemaViolation, ViolationKind};
pub use surrogates::SurrogateString;
pub use tree::Tree;
pub use write::{into_text, write_str};
