//! The headers and the query of a request to a backend: those of its file, then those of its entry in gateway.yaml.

use super::render_fault;
use crate::domain::variables::{self, Record};
use crate::domain::{Fault, FaultKind, RequestHead};
use crate::engine::render::{self, Scope};
use crate::mapping::config::backend_request::{RequestSettings, RequestTemplate};
use crate::mapping::config::request_values::NamedValues;
use crate::mapping::language::expression::ExpressionPool;
use crate::mapping::language::field::scalar_text;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The values that one backend gets with every request.
#[derive(Clone, Copy)]
pub struct RequestValues<'p> {
    pub template: &'p RequestTemplate,
    pub settings: &'p RequestSettings,
}

/// Characters that the query may contain unescaped.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Parts of the names of headers with values that are not logged.
const SECRET_NAMES: &[&str] = &["auth", "cookie", "key", "secret", "token"];

/// The scope of headers and of the query.
pub fn in_headers<'a>(scope: &Scope<'a>, key: Option<&'a str>) -> Scope<'a> {
    let build = Record::Build(env!("CARGO_PKG_VERSION"));
    scope.clone().set(variables::SECRET, key.map(Record::Secret)).set(variables::BUILD, build)
}

/// How many headers a request has, if few are configured.
const USUAL_HEADERS: usize = 8;

impl RequestValues<'_> {
    /// `client`: the head of the client's request, if there is one.
    pub fn headers(
        &self,
        scope: &Scope,
        key: Option<&str>,
        stream: bool,
        client: &RequestHead,
    ) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::with_capacity(USUAL_HEADERS);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static(if stream { "text/event-stream, application/json" } else { "application/json" }),
        );
        // A compressor would delay small events. A response that is compressed nevertheless is decoded.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("reframe/", env!("CARGO_PKG_VERSION"))));
        self.forward(client, &mut headers);
        add_headers(&mut headers, &self.template.headers, &self.template.pool, scope, key)?;
        if let Some(entry) = &self.settings.entry {
            add_headers(&mut headers, &entry.headers, &entry.pool, scope, key)?;
        }
        Ok(headers)
    }

    /// Headers of the client that the mapping names.
    fn forward(&self, client: &RequestHead, headers: &mut HeaderMap) {
        for forwarded in self.settings.capabilities.forwarded_headers() {
            let name = forwarded.value.0.as_str();
            let value = client.header(name).and_then(|value| HeaderValue::from_str(value).ok());
            if let (Some(mut value), Ok(header)) = (value, HeaderName::from_bytes(name.as_bytes())) {
                value.set_sensitive(SECRET_NAMES.iter().any(|word| name.contains(word)));
                headers.insert(header, value);
            }
        }
    }

    /// The path with these parameters in its query.
    pub fn with_query(&self, mut path: String, scope: &Scope) -> Result<String, Fault> {
        add_query(&mut path, &self.template.query, &self.template.pool, scope)?;
        if let Some(entry) = &self.settings.entry {
            add_query(&mut path, &entry.query, &entry.pool, scope)?;
        }
        Ok(path)
    }
}

/// A header without a value is omitted, also one of the same name that is already there.
fn add_headers(
    headers: &mut HeaderMap,
    values: &NamedValues,
    pool: &ExpressionPool,
    scope: &Scope,
    key: Option<&str>,
) -> Result<(), Fault> {
    for (name, text) in values {
        let invalid = || {
            let message = format!("the header `{name}` cannot contain the value from the request");
            Fault::new(FaultKind::Invalid, message)
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let Some(value) = render::render_if_complete(text, scope, pool).map_err(render_fault)? else {
            headers.remove(header);
            continue;
        };
        let text = scalar_text(&value).unwrap_or_default();
        let mut value = HeaderValue::from_str(&text).map_err(|_| invalid())?;
        value.set_sensitive(key.is_some_and(|key| text.contains(key)));
        headers.insert(header, value);
    }
    Ok(())
}

fn add_query(path: &mut String, values: &NamedValues, pool: &ExpressionPool, scope: &Scope) -> Result<(), Fault> {
    for (name, text) in values {
        let Some(value) = render::render_if_complete(text, scope, pool).map_err(render_fault)? else { continue };
        let text = scalar_text(&value).unwrap_or_default();
        path.push(if path.contains('?') { '&' } else { '?' });
        path.extend(utf8_percent_encode(name, QUERY));
        path.push('=');
        path.extend(utf8_percent_encode(&text, QUERY));
    }
    Ok(())
}
