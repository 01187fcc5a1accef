//! The HTTP request to a backend, as it is sent and as it is logged.

use super::client::BackendClient;
use super::http_client::Exchange;
use crate::domain::{Fault, FaultKind, Redactor};
use http::{HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;
use tracing::Level;

pub struct OutgoingRequest<'b> {
    pub method: &'static str,
    /// The URL of the backend, to which the path is appended.
    pub base_url: &'b str,
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

/// Maximum number of bytes of a body in the log.
const MAX_LOGGED_BODY: usize = 16 * 1024;

impl OutgoingRequest<'_> {
    pub fn send(self, client: &BackendClient) -> Result<Exchange, Fault> {
        let OutgoingRequest { method, path, headers, body, .. } = self;
        let path = client.base_url.request_path(&path).ok_or_else(|| {
            Fault::new(FaultKind::Unreachable, "the backend did not respond: the path of the request is not valid")
        })?;
        let mut request = Request::new(body.into());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
        *request.uri_mut() = path.into();
        *request.headers_mut() = headers;
        Ok(client.http.send(request))
    }

    /// Logs the request at the level `debug`, and its body at `trace`. The API key is redacted.
    pub fn log(&self, backend: &str, dropped: &[String], redactor: Option<&Redactor>) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let redact = |text: &str| redactor.map_or_else(|| text.to_owned(), |redactor| redactor.redact(text));
        let url = format!("{}{}", self.base_url, self.path);
        let (method, url, headers) =
            (self.method, redact(&percent_decode_str(&url).decode_utf8_lossy()), self.shown_headers());
        let (body_bytes, dropped) = (self.body.len(), dropped.join(", "));
        tracing::debug!(backend, method, url, headers, body_bytes, dropped, "request to the backend");
        if tracing::enabled!(Level::TRACE) {
            let start = String::from_utf8_lossy(&self.body.as_bytes()[..self.body.len().min(MAX_LOGGED_BODY)]);
            tracing::trace!(backend, body = redact(&start), "body of the request to the backend");
        }
    }

    fn shown_headers(&self) -> String {
        let shown = self.headers.iter().map(|(name, value)| match value.is_sensitive() {
            true => format!("{name}: [redacted]"),
            false => format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())),
        });
        shown.collect::<Vec<_>>().join("; ")
    }
}
