//! Plain answers: a JSON body, an error envelope.

use crate::domain::{Fault, FaultKind, Tree};
use crate::engine::encode;
use crate::mapping::config::dialect::DialectPlan;
use poem::http::{HeaderValue, StatusCode};
use poem::{Body, Response};

pub fn json(status: u16, body: &Tree) -> Response {
    let mut bytes = Vec::new();
    body.write(&mut bytes);
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .content_type("application/json")
        .body(Body::from(bytes))
}

/// A fault in the words of the dialect; where there is none, in ours.
pub fn fault(dialect: Option<&DialectPlan>, fault: &Fault) -> Response {
    let bare = Fault { status: fault.status, ..Fault::new(fault.kind, "internal error") };
    let envelope = dialect.and_then(|d| told(d, fault).or_else(|| told(d, &bare)));
    let plain = || Tree::map([("error", Tree::from(fault.message.as_str()))]);
    let mut response = json(fault.status(), &envelope.unwrap_or_else(plain));
    if let Some(value) = fault.retry_after.and_then(|s| s.to_string().parse().ok()) {
        response.headers_mut().insert("retry-after", value);
    }
    if fault.kind == FaultKind::Unauthorized {
        response.headers_mut().insert("www-authenticate", HeaderValue::from_static("Bearer realm=\"api\""));
    }
    response
}

/// The dialect's envelope, if it can be made and is what its schema says.
fn told(dialect: &DialectPlan, fault: &Fault) -> Option<Tree> {
    let envelope = match encode::error(dialect, fault) {
        Ok(envelope) => envelope,
        Err(error) => {
            tracing::error!(dialect = dialect.name, %error, "the error envelope failed");
            return None;
        }
    };
    match dialect.errors.schema.as_ref().map(|named| named.schema.check(&envelope)) {
        Some(Err(breach)) => {
            let (pointer, keyword, place) = (&breach.pointer, &breach.keyword, &*dialect.errors.place);
            tracing::error!(dialect = dialect.name, frame = "error", pointer, keyword, place, "breach");
            None
        }
        _ => Some(envelope),
    }
}

/// Text for machines that read lines.
pub fn text(content_type: &str, body: String) -> Response {
    Response::builder().content_type(content_type).body(body)
}
