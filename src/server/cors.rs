//! The CORS headers of responses: which web pages of other origins may read them.

use crate::mapping::config::cors::Cors;
use crate::mapping::grammar::notation::HeaderName;
use poem::Request;
use poem::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ORIGIN, VARY,
};
use poem::http::{HeaderMap, HeaderValue};

/// What a request sends about its origin.
pub struct RequestOrigin {
    origin: Option<HeaderValue>,
    requested_headers: Option<HeaderValue>,
}

const METHODS: &str = "GET, POST, HEAD, OPTIONS";
const VARY_BY_REQUEST: &str = "Access-Control-Request-Headers, Access-Control-Request-Method";

impl RequestOrigin {
    pub fn of(request: &Request) -> RequestOrigin {
        let value = |name| request.headers().get(name).filter(|value| !value.is_empty()).cloned();
        RequestOrigin { origin: value(ORIGIN), requested_headers: value(ACCESS_CONTROL_REQUEST_HEADERS) }
    }

    /// Adds the headers to a response. One that is public anyway keeps its own.
    pub fn add_headers(self, cors: &Cors, headers: &mut HeaderMap) {
        if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return;
        }
        let vary = match &self.origin {
            None if cors.allows_all() => VARY_BY_REQUEST.to_owned(),
            _ => format!("Origin, {VARY_BY_REQUEST}"),
        };
        if let Ok(vary) = HeaderValue::from_str(&vary) {
            headers.append(VARY, vary);
        }
        let allowed = match &self.origin {
            Some(origin) => Some(origin).filter(|origin| origin.to_str().is_ok_and(|origin| cors.allows(origin))),
            None if cors.allows_all() => Some(&HeaderValue::from_static("*")),
            None => None,
        };
        let Some(allowed) = allowed.cloned() else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if self.origin.is_some() {
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        insert(headers, ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        match self.requested_headers {
            Some(requested) => drop(headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested)),
            None => insert(headers, ACCESS_CONTROL_ALLOW_HEADERS, &list(&cors.headers)),
        }
        insert(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &list(&cors.expose));
        if let Some(max_age) = cors.max_age.0 {
            insert(headers, ACCESS_CONTROL_MAX_AGE, &max_age.as_secs().to_string());
        }
    }
}

fn list(names: &[HeaderName]) -> String {
    names.iter().map(|name| name.0.as_str()).collect::<Vec<_>>().join(", ")
}

fn insert(headers: &mut HeaderMap, name: poem::http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
