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

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, HEAD, OPTIONS");
const VARY_BY_REQUEST: HeaderValue =
    HeaderValue::from_static("Access-Control-Request-Headers, Access-Control-Request-Method");
const VARY_BY_ORIGIN: HeaderValue =
    HeaderValue::from_static("Origin, Access-Control-Request-Headers, Access-Control-Request-Method");

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
        headers.append(
            VARY,
            match &self.origin {
                None if cors.allows_all() => VARY_BY_REQUEST,
                _ => VARY_BY_ORIGIN,
            },
        );
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
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        match self.requested_headers {
            Some(requested) => drop(headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested)),
            None => insert(headers, ACCESS_CONTROL_ALLOW_HEADERS, list(&cors.headers)),
        }
        insert(headers, ACCESS_CONTROL_EXPOSE_HEADERS, list(&cors.expose));
        if let Some(max_age) = cors.max_age.0 {
            headers.insert(ACCESS_CONTROL_MAX_AGE, max_age.as_secs().into());
        }
    }
}

/// The length of most lists.
const LIST_BYTES: usize = 256;

fn list(names: &[HeaderName]) -> String {
    let mut list = String::with_capacity(LIST_BYTES);
    for name in names {
        list.push_str(if list.is_empty() { "" } else { ", " });
        list.push_str(&name.0);
    }
    list
}

fn insert(headers: &mut HeaderMap, name: poem::http::HeaderName, value: String) {
    // The text becomes the value, without a copy.
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}
