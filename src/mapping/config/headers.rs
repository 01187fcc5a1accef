//! `headers:` of gateway.yaml: names of the gateway's own headers.

use super::backend_request::is_token;
use crate::diagnostics::Code;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::Node;

/// Names of the gateway's own headers.
#[derive(Clone, Debug)]
pub struct HeaderNames {
    pub request_id: String,
    /// Lists the request fields that were not sent to the backend.
    pub dropped: Option<String>,
    /// Time until the response headers, in milliseconds.
    pub elapsed_ms: Option<String>,
}

impl Default for HeaderNames {
    fn default() -> Self {
        let dropped = Some("x-reframe-dropped".to_owned());
        HeaderNames { request_id: "x-request-id".to_owned(), dropped, elapsed_ms: None }
    }
}

pub fn header_names(node: &Node, cx: LoadContext) -> HeaderNames {
    let mut names = HeaderNames::default();
    let Some(fields) = FieldReader::of(node, "`headers:`", cx) else { return names };
    let name = |key: &'static str| {
        let node = fields.get(key)?;
        let text = text_of(node, cx)?;
        if !is_token(text) {
            cx.error(Code::UnsafeText, node.span, format!("`{text}` is not a valid header name"));
            return None;
        }
        Some(text.to_ascii_lowercase())
    };
    names.request_id = name("request_id").unwrap_or(names.request_id);
    names.dropped = name("dropped").or(names.dropped);
    names.elapsed_ms = name("elapsed_ms");
    fields.finish();
    names
}
