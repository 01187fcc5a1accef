//! The HTTP request to a backend, as it is sent and as it is logged.

use crate::domain::Redactor;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use reqwest::{Client, Method, Response};
use std::future::Future;
use tracing::Level;

pub struct OutgoingRequest {
    pub method: &'static str,
    pub url: String,
    pub headers: HeaderMap,
    pub body: String,
}

/// Maximum number of bytes of a body in the log.
const MAX_LOGGED_BODY: usize = 16 * 1024;

impl OutgoingRequest {
    pub fn send(self, client: &Client) -> impl Future<Output = reqwest::Result<Response>> + Send + 'static {
        let OutgoingRequest { method, url, headers, body } = self;
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
        let client = client.clone();
        // Without the builder, which would insert each header once more.
        let request = client.request(method, url).build().map(|mut request| {
            // Of a URL with credentials.
            for (name, value) in std::mem::replace(request.headers_mut(), headers) {
                if let Some(name) = name {
                    request.headers_mut().entry(name).or_insert(value);
                }
            }
            *request.body_mut() = Some(body.into());
            request
        });
        async move { client.execute(request?).await }
    }

    /// Logs the request at the level `debug`, and its body at `trace`. The API key is redacted.
    pub fn log(&self, backend: &str, dropped: &[String], redactor: Option<&Redactor>) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let redact = |text: &str| redactor.map_or_else(|| text.to_owned(), |redactor| redactor.redact(text));
        let (method, url, headers) =
            (self.method, redact(&percent_decode_str(&self.url).decode_utf8_lossy()), self.shown_headers());
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
