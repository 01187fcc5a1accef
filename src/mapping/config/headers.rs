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
        /// What the headers with the rate limits of the client begin with, such as `x-ratelimit`. Default: not sent.
        rate_limit: Option<HeaderName>,
        /// What the headers about the limit of turns in flight begin with, such as `x-turns`: `x-turns-before`, `x-turns-after`
        /// (with this one, if it was accepted) and `x-turns-limit`. Default: not sent.
        streams: Option<HeaderName>,
        /// The time until the response headers, in milliseconds. Default: not sent.
        elapsed_ms: Option<HeaderName>,
    }
}
