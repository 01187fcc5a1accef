//! The OpenAPI document of a plan: routes with their schemas, static routes, errors and headers. It is generated from
//! the active mappings, so it reflects what a profile renames or drops.

pub mod bundle;
mod components;
mod definitions;
mod errors;
mod fixed_endpoints;
pub mod gateway_schemas;

use crate::domain::MomentKind;
use crate::mapping::Plan;
use crate::mapping::config::client_keys::Auth;
use crate::mapping::config::dialect::{DialectPlan, FrameContent};
use crate::mapping::config::gateway::{Docs, GatewayPlan, MetricsProtection};
use crate::mapping::config::path_template::PathTemplate;
use crate::mapping::config::route::{RoutePlan, WebSocket};
use crate::mapping::config::route_headers::UnknownHeaderValue;
use crate::mapping::config::static_routes::StaticRoute;
use crate::mapping::language::selector::Selector;
use crate::mapping::policy::variants::HeaderChoice;
use components::Components;
use errors::{ErrorCause, FORBIDDEN, INVALID_QUERY, UNAUTHORIZED, UNKNOWN, UPGRADE_REQUIRED, WRONG_METHOD};
use serde_json::{Map, Value, json};

/// The generation that a document describes.
#[derive(Clone, Debug)]
pub struct GenerationInfo {
    pub number: u64,
    pub digest: String,
}

pub fn document(plan: &Plan, generation: Option<&GenerationInfo>) -> Value {
    let gateway = &plan.gateway;
    let mut components = Components::new(plan);
    let mut paths = Map::new();
    for route in &gateway.routes {
        if let Some(dialect) = route.variants.default_dialect() {
            let operation = self::operation(gateway, route, dialect, &mut components);
            add(&mut paths, &route.path, &route.method, operation);
        }
    }
    let errors = gateway.routes.first().and_then(|r| r.variants.default_dialect());
    for route in gateway.static_routes.iter().filter(|route| gateway.serves(route)) {
        let operation = self::static_route(gateway, route, errors.map(|d| &**d), &mut components);
        add(&mut paths, &route.path, &route.method, operation);
    }
    for route in gateway.routes.iter().filter(|route| route.websocket == WebSocket::UpgradeRequired) {
        // Another route or a static route may have the method.
        let is_free = paths.get(&route.path).is_some_and(|path| path.get("get").is_none());
        if let Some(dialect) = route.variants.default_dialect().filter(|_| is_free) {
            let operation = self::websocket(gateway, route, dialect, &mut components);
            add(&mut paths, &route.path, "GET", operation);
        }
    }
    let errors = errors.map(|dialect| &**dialect);
    if let Some(path) = &gateway.metrics {
        let operation = fixed_endpoints::metrics(&mut components);
        let operation = protected(
            operation,
            gateway.protected.metrics != MetricsProtection::None,
            gateway,
            errors,
            &mut components,
        );
        add(&mut paths, path, "GET", operation);
    }
    // A route with the same path takes precedence.
    if let Some(path) = gateway.status_path().filter(|path| !paths.contains_key(*path)) {
        let operation = fixed_endpoints::status(&mut components);
        let operation = protected(operation, gateway.protected.status, gateway, errors, &mut components);
        add(&mut paths, path, "GET", operation);
    }
    if gateway.docs == Docs::Public {
        for (path, operation) in fixed_endpoints::api_docs(&mut components) {
            // A route with the same path takes precedence.
            paths.entry(path).or_insert_with(|| json!({ "get": operation }));
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Reframe",
            "description": "The API of this gateway, generated from its active mappings.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": "/" }],
    });
    if let Some(generation) = generation {
        document["info"]["x-generation"] = json!({ "number": generation.number, "hash": generation.digest });
    }
    let mut parts = json!({ "schemas": components.schemas() });
    if gateway.auth == Auth::Keys && !gateway.api_keys.is_empty() {
        // If no key is set at run time, none is required: the document lists both alternatives.
        let schemes = security_schemes(gateway);
        let alternatives = schemes.keys().map(|name| json!({ name.as_str(): [] }));
        document["security"] = alternatives.chain([json!({})]).collect();
        parts["securitySchemes"] = schemes.into();
    }
    document["paths"] = paths.into();
    document["components"] = parts;
    document
}

/// An operation of the gateway itself, with the errors of a missing key if it needs one.
fn protected(
    mut operation: Value,
    needs_key: bool,
    gateway: &GatewayPlan,
    dialect: Option<&DialectPlan>,
    components: &mut Components,
) -> Value {
    match needs_key && gateway.auth == Auth::Keys {
        true => {
            let causes = [UNAUTHORIZED, FORBIDDEN];
            errors::add(&mut operation["responses"], gateway, dialect, &causes, components);
        }
        false => operation["security"] = json!([]),
    }
    operation
}

/// The places in which clients may send an API key, by name.
fn security_schemes(gateway: &GatewayPlan) -> Map<String, Value> {
    let mut schemes = Map::new();
    for key in &gateway.api_keys {
        for name in key.headers.iter().map(|header| header.0.as_str()) {
            let (id, scheme) = match name {
                "authorization" => ("bearer", json!({ "type": "http", "scheme": "bearer" })),
                name => (name, json!({ "type": "apiKey", "in": "header", "name": name })),
            };
            schemes.insert(id.to_owned(), scheme);
        }
        if let Some(name) = &key.query {
            schemes.insert(format!("query_{name}"), json!({ "type": "apiKey", "in": "query", "name": name }));
        }
    }
    schemes
}

/// The text of a document, as `/openapi.json` serves it.
pub fn json_text(document: &Value) -> String {
    format!("{document:#}\n")
}

fn add(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    paths.entry(path).or_insert_with(|| json!({}))[method.to_ascii_lowercase()] = operation;
}

fn operation(gateway: &GatewayPlan, route: &RoutePlan, dialect: &DialectPlan, components: &mut Components) -> Value {
    let request = dialect.request.schema.as_ref().map(|s| s.name.as_str());
    let mut request_body = json!({ "schema": request.map_or_else(any, |name| components.reference(name)) });
    if let Some((_, body)) = gateway.example.as_ref().filter(|(path, _)| route.serves_path(path)) {
        request_body["example"] = serde_json::from_str(body).unwrap_or_default();
    }
    let profile = route.profile.as_ref().map_or(String::new(), |p| format!(", profile `{p}`"));
    let title = request.and_then(|name| components.title(name));
    let body = dialect.body.schema.as_ref().map_or_else(any, |s| components.reference(&s.name));
    let stream = stream(dialect, components);
    let stream_type = dialect.encoding.content_type.split(';').next().unwrap_or_default().trim();
    let mut responses = json!({
        "200": {
            "description": response_description(dialect),
            "headers": gateway_headers(gateway),
            "content": { "application/json": { "schema": body }, stream_type: stream },
        },
    });
    errors::add_of_route(&mut responses, gateway, dialect, components);
    let mut operation = json!({
        "operationId": operation_id(&route.method, &route.path),
        "summary": title.unwrap_or_else(|| format!("The dialect `{}`", route.dialect)),
        "description": format!("Dialect `{}`{profile}.", route.dialect),
        "tags": [route.dialect],
    });
    // The schemas are those of a client that sends no policy header; the headers it may send are listed as parameters.
    let mut parameters = path_parameters(&route.path);
    parameters.extend(route.variants.choices(|_| None).iter().map(header_parameter));
    parameters.extend(profile_parameter(route));
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation["requestBody"] = json!({ "required": true, "content": { "application/json": request_body } });
    operation["responses"] = responses;
    operation
}

/// A request for a WebSocket, at an endpoint that has none.
fn websocket(gateway: &GatewayPlan, route: &RoutePlan, dialect: &DialectPlan, components: &mut Components) -> Value {
    let mut responses = json!({});
    let causes = [UNAUTHORIZED, FORBIDDEN, WRONG_METHOD, UPGRADE_REQUIRED];
    errors::add(&mut responses, gateway, Some(dialect), &causes, components);
    let mut operation = json!({
        "operationId": operation_id("websocket", &route.path),
        "summary": "No WebSocket: clients that ask for one fall back to POST",
        "tags": [route.dialect],
    });
    let mut parameters = path_parameters(&route.path);
    // Not `const`: generators of clients know no constants in headers.
    let schema = json!({ "type": "string", "pattern": "^websocket$" });
    parameters.push(json!({ "name": "upgrade", "in": "header", "required": false, "schema": schema }));
    operation["parameters"] = parameters.into();
    operation["responses"] = responses;
    operation
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = PathTemplate::parse(path).map(|template| template.parameters).unwrap_or_default();
    let parameter = |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    names.into_iter().map(parameter).collect()
}

/// A header by which a client selects the value of a policy.
fn header_parameter(choice: &HeaderChoice) -> Value {
    let words = choice.words.iter().chain(choice.aliases.iter().map(|(word, _)| word));
    let schema = selection(words.map(String::as_str).collect(), choice.unknown);
    let description = format!("Selects the value of the policy `{}`.", choice.policy);
    json!({ "name": choice.header, "in": "header", "description": description, "required": false, "schema": schema })
}

/// The header by which a client selects a profile.
fn profile_parameter(route: &RoutePlan) -> Option<Value> {
    let header = route.headers.profile.as_ref()?;
    let schema = selection(header.profiles.iter().map(String::as_str).collect(), header.unknown);
    Some(json!({
        "name": header.name,
        "in": "header",
        "description": "Selects the profile. The schemas are those of the route's own profile.",
        "required": false,
        "schema": schema,
    }))
}

fn selection(words: Vec<&str>, unknown: UnknownHeaderValue) -> Value {
    match unknown {
        UnknownHeaderValue::Reject => json!({ "type": "string", "enum": words }),
        UnknownHeaderValue::Ignore => json!({ "type": "string", "examples": words }),
    }
}

/// The content of a stream. To HTTP it is one text; the schemas of its events are in an extension, as `itemSchema` of
/// OpenAPI 3.2. As the schema of the content, tools would read the stream as one object.
fn stream(dialect: &DialectPlan, components: &mut Components) -> Value {
    let mut schemas: Vec<Value> = Vec::new();
    let frames = MomentKind::ALL.iter().flat_map(|m| dialect.frames(*m));
    for frame in frames.filter(|f| matches!(f.content, FrameContent::Data(_))) {
        let schema = frame.schema.as_ref().map_or_else(any, |s| components.reference(&s.name));
        if !schemas.contains(&schema) {
            schemas.push(schema);
        }
    }
    let description = "A stream of events. `x-item-schema` has the schemas of their data; the last may be plain text.";
    json!({
        "schema": { "type": "string", "description": description },
        "x-item-schema": { "anyOf": schemas },
    })
}

fn static_route(
    gateway: &GatewayPlan,
    route: &StaticRoute,
    dialect: Option<&DialectPlan>,
    components: &mut Components,
) -> Value {
    let schema = route.schema.as_ref().map_or_else(any, |schema| components.reference(&schema.name));
    let mut responses = json!({
        "200": {
            "description": "A response from the gateway's configuration.",
            "headers": gateway_headers(gateway),
            "content": { "application/json": { "schema": schema } },
        },
    });
    let title = route.schema.as_ref().and_then(|schema| components.title(&schema.name));
    if route.status.is_some() {
        let mut other = responses["200"].clone();
        other["description"] = "The same with another status.".into();
        responses["default"] = other;
    }
    let of_key: &[ErrorCause] = if route.open { &[] } else { &[UNAUTHORIZED, FORBIDDEN] };
    let of_model: &[ErrorCause] = if route.prefix().is_some() { &[UNKNOWN] } else { &[] };
    let of_query: &[ErrorCause] = if route.reads_usage_log { &[INVALID_QUERY] } else { &[] };
    errors::add(&mut responses, gateway, dialect, &[of_query, of_key, of_model].concat(), components);
    let mut operation = json!({
        "operationId": operation_id(&route.method, &route.path),
        "summary": title.unwrap_or_else(|| "Static route of the gateway".to_owned()),
        "tags": [if route.reads_models { "models" } else { "operations" }],
    });
    if route.open || (route.reads_models && !gateway.protected.models) {
        operation["security"] = json!([]);
    }
    let mut parameters = path_parameters(&route.path);
    if route.reads_usage_log {
        parameters.extend(fixed_endpoints::usage_parameters());
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation["responses"] = responses;
    operation
}

/// How a client requests a stream, in its dialect.
fn response_description(dialect: &DialectPlan) -> String {
    let stream = dialect.request.scalars.iter().find(|read| read.field.name == "stream");
    let member = stream.and_then(|read| read.selectors().iter().find_map(Selector::root_member));
    let condition =
        member.map_or("the client requests one".to_owned(), |name| format!("the request has `{name}: true`"));
    format!("The response: JSON, or a stream if {condition}.")
}

fn gateway_headers(gateway: &GatewayPlan) -> Value {
    let names = &gateway.headers;
    let mut headers = json!({ &names.request_id.0: header("The id of this request in the log.", "string") });
    if let Some(name) = &names.elapsed_ms {
        headers[&name.0] = header("Milliseconds until the response headers were sent.", "integer");
    }
    let dropped = header("Request fields that were dropped because the backend does not support them.", "string");
    headers[&names.dropped.0] = dropped;
    headers
}

fn header(description: &str, kind: &str) -> Value {
    json!({ "description": description, "schema": { "type": kind } })
}

fn any() -> Value {
    json!({})
}

/// `POST /v1/chat/completions` → `post_v1_chat_completions`
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    std::iter::once(method.to_ascii_lowercase()).chain(words.map(str::to_owned)).collect::<Vec<_>>().join("_")
}
