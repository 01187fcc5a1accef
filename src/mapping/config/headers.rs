//! `headers:` of gateway.yaml: names of the gateway's own headers.

use crate::mapping::grammar::notation::HeaderName;
use crate::mapping::grammar::section;

section! {
    /// The names of the gateway's own headers.
    #[subject = "`headers:`"]
    #[title = "headers"]
    pub struct HeaderNames: Default {
        /// The id of the request.
        request_id: HeaderName = HeaderName("x-request-id".to_owned()),
        /// The request fields that did not reach the backend.
        dropped: HeaderName = HeaderName("x-reframe-dropped".to_owned()),
        /// The time until the response headers, in milliseconds. Default: not sent.
        elapsed_ms: Option<HeaderName>,
    }
}
