//! API documentation: the OpenAPI document, the JSON schemas, and a page to browse them. Independent of the mappings.

use super::response;
use super::router::header;
use crate::openapi;
use crate::openapi::{GenerationInfo, bundle};
use crate::reload::Generation;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use poem::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY,
};
use poem::http::{HeaderValue, Method, StatusCode};
use poem::web::Redirect;
use poem::web::headers::{ETag, HeaderMapExt, IfNoneMatch};
use poem::{IntoResponse, Request, Response};
use poem_openapi::OpenApiService;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};

/// The document of the generation that was requested last.
#[derive(Default)]
pub struct ApiDocs(Mutex<Option<Arc<PublishedDocument>>>);

/// The document of one generation, in all its formats.
struct PublishedDocument {
    generation: u64,
    json: String,
    yaml: String,
    page: String,
    content_security_policy: String,
}

/// Before the page of poem-openapi: a title, and no request for an icon.
const PAGE_HEAD: &str = "<!DOCTYPE html><link rel=\"icon\" href=\"data:,\"><title>Reframe</title>";

impl ApiDocs {
    /// The response to a request; `None` if the path is unknown. The documentation needs no API key and contains no
    /// secret, so web pages of every origin may read it.
    pub fn respond(&self, generation: &Generation, request: &Request) -> Option<Response> {
        let mut response = self.content(generation, request)?;
        if *request.method() == Method::OPTIONS {
            response = StatusCode::NO_CONTENT.into_response();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET,HEAD,OPTIONS"));
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("if-none-match"));
        }
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag"));
        Some(response)
    }

    fn content(&self, generation: &Generation, request: &Request) -> Option<Response> {
        let published = || self.published(generation);
        Some(match request.uri().path() {
            "/" => accepts_html(request).then(|| Redirect::see_other("/docs").into_response())?,
            "/openapi.json" => revalidated(request, "application/json", &published().json),
            // Browsers show plain text, and would save YAML as a file.
            "/openapi.yaml" => revalidated(request, "text/plain; charset=utf-8", &published().yaml),
            "/docs" => published().page(),
            "/schemas" | "/schemas/" => {
                revalidated(request, "application/json", &openapi::json_text(&bundle::index(&generation.plan)))
            }
            path => {
                let name = percent_decode_str(path.strip_prefix("/schemas/")?).decode_utf8().ok()?;
                revalidated(request, "application/json", &bundle::published(&generation.plan, &name)?)
            }
        })
    }

    fn published(&self, generation: &Generation) -> Arc<PublishedDocument> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(published) = last.as_ref().filter(|p| p.generation == generation.number) {
            return published.clone();
        }
        let published = Arc::new(PublishedDocument::new(generation));
        *last = Some(published.clone());
        published
    }
}

impl PublishedDocument {
    fn new(generation: &Generation) -> PublishedDocument {
        let edition = GenerationInfo { number: generation.number, digest: generation.digest.clone() };
        let document = openapi::document(&generation.plan, Some(&edition));
        let swagger_ui = OpenApiService::new((), "Reframe", env!("CARGO_PKG_VERSION"));
        // `</script>` in the document would end the script.
        let embedded = document.to_string().replace("</", "<\\/");
        let page = PAGE_HEAD.to_owned() + &swagger_ui.swagger_ui_html().replacen(&swagger_ui.spec(), &embedded, 1);
        PublishedDocument {
            generation: generation.number,
            json: openapi::json_text(&document),
            yaml: serde_yaml::to_string(&document).unwrap_or_default(),
            content_security_policy: content_security_policy(&page),
            page,
        }
    }

    fn page(&self) -> Response {
        Response::builder()
            .content_type("text/html; charset=utf-8")
            .header(CONTENT_SECURITY_POLICY, &self.content_security_policy)
            .header(CACHE_CONTROL, "no-cache")
            .body(self.page.clone())
    }
}

fn accepts_html(request: &Request) -> bool {
    header(request, "accept").is_some_and(|accept| accept.contains("text/html"))
}

/// Clients revalidate each time, and get the body again only if it has changed.
fn revalidated(request: &Request, content_type: &str, text: &str) -> Response {
    let digest: String = Sha256::digest(text).iter().take(12).map(|b| format!("{b:02x}")).collect();
    let etag = format!("\"{digest}\"").parse::<ETag>().ok();
    let known = request.headers().typed_get::<IfNoneMatch>();
    let mut response = match known.zip(etag.as_ref()).is_some_and(|(known, etag)| !known.precondition_passes(etag)) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => response::text(content_type, text.to_owned()),
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    etag.into_iter().for_each(|etag| response.headers_mut().typed_insert(etag));
    response
}

/// Allows the page's own scripts, by their digests, and no external resources.
fn content_security_policy(page: &str) -> String {
    let mut scripts = Vec::new();
    let mut rest = page;
    // Parsed as browsers do: inside a script only its end tag counts.
    while let Some((_, after)) = rest.split_once("<script") {
        let inner = after.split_once('>').and_then(|(_, script)| script.split_once("</script>"));
        let Some((script, behind)) = inner else { break };
        scripts.push(format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()))));
        rest = behind;
    }
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        scripts.join(" ")
    )
}
