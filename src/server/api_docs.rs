//! What every gateway answers, whatever its mappings say: its OpenAPI document, its schemas, a page to read them with.
//! Declared with poem-openapi, so that the document speaks of these too.

use crate::domain::Tree;
use crate::openapi;
use crate::openapi::Edition;
use crate::reload::{Generation, Store};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use poem::endpoint::BoxEndpoint;
use poem::{Endpoint, EndpointExt, Request, Response};
use poem_openapi::param::{Header, Path};
use poem_openapi::payload::{Binary, Html};
use poem_openapi::{ApiResponse, OpenApi, OpenApiService, Tags};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};

pub struct Operations {
    service: BoxEndpoint<'static, Response>,
}

/// The document of one generation, in all its forms.
struct Published {
    generation: u64,
    json: Vec<u8>,
    yaml: Vec<u8>,
    page: String,
    /// Says that the page loads nothing from anywhere else.
    policy: String,
    etag: String,
}

#[derive(Tags)]
enum Tag {
    /// About the gateway itself
    #[oai(rename = "operations")]
    Operations,
}

#[derive(ApiResponse)]
enum Json {
    #[oai(status = 200, content_type = "application/json")]
    Here(Binary<Vec<u8>>, #[oai(header = "etag")] String, #[oai(header = "cache-control")] String),
    /// Nothing has changed
    #[oai(status = 304)]
    Known(#[oai(header = "etag")] String),
    /// There is no such file
    #[oai(status = 404)]
    Missing,
}

#[derive(ApiResponse)]
enum Yaml {
    #[oai(status = 200, content_type = "application/yaml")]
    Here(Binary<Vec<u8>>, #[oai(header = "etag")] String, #[oai(header = "cache-control")] String),
    /// Nothing has changed
    #[oai(status = 304)]
    Known(#[oai(header = "etag")] String),
}

#[derive(ApiResponse)]
enum Page {
    #[oai(status = 200)]
    Here(Html<String>, #[oai(header = "content-security-policy")] String, #[oai(header = "cache-control")] String),
}

/// Asked for again each time, but sent again only when it has changed.
const ASK_AGAIN: &str = "no-cache";

struct Api {
    store: Arc<Store>,
    /// Of the generation that was asked for last.
    last: Mutex<Option<Arc<Published>>>,
    operational: Vec<(String, Tree)>,
    /// The page before and after the document.
    page: (String, String),
}

struct Shared(Arc<Api>);

#[OpenApi(tag = "Tag::Operations")]
impl Shared {
    /// This document, as JSON
    #[oai(path = "/openapi.json", method = "get", operation_id = "openapi_json")]
    async fn json(&self, #[oai(name = "if-none-match")] known: Header<Option<String>>) -> Json {
        let published = self.0.published();
        match known.0.is_some_and(|known| fits(&known, &published.etag)) {
            true => Json::Known(published.etag.clone()),
            false => Json::Here(Binary(published.json.clone()), published.etag.clone(), ASK_AGAIN.to_owned()),
        }
    }

    /// This document, as YAML
    #[oai(path = "/openapi.yaml", method = "get", operation_id = "openapi_yaml")]
    async fn yaml(&self, #[oai(name = "if-none-match")] known: Header<Option<String>>) -> Yaml {
        let published = self.0.published();
        match known.0.is_some_and(|known| fits(&known, &published.etag)) {
            true => Yaml::Known(published.etag.clone()),
            false => Yaml::Here(Binary(published.yaml.clone()), published.etag.clone(), ASK_AGAIN.to_owned()),
        }
    }

    /// A schema that what leaves, or what arrives, is checked by
    #[oai(path = "/schemas/:folder/:file", method = "get", operation_id = "schema")]
    async fn schema(
        &self,
        /// The dialect's folder
        folder: Path<String>,
        /// Such as `body.json`
        file: Path<String>,
        #[oai(name = "if-none-match")] known: Header<Option<String>>,
    ) -> Json {
        let generation = self.0.store.current();
        let name = format!("schemas/{}/{}", folder.0, file.0);
        let Some((_, source)) = generation.plan.sources.iter().find(|(_, s)| s.name == name) else {
            return Json::Missing;
        };
        let etag = etag(source.text.as_bytes());
        match known.0.is_some_and(|known| fits(&known, &etag)) {
            true => Json::Known(etag),
            false => Json::Here(Binary(source.text.as_bytes().to_vec()), etag, ASK_AGAIN.to_owned()),
        }
    }

    /// This document, to read and to try out
    #[oai(path = "/docs", method = "get", operation_id = "docs")]
    async fn docs(&self) -> Page {
        let published = self.0.published();
        Page::Here(Html(published.page.clone()), published.policy.clone(), ASK_AGAIN.to_owned())
    }
}

impl Operations {
    pub fn new(store: Arc<Store>) -> Operations {
        let blank =
            Api { store: store.clone(), last: Mutex::default(), operational: Vec::new(), page: Default::default() };
        let service = OpenApiService::new(Shared(Arc::new(blank)), "Reframe", env!("CARGO_PKG_VERSION"));
        let operational = paths(&service.spec());
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
        let api = Arc::new(Api { store, last: Mutex::default(), operational, page });
        let service = OpenApiService::new(Shared(api), "Reframe", env!("CARGO_PKG_VERSION"));
        Operations { service: service.map_to_response().boxed() }
    }

    pub fn covers(path: &str) -> bool {
        matches!(path, "/openapi.json" | "/openapi.yaml" | "/docs") || path.starts_with("/schemas/")
    }

    pub async fn answer(&self, request: Request) -> Response {
        self.service.get_response(request).await
    }
}

/// The paths of the gateway itself, for a document that is made without a server.
pub fn operational(store: Arc<Store>) -> Vec<(String, Tree)> {
    let api = Api { store, last: Mutex::default(), operational: Vec::new(), page: Default::default() };
    paths(&OpenApiService::new(Shared(Arc::new(api)), "Reframe", env!("CARGO_PKG_VERSION")).spec())
}

fn paths(spec: &str) -> Vec<(String, Tree)> {
    let spec = Tree::parse(spec.as_bytes()).unwrap_or_default();
    let paths = spec.get("paths").and_then(Tree::as_map).unwrap_or(&[]);
    paths.iter().map(|(path, item)| (path.to_string(), item.clone())).collect()
}

impl Api {
    fn published(&self) -> Arc<Published> {
        let generation = self.store.current();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(published) = last.as_ref().filter(|p| p.generation == generation.number) {
            return published.clone();
        }
        let published = Arc::new(self.publish(&generation));
        *last = Some(published.clone());
        published
    }

    fn publish(&self, generation: &Generation) -> Published {
        let edition = Edition { number: generation.number, digest: generation.digest.clone() };
        let document = openapi::document(&generation.plan, Some(&edition), &self.operational);
        let json = document.to_json_pretty() + "\n";
        // In a script nothing may look like its end.
        let page = format!("<!DOCTYPE html>{}{}{}", self.page.0, document.to_json().replace("</", "<\\/"), self.page.1);
        Published {
            generation: generation.number,
            yaml: openapi::yaml(&document).into_bytes(),
            policy: policy(&page),
            page,
            etag: etag(json.as_bytes()),
            json: json.into_bytes(),
        }
    }
}

/// `"abc"`, `W/"abc"`, or several of them.
fn fits(known: &str, etag: &str) -> bool {
    known.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == "*" || one == etag)
}

fn etag(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    format!("\"{}\"", digest.iter().take(12).map(|b| format!("{b:02x}")).collect::<String>())
}

/// The page's own scripts, by their digests, and nothing from anywhere else.
fn policy(page: &str) -> String {
    let mut scripts = Vec::new();
    let mut rest = page;
    // As a browser reads it: within a script nothing counts but its end.
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
