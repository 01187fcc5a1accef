//! A dialect's `stream.headers:`: the headers of a stream, with their defaults.

use crate::diagnostics::Code;
use crate::mapping::grammar::collections::Map;
use crate::mapping::grammar::notation::{Line, is_token, notation_schema};
use crate::mapping::grammar::{At, FromNode};
use crate::mapping::source::yaml::Node;

/// Headers with constant values.
#[derive(Clone, Debug)]
pub struct StreamHeaders(pub Vec<(String, String)>);

impl Default for StreamHeaders {
    fn default() -> StreamHeaders {
        let headers =
            [("cache-control", "no-cache, no-transform"), ("connection", "keep-alive"), ("x-accel-buffering", "no")];
        StreamHeaders(headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
    }
}

impl<'n> FromNode<'n> for StreamHeaders {
    fn from_node(node: &'n Node, at: At) -> Option<StreamHeaders> {
        let headers = Map::<Line>::from_node(node, at)?;
        let mut valid = Vec::new();
        for (name, value) in headers.pairs() {
            if !is_token(name) {
                at.cx.error(Code::UnsafeText, node.span, format!("`{name}` is not a valid header name"));
                return None;
            }
            valid.push((name.to_ascii_lowercase(), value.0.clone()));
        }
        Some(StreamHeaders(valid))
    }
}

notation_schema!(StreamHeaders, { "type": "object", "additionalProperties": { "type": "string" } });
