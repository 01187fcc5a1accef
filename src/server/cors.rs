//! The CORS headers of responses: which web pages of other origins may read them.

use crate::mapping::config::cors::CorsPlan;
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
    pub fn add_headers(self, plan: &CorsPlan, headers: &mut HeaderMap) {
        let cors = &plan.cors;
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
        headers.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            self.requested_headers.unwrap_or_else(|| plan.allowed_headers.clone()),
        );
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, plan.exposed_headers.clone());
        if let Some(max_age) = cors.max_age.0 {
            headers.insert(ACCESS_CONTROL_MAX_AGE, max_age.as_secs().into());
        }
    }
}
