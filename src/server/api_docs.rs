//! API documentation: the OpenAPI document, the JSON schemas, and a page to browse them. Independent of the mappings.
//! Declared with poem-openapi, so that the document describes these endpoints too.

use crate::domain::Tree;
use crate::openapi;
use crate::openapi::GenerationInfo;
use crate::reload::{Generation, Reloader};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use poem::endpoint::BoxEndpoint;
use poem::{Endpoint, EndpointExt, Request, Response};
use poem_openapi::param::{Header, Path};
use poem_openapi::payload::{Binary, Html};
use poem_openapi::{ApiResponse, OpenApi, OpenApiService, Tags};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};

pub struct ApiDocs {
    service: BoxEndpoint<'static, Response>,
}

/// The document of one generation, in all its formats.
struct PublishedDocument {
    generation: u64,
    json: Vec<u8>,
    yaml: Vec<u8>,
    page: String,
    content_security_policy: String,
    etag: String,
}

#[derive(Tags)]
enum Tag {
    /// API documentation of the gateway
    #[oai(rename = "operations")]
    Operations,
}

#[derive(ApiResponse)]
enum Json {
    #[oai(status = 200, content_type = "application/json")]
    Ok(Binary<Vec<u8>>, #[oai(header = "etag")] String, #[oai(header = "cache-control")] String),
    /// Not modified
    #[oai(status = 304)]
    NotModified(#[oai(header = "etag")] String),
    /// Unknown schema
    #[oai(status = 404)]
    NotFound,
}

#[derive(ApiResponse)]
enum Yaml {
    #[oai(status = 200, content_type = "application/yaml")]
    Ok(Binary<Vec<u8>>, #[oai(header = "etag")] String, #[oai(header = "cache-control")] String),
    /// Not modified
    #[oai(status = 304)]
    NotModified(#[oai(header = "etag")] String),
}

#[derive(ApiResponse)]
enum DocsPage {
    #[oai(status = 200)]
    Ok(Html<String>, #[oai(header = "content-security-policy")] String, #[oai(header = "cache-control")] String),
}

/// Clients revalidate each time, and get the body again only if it has changed.
const REVALIDATE: &str = "no-cache";

struct Api {
    reloader: Arc<Reloader>,
    /// The document of the generation that was requested last.
    last: Mutex<Option<Arc<PublishedDocument>>>,
    gateway_paths: Vec<(String, Tree)>,
    /// The HTML before and after the document.
    page: (String, String),
}

struct ApiDocsEndpoints(Arc<Api>);

#[OpenApi(tag = "Tag::Operations")]
impl ApiDocsEndpoints {
    /// This document, as JSON
    #[oai(path = "/openapi.json", method = "get", operation_id = "openapi_json")]
    async fn json(&self, #[oai(name = "if-none-match")] known: Header<Option<String>>) -> Json {
        let published = self.0.published();
        match known.0.is_some_and(|known| etag_matches(&known, &published.etag)) {
            true => Json::NotModified(published.etag.clone()),
            false => Json::Ok(Binary(published.json.clone()), published.etag.clone(), REVALIDATE.to_owned()),
        }
    }

    /// This document, as YAML
    #[oai(path = "/openapi.yaml", method = "get", operation_id = "openapi_yaml")]
    async fn yaml(&self, #[oai(name = "if-none-match")] known: Header<Option<String>>) -> Yaml {
        let published = self.0.published();
        match known.0.is_some_and(|known| etag_matches(&known, &published.etag)) {
            true => Yaml::NotModified(published.etag.clone()),
            false => Yaml::Ok(Binary(published.yaml.clone()), published.etag.clone(), REVALIDATE.to_owned()),
        }
    }

    /// A JSON schema that requests or responses are validated against
    #[oai(path = "/schemas/:folder/:file", method = "get", operation_id = "schema")]
    async fn schema(
        &self,
        /// The dialect's folder
        folder: Path<String>,
        /// For example `body.json`
        file: Path<String>,
        #[oai(name = "if-none-match")] known: Header<Option<String>>,
    ) -> Json {
        let generation = self.0.reloader.current();
        let name = format!("schemas/{}/{}", folder.0, file.0);
        let Some((_, source)) = generation.plan.sources.iter().find(|(_, s)| s.name == name) else {
            return Json::NotFound;
        };
        let etag = etag(source.text.as_bytes());
        match known.0.is_some_and(|known| etag_matches(&known, &etag)) {
            true => Json::NotModified(etag),
            false => Json::Ok(Binary(source.text.as_bytes().to_vec()), etag, REVALIDATE.to_owned()),
        }
    }

    /// This document as a web page, with a form to send requests
    #[oai(path = "/docs", method = "get", operation_id = "docs")]
    async fn docs(&self) -> DocsPage {
        let published = self.0.published();
        DocsPage::Ok(Html(published.page.clone()), published.content_security_policy.clone(), REVALIDATE.to_owned())
    }
}

impl ApiDocs {
    pub fn new(reloader: Arc<Reloader>) -> ApiDocs {
        // The paths and the HTML are taken from a first service, which serves no requests.
        let blank = Api {
            reloader: reloader.clone(),
            last: Mutex::default(),
            gateway_paths: Vec::new(),
            page: Default::default(),
        };
        let service = OpenApiService::new(ApiDocsEndpoints(Arc::new(blank)), "Reframe", env!("CARGO_PKG_VERSION"));
        let gateway_paths = paths(&service.spec());
        let html = service.swagger_ui_html();
        let page = html.split_once(&service.spec()).map_or_else(
            || (html.clone(), String::new()),
            |(before, after)| {
                (
                    before.replacen(
                        "<title>Swagger UI",
                        concat!("<link rel=\"icon\" href=\"data:,\">", "<title>Reframe"),
                        1,
                    ),
                    after.to_owned(),
                )
            },
        );
        let api = Arc::new(Api { reloader, last: Mutex::default(), gateway_paths, page });
        let service = OpenApiService::new(ApiDocsEndpoints(api), "Reframe", env!("CARGO_PKG_VERSION"));
        ApiDocs { service: service.map_to_response().boxed() }
    }

    pub fn has_path(path: &str) -> bool {
        matches!(path, "/openapi.json" | "/openapi.yaml" | "/docs") || path.starts_with("/schemas/")
    }

    pub async fn respond(&self, request: Request) -> Response {
        self.service.get_response(request).await
    }
}

/// The paths of these endpoints, for a document that is generated without a server.
pub fn gateway_paths(reloader: Arc<Reloader>) -> Vec<(String, Tree)> {
    let api = Api { reloader, last: Mutex::default(), gateway_paths: Vec::new(), page: Default::default() };
    paths(&OpenApiService::new(ApiDocsEndpoints(Arc::new(api)), "Reframe", env!("CARGO_PKG_VERSION")).spec())
}

fn paths(spec: &str) -> Vec<(String, Tree)> {
    let spec = Tree::parse(spec.as_bytes()).unwrap_or_default();
    let paths = spec.get("paths").and_then(Tree::as_map).unwrap_or(&[]);
    paths.iter().map(|(path, item)| (path.to_string(), item.clone())).collect()
}

impl Api {
    fn published(&self) -> Arc<PublishedDocument> {
        let generation = self.reloader.current();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(published) = last.as_ref().filter(|p| p.generation == generation.number) {
            return published.clone();
        }
        let published = Arc::new(self.publish(&generation));
        *last = Some(published.clone());
        published
    }

    fn publish(&self, generation: &Generation) -> PublishedDocument {
        let edition = GenerationInfo { number: generation.number, digest: generation.digest.clone() };
        let document = openapi::document(&generation.plan, Some(&edition), &self.gateway_paths);
        let json = document.to_json_pretty() + "\n";
        // `</script>` in the document would end the script.
        let page = format!("<!DOCTYPE html>{}{}{}", self.page.0, document.to_json().replace("</", "<\\/"), self.page.1);
        PublishedDocument {
            generation: generation.number,
            yaml: openapi::yaml(&document).into_bytes(),
            content_security_policy: content_security_policy(&page),
            page,
            etag: etag(json.as_bytes()),
            json: json.into_bytes(),
        }
    }
}

/// `"abc"`, `W/"abc"`, or several of them.
fn etag_matches(known: &str, etag: &str) -> bool {
    known.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == "*" || one == etag)
}

fn etag(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    format!("\"{}\"", digest.iter().take(12).map(|b| format!("{b:02x}")).collect::<String>())
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
