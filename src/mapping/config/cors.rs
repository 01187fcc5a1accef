//! `cors:` of gateway.yaml: which web pages of other origins may read the responses.

use crate::diagnostics::Code;
use crate::mapping::grammar::collections::List;
use crate::mapping::grammar::notation::{HeaderName, TimeLimit, notation_schema, text_notation};
use crate::mapping::grammar::section;
use http::HeaderValue;
use std::time::Duration;
use url::Url;

section! {
    /// Cross-origin requests of web pages. The headers are added to every response: streams and errors too.
    #[subject = "`cors:`"]
    #[title = "cors"]
    pub struct Cors {
        /// The origins that may read responses: `https://app.example`, or `*` for all. On a local host, the port of an origin
        /// makes no difference.
        origins: List<Origin> = List(vec![Origin("*".to_owned())]),
        /// The request headers that are allowed if a preflight request asks for none; otherwise those that it asks for.
        headers: List<HeaderName> = List(vec![HeaderName("authorization".to_owned()), HeaderName("content-type".to_owned())]),
        /// The response headers that pages may read.
        expose: List<HeaderName> = List(vec![HeaderName("content-type".to_owned())]),
        /// How long browsers may cache the response to a preflight request.
        max_age: TimeLimit = TimeLimit(Some(Duration::from_secs(600))),
    }
}

text_notation! {
    /// An origin in the form in which origins are compared, or `*`.
    Origin(String), |text, node, at| {
        let origin = if text == "*" { Some(text.to_owned()) } else { normalized(text) };
        if origin.is_none() {
            let message = format!("`{text}` is not an origin: write `https://host`, `https://host:port` or `*`");
            at.cx.error(Code::UnknownValue, node.span, message);
        }
        origin
    }
}
notation_schema!(Origin, { "type": "string", "pattern": "^(\\*|\\s*[A-Za-z][A-Za-z0-9+.-]*://.+)$" });

/// The section with the values of the headers that are the same in most responses.
#[derive(Debug)]
pub struct CorsPlan {
    pub cors: Cors,
    pub allowed_headers: HeaderValue,
    pub exposed_headers: HeaderValue,
}

impl From<Cors> for CorsPlan {
    fn from(cors: Cors) -> CorsPlan {
        let (allowed_headers, exposed_headers) = (list(&cors.headers), list(&cors.expose));
        CorsPlan { cors, allowed_headers, exposed_headers }
    }
}

/// The loader has checked the names.
fn list(names: &[HeaderName]) -> HeaderValue {
    let names: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
    HeaderValue::try_from(names.join(", ")).unwrap_or_else(|_| HeaderValue::from_static(""))
}

impl Cors {
    pub fn allows_all(&self) -> bool {
        self.origins.iter().any(|origin| origin.0 == "*")
    }

    pub fn allows(&self, origin: &str) -> bool {
        self.allows_all() || normalized(origin).is_some_and(|origin| self.origins.iter().any(|o| o.0 == origin))
    }
}

/// The scheme, the host and the port of an origin in lower case. Applications on the same machine change their port, and
/// origins of applications with a scheme of their own have none.
fn normalized(origin: &str) -> Option<String> {
    let origin = Url::parse(origin.trim().trim_end_matches('/')).ok()?;
    let (scheme, host) = (origin.scheme(), origin.host_str()?.to_ascii_lowercase());
    let is_web = matches!(scheme, "http" | "https");
    let is_local = matches!(&*host, "localhost" | "127.0.0.1" | "[::1]");
    Some(match origin.port().filter(|_| is_web && !is_local) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_cors.rs"]
mod tests;
