//! Responses without a turn: JSON bodies and error envelopes.

use crate::domain::{Fault, FaultKind, Tree};
use crate::engine::encode;
use crate::engine::fault_report;
use crate::engine::response_head::{self, HeadContext};
use crate::mapping::config::dialect::DialectPlan;
use hyper::ext::ReasonPhrase;
use poem::Response;
use poem::http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

pub fn json(status: u16, body: String) -> Response {
    let mut response = text("application/json", body);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.set_status(status);
    // HTTP/1 has a reason for every status, and there are statuses without a registered one.
    if status.canonical_reason().is_none() {
        let reason: &[u8] = if status.is_client_error() { b"Client Error" } else { b"Server Error" };
        response.extensions_mut().insert(ReasonPhrase::from_static(reason));
    }
    response
}

/// An error response in the dialect's envelope, or in a plain one if there is none.
pub fn fault(dialect: Option<&DialectPlan>, fault: &Fault, head: HeadContext) -> Response {
    let fault = &match dialect {
        Some(dialect) => fault_report::reported(dialect, fault.clone()),
        None => fault.clone(),
    };
    if let Some(detail) = &fault.detail {
        tracing::error!(message = fault.message, detail, "internal error");
    }
    let bare = Fault { status: fault.status, ..Fault::new(fault.kind, "internal error") };
    let envelope = dialect.and_then(|d| render_envelope(d, fault).or_else(|| render_envelope(d, &bare)));
    let plain = || json!({ "error": fault.message }).to_string();
    let head = HeadContext { fault: Some(fault), ..head };
    let status = dialect.map(|dialect| response_head::status(dialect, &head)).and_then(|status| {
        status.unwrap_or_else(|error| {
            tracing::error!(%error, "the status of an error could not be rendered");
            None
        })
    });
    let mut response =
        json(status.unwrap_or_else(|| fault.status()), envelope.map_or_else(plain, |envelope| envelope.to_json()));
    if let Some(value) = fault.retry_after.and_then(|s| s.to_string().parse().ok()) {
        response.headers_mut().insert("retry-after", value);
    }
    if fault.kind == FaultKind::Unauthorized {
        response.headers_mut().insert("www-authenticate", HeaderValue::from_static("Bearer realm=\"api\""));
    }
    if let Some(dialect) = dialect {
        add_headers(&mut response, dialect, &head);
    }
    response
}

/// A response as the bytes of HTTP/1.1, after which the connection is closed.
pub async fn closing(mut response: Response) -> Vec<u8> {
    let body = response.take_body().into_bytes().await.unwrap_or_default();
    let reason = response.status().canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", response.status().as_u16()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Adds the headers of the dialect. One that cannot be rendered, or has a value that no header can have, is logged and not
/// sent: the response is worth more.
pub fn add_headers(response: &mut Response, dialect: &DialectPlan, head: &HeadContext) {
    let headers = response_head::headers(dialect, head).unwrap_or_else(|error| {
        tracing::error!(dialect = dialect.name, %error, "the headers of a response could not be rendered");
        Vec::new()
    });
    for (name, value) in headers {
        add_header(response, name, &value);
    }
}

pub fn add_header(response: &mut Response, name: &str, value: &str) {
    match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        (Ok(name), Ok(value)) => {
            response.headers_mut().insert(name, value);
        }
        _ => tracing::warn!(header = name, "a header with an invalid value was not sent"),
    }
}

/// The dialect's envelope, if it can be rendered and is valid by its schema.
fn render_envelope(dialect: &DialectPlan, fault: &Fault) -> Option<Tree> {
    let envelope = match encode::error(dialect, fault) {
        Ok(envelope) => envelope,
        Err(error) => {
            tracing::error!(dialect = dialect.name, %error, "the error envelope could not be rendered");
            return None;
        }
    };
    match dialect.errors.schema.as_ref().map(|named| named.schema.check(&envelope)) {
        Some(Err(violation)) => {
            let (pointer, keyword, location) = (&violation.pointer, &violation.keyword, &*dialect.errors.location);
            tracing::error!(dialect = dialect.name, frame = "error", pointer, keyword, location, "frame violation");
            None
        }
        _ => Some(envelope),
    }
}

pub fn text(content_type: &str, body: String) -> Response {
    with_room_for_headers(Response::builder().content_type(content_type).body(body))
}

/// For as many headers as most responses have.
pub fn with_room_for_headers(mut response: Response) -> Response {
    const USUAL_HEADERS: usize = 12;
    response.headers_mut().reserve(USUAL_HEADERS);
    response
}
