//! The OpenAPI document of a plan: routes with their schemas, static routes, errors and headers. It is generated from
//! the active mappings, so it reflects what a profile renames or drops.

mod components;

use crate::domain::Tree;
use crate::mapping::Plan;
use crate::mapping::config::dialect::{DialectPlan, FrameContent};
use crate::mapping::config::gateway::{Auth, Docs, GatewayPlan};
use crate::mapping::config::route::RoutePlan;
use crate::mapping::config::static_routes::StaticRoute;
use crate::mapping::policy::variants::HeaderChoice;
use components::Components;

/// The generation that a document describes.
#[derive(Clone, Debug)]
pub struct GenerationInfo {
    pub number: u64,
    pub digest: String,
}

/// `operational`: paths that every gateway has, independent of its mappings.
pub fn document(plan: &Plan, generation: Option<&GenerationInfo>, operational: &[(String, Tree)]) -> Tree {
    let gateway = &plan.gateway;
    let mut components = Components::new(plan);
    let mut paths: Vec<(String, Tree)> = Vec::new();
    for route in &gateway.routes {
        if let Some(dialect) = route.variants.default_dialect() {
            let operation = self::operation(gateway, route, dialect, &mut components);
            add(&mut paths, &route.path, &route.method, operation);
        }
    }
    let errors = gateway.routes.first().and_then(|r| r.variants.default_dialect());
    for route in &gateway.static_routes {
        let operation = self::static_route(gateway, route, errors.map(|d| &**d), &mut components);
        add(&mut paths, &route.path, &route.method, operation);
    }
    if let Some(path) = &gateway.metrics {
        add(&mut paths, path, "GET", metrics());
    }
    // A route with the same path takes precedence.
    if let Some(path) = gateway.status_path().filter(|path| !paths.iter().any(|(known, _)| known == path)) {
        add(&mut paths, path, "GET", status());
    }
    for (path, item) in operational.iter().filter(|_| gateway.docs == Docs::Public) {
        let mut item = item.clone();
        if let Tree::Map(operations) = &mut item {
            // They require no API key.
            operations.iter_mut().for_each(|(_, operation)| operation.insert("security", Tree::from(Vec::new())));
        }
        paths.push((path.clone(), item));
    }
    let mut info = vec![
        ("title", Tree::from("Reframe")),
        ("description", Tree::from("The API of this gateway, generated from its active mappings.")),
        ("version", Tree::from(env!("CARGO_PKG_VERSION"))),
    ];
    if let Some(generation) = generation {
        let generation =
            [("number", Tree::from(generation.number as i64)), ("hash", Tree::from(generation.digest.as_str()))];
        info.push(("x-generation", Tree::map(generation)));
    }
    let closed = gateway.auth == Auth::Keys && !gateway.api_keys.is_empty();
    let mut members = vec![
        ("openapi", Tree::from("3.1.0")),
        ("info", Tree::map(info)),
        ("servers", Tree::from(vec![Tree::map([("url", Tree::from("/"))])])),
    ];
    if closed {
        // If no key is set at run time, none is required: the document lists both alternatives.
        let bearer = Tree::map([("bearer", Tree::from(Vec::new()))]);
        members.push(("security", Tree::from(vec![bearer, Tree::Map(Vec::new())])));
    }
    members.push(("paths", Tree::map(paths)));
    let mut parts = vec![("schemas", components.schemas())];
    if closed {
        let scheme = Tree::map([("type", Tree::from("http")), ("scheme", Tree::from("bearer"))]);
        parts.push(("securitySchemes", Tree::map([("bearer", scheme)])));
    }
    members.push(("components", Tree::map(parts)));
    Tree::map(members)
}

/// The same document as YAML.
pub fn yaml(document: &Tree) -> String {
    let value: serde_json::Value = serde_json::from_str(&document.to_json()).unwrap_or_default();
    serde_yaml::to_string(&value).unwrap_or_default()
}

fn add(paths: &mut Vec<(String, Tree)>, path: &str, method: &str, operation: Tree) {
    let method = method.to_ascii_lowercase();
    match paths.iter_mut().find(|(p, _)| p == path) {
        Some((_, item)) => item.insert(method, operation),
        None => paths.push((path.to_owned(), Tree::map([(method, operation)]))),
    }
}

fn operation(gateway: &GatewayPlan, route: &RoutePlan, dialect: &DialectPlan, components: &mut Components) -> Tree {
    let request = dialect.request.schema.as_ref().map(|s| s.name.as_str());
    let mut request_body = vec![("schema", request.map_or_else(any, |name| components.reference(name)))];
    if let Some((_, body)) = gateway.example.as_ref().filter(|(path, _)| *path == route.path) {
        request_body.push(("example", Tree::parse(body.as_bytes()).unwrap_or_default()));
    }
    let profile = route.profile.as_ref().map_or(String::new(), |p| format!(", profile `{p}`"));
    let title = request.and_then(|name| components.title(name));
    let body = dialect.body.schema.as_ref().map_or_else(any, |s| components.reference(&s.name));
    let stream = stream(dialect, components);
    let content_type = dialect.encoding.content_type.split(';').next().unwrap_or_default().trim().to_owned();
    let content = vec![
        ("application/json".to_owned(), Tree::map([("schema", body)])),
        (content_type, Tree::map([("schema", stream)])),
    ];
    let mut answer = vec![
        ("description", Tree::from("The response: JSON, or a stream if the request has `stream: true`.")),
        ("headers", gateway_headers(gateway)),
    ];
    answer.push(("content", Tree::map(content)));
    let mut responses = vec![("200".to_owned(), Tree::map(answer))];
    responses.extend(errors(gateway, Some(dialect), ROUTE_ERRORS, components));
    let mut members = vec![
        ("operationId", Tree::from(operation_id(&route.method, &route.path))),
        ("summary", Tree::from(title.unwrap_or_else(|| format!("The dialect `{}`", route.dialect)))),
        ("description", Tree::from(format!("Dialect `{}`{profile}.", route.dialect))),
        ("tags", Tree::from(vec![Tree::from(route.dialect.as_str())])),
    ];
    // The schemas are those of a client that sends no policy header; the headers it may send are listed as parameters.
    let choices: Vec<Tree> = route.variants.choices(|_| None).iter().map(parameter).collect();
    if !choices.is_empty() {
        members.push(("parameters", Tree::from(choices)));
    }
    members.extend([
        (
            "requestBody",
            Tree::map([
                ("required", Tree::from(true)),
                ("content", Tree::map([("application/json", Tree::map(request_body))])),
            ]),
        ),
        ("responses", Tree::map(responses)),
    ]);
    Tree::map(members)
}

/// A header by which a client selects the value of a policy.
fn parameter(choice: &HeaderChoice) -> Tree {
    let words = choice.words.iter().map(|word| Tree::from(word.as_str())).collect::<Vec<_>>();
    Tree::map([
        ("name", Tree::from(choice.header.as_str())),
        ("in", Tree::from("header")),
        ("description", Tree::from(format!("Selects the value of the policy `{}`.", choice.policy))),
        ("required", Tree::from(false)),
        ("schema", Tree::map([("type", Tree::from("string")), ("enum", Tree::from(words))])),
    ])
}

/// The schema of the stream: one of the data schemas of its events.
fn stream(dialect: &DialectPlan, components: &mut Components) -> Tree {
    let mut kinds: Vec<(String, Tree)> = Vec::new();
    let frames = crate::domain::MomentKind::ALL.iter().flat_map(|m| dialect.frames(*m));
    for frame in frames.filter(|f| matches!(f.content, FrameContent::Data(_))) {
        let schema = frame.schema.as_ref().map_or_else(any, |s| components.reference(&s.name));
        if !kinds.iter().any(|(_, known)| *known == schema) {
            kinds.push((frame.name.to_string(), schema));
        }
    }
    let description = "The data of each event is one of these; a final event may be plain text.";
    Tree::map([
        ("description", Tree::from(description)),
        ("oneOf", Tree::from(kinds.into_iter().map(|(_, schema)| schema).collect::<Vec<_>>())),
    ])
}

fn static_route(
    gateway: &GatewayPlan,
    route: &StaticRoute,
    dialect: Option<&DialectPlan>,
    components: &mut Components,
) -> Tree {
    let answer = Tree::map([
        ("description", Tree::from("A response from the gateway's configuration.")),
        ("headers", gateway_headers(gateway)),
        (
            "content",
            Tree::map([("application/json", Tree::map([("schema", Tree::map([("type", Tree::from("object"))]))]))]),
        ),
    ]);
    let mut responses = vec![("200".to_owned(), answer)];
    let codes: &[(&str, &str)] = if route.prefix().is_some() { &[UNAUTHORIZED, UNKNOWN] } else { &[UNAUTHORIZED] };
    responses.extend(errors(gateway, dialect, codes, components));
    let mut members = vec![
        ("operationId", Tree::from(operation_id(&route.method, &route.path))),
        ("summary", Tree::from("Static route of the gateway")),
        ("tags", Tree::from(vec![Tree::from("models")])),
    ];
    if route.prefix().is_some() {
        let parameter = Tree::map([
            ("name", Tree::from("model")),
            ("in", Tree::from("path")),
            ("required", Tree::from(true)),
            ("schema", Tree::map([("type", Tree::from("string"))])),
        ]);
        members.push(("parameters", Tree::from(vec![parameter])));
    }
    members.push(("responses", Tree::map(responses)));
    Tree::map(members)
}

fn metrics() -> Tree {
    let description = "Counters, gauges and histograms.";
    telemetry("metrics", "Metrics for Prometheus", description, "application/openmetrics-text", "string")
}

fn status() -> Tree {
    let description = "The current generation, the last rejected set, the turns in flight and the number of reloads.";
    telemetry("status", "Status of the gateway", description, "application/json", "object")
}

fn telemetry(id: &str, summary: &str, description: &str, content_type: &str, kind: &str) -> Tree {
    let schema = Tree::map([("schema", Tree::map([("type", Tree::from(kind))]))]);
    let answer =
        Tree::map([("description", Tree::from(description)), ("content", Tree::map([(content_type, schema)]))]);
    Tree::map([
        ("operationId", Tree::from(id)),
        ("summary", Tree::from(summary)),
        ("tags", Tree::from(vec![Tree::from("operations")])),
        ("responses", Tree::map([("200", answer)])),
    ])
}

const UNAUTHORIZED: (&str, &str) = ("401", "The API key is missing or unknown.");
const UNKNOWN: (&str, &str) = ("404", "Unknown model.");
const ROUTE_ERRORS: &[(&str, &str)] = &[
    ("400", "Invalid request; `param` names the field."),
    UNAUTHORIZED,
    UNKNOWN,
    ("413", "The request body is too large."),
    ("429", "The backend's rate limit is reached."),
    ("500", "The gateway failed, or its response violates its schema."),
    ("502", "The backend failed, or its response was incomplete."),
    ("503", "The concurrency limit is reached, or the backend is unavailable."),
    ("504", "The backend timed out."),
];

fn errors(
    gateway: &GatewayPlan,
    dialect: Option<&DialectPlan>,
    codes: &[(&str, &str)],
    components: &mut Components,
) -> Vec<(String, Tree)> {
    let schema = dialect.and_then(|d| d.errors.schema.as_ref()).map_or_else(any, |s| components.reference(&s.name));
    let one = |(code, description): &(&str, &str)| {
        let mut headers = gateway_headers(gateway);
        if matches!(*code, "429" | "503") {
            headers.insert("retry-after", header("Seconds to wait before a retry.", "integer"));
        }
        let content = Tree::map([("application/json", Tree::map([("schema", schema.clone())]))]);
        let response =
            Tree::map([("description", Tree::from(*description)), ("headers", headers), ("content", content)]);
        ((*code).to_owned(), response)
    };
    codes.iter().map(one).collect()
}

fn gateway_headers(gateway: &GatewayPlan) -> Tree {
    let names = &gateway.headers;
    let mut headers = Tree::map([(names.request_id.0.clone(), header("The id of this request in the log.", "string"))]);
    if let Some(name) = &names.elapsed_ms {
        headers.insert(name.0.clone(), header("Milliseconds until the response headers were sent.", "integer"));
    }
    let dropped = header("Request fields that were dropped because the backend does not support them.", "string");
    headers.insert(names.dropped.0.clone(), dropped);
    headers
}

fn header(description: &str, kind: &str) -> Tree {
    let schema = Tree::map([("type", Tree::from(kind))]);
    Tree::map([("description", Tree::from(description)), ("schema", schema)])
}

fn any() -> Tree {
    Tree::Map(Vec::new())
}

/// `POST /v1/chat/completions` → `post_v1_chat_completions`
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    std::iter::once(method.to_ascii_lowercase()).chain(words.map(str::to_owned)).collect::<Vec<_>>().join("_")
}
