//! gateway.yaml.

use super::capabilities::Capabilities;
use super::notation::{
    AnyValue, Bytes, Duration, Generated, HeaderName, Line, List, Map, NameOf, NonEmptyList, exactly_one, or_null,
};
use super::policies;
use super::skeleton::Skeleton;
use crate::domain::policy::BUILT_IN;
use crate::mapping::config::admin::DEFAULT_STATUS_PATH;
use crate::mapping::config::gateway::{Auth, Docs, Limits as Allowed, METHODS, Validation};
use crate::mapping::config::headers::HeaderNames;
use crate::mapping::config::timeouts::{Keepalive as Comment, Timeouts as Times};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::time;

/// Where the server listens, which models and routes exist, and which limits apply.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "gateway.yaml")]
pub struct Gateway {
    /// `HOST:PORT`; port 0 picks a free port. `--listen` and `PORT` take precedence; read at startup only.
    #[schemars(extend("default" = "127.0.0.1:8080"))]
    pub listen: Option<String>,
    /// What happens to a frame that violates its schema or the order of its dialect: `strict` ends the turn with a
    /// fault, `report` logs the violation and sends the frame, `off` does not check.
    #[schemars(extend("default" = Validation::Strict.name()))]
    pub validation: Option<NameOf<Validation>>,
    /// The backends that models refer to, by name.
    pub backends: Map<Backend>,
    /// The models; the first match is used. An unknown model is a 404.
    pub models: NonEmptyList<Model>,
    /// Which dialect each endpoint serves. A request to an unknown path is rejected in the error format of the first
    /// route's dialect.
    pub routes: NonEmptyList<Route>,
    /// Other profiles or policies for some clients, at every route: the first rule that matches the `User-Agent` is
    /// used.
    pub by_user_agent: Option<List<UserAgentRule>>,
    /// Responses that need no backend.
    pub static_routes: Option<List<StaticRoute>>,
    /// Limits on sizes and concurrency.
    pub limits: Option<Limits>,
    /// Time limits. Exceeding one is a fault of the kind `timeout`.
    pub timeouts: Option<Timeouts>,
    /// SSE comments in silent streams.
    pub keepalive: Option<Keepalive>,
    /// The API keys that clients may send as `Authorization: Bearer KEY`. A key from an unset variable is ignored; if
    /// no key is configured, only local requests are accepted.
    pub api_keys: Option<List<ApiKey>>,
    /// `keys`: clients must send one of `api_keys`. `none`: every client is accepted, from anywhere.
    #[schemars(extend("default" = Auth::Keys.name()))]
    pub auth: Option<NameOf<Auth>>,
    /// The names of the gateway's own headers.
    pub headers: Option<Headers>,
    /// The path of the metrics.
    pub metrics: Option<String>,
    /// The path of the status document, or `off`: the current generation, the last rejected set with its diagnostics,
    /// the turns in flight. It requires the same key as a model request. With `auth: none` it is served only if the
    /// path is set explicitly.
    #[schemars(extend("default" = DEFAULT_STATUS_PATH, "pattern" = "^(/|off$)"))]
    pub status: Option<String>,
    /// A second listener for administrators: `POST /admin/reload`, `GET /status`, `GET /metrics`. Local addresses only;
    /// read at startup only. Default: none.
    pub admin: Option<Admin>,
    /// The OpenAPI document at `/openapi.json` and `/openapi.yaml`, the schemas below `/schemas/`, and a page to browse
    /// them at `/docs`. They need no key; `off` disables all of them.
    #[schemars(extend("default" = Docs::Public.name()))]
    pub docs: Option<NameOf<Docs>>,
    /// A request that works when pasted; printed at startup.
    pub example: Option<Example>,
}

/// A backend that models refer to: its backend file, its address, and overrides of its capabilities. A replay backend
/// has `script`, an HTTP backend has `url`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Backend {
    /// The name of a backend file: the value of its key `backend:`.
    #[schemars(rename = "use")]
    pub file: String,
    /// The name of the script that a replay backend plays.
    pub script: Option<String>,
    /// Scheme, host and path. The paths of the backend file are appended to it.
    pub url: Option<String>,
    /// The key that is sent to the backend.
    pub api_key: Option<SecretSource>,
    /// Overrides `timeouts` of the gateway, key by key.
    pub timeouts: Option<Timeouts>,
    /// IP addresses that are exempt from the address check: other link-local and cloud metadata addresses are rejected.
    pub allow_addresses: Option<List<String>>,
    #[schemars(flatten)]
    pub capabilities: Capabilities,
}

/// Where a secret is stored: exactly one of the two. A secret is never written into a mapping.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["env", "file"])))]
pub struct SecretSource {
    /// The name of an environment variable.
    pub env: Option<String>,
    /// The path of a file that contains it.
    pub file: Option<String>,
}

/// A model, by its `id` or by a pattern, and the backend that serves it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["id", "match"])))]
pub struct Model {
    /// The name of the model.
    pub id: Option<String>,
    /// A prefix before the only `*`; `"*"` matches every model.
    #[schemars(rename = "match", extend("pattern" = "^[^*]*\\*$"))]
    pub pattern: Option<String>,
    /// The name of one of `backends:`.
    pub backend: String,
}

/// An endpoint and the dialect that it serves.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Route {
    /// Method and path: `POST /path`. The path must match exactly.
    #[schemars(schema_with = "endpoint")]
    pub endpoint: String,
    /// The name of a dialect.
    pub dialect: String,
    /// The name of a profile.
    pub profile: Option<String>,
    /// Policies of this route. They take precedence over those of the profile and its `environment:`.
    #[schemars(default, schema_with = "policies::of_dialect", title = "route policies")]
    pub policies: Generated,
    /// Request headers that let a client choose a policy: header to policy. Only the values of the policy are accepted;
    /// any other value is a 400.
    #[schemars(default, schema_with = "headers", title = "header to policy")]
    pub headers: Generated,
    /// Overrides `validation` of the gateway. Default: the gateway's.
    pub validation: Option<NameOf<Validation>>,
}

/// A rule for clients with a text in their `User-Agent`: at least one of `profile` and `policies`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("anyOf" = exactly_one(["profile", "policies"])))]
pub struct UserAgentRule {
    /// A text that the `User-Agent` contains, compared without case.
    #[schemars(rename = "match", extend("minLength" = 1))]
    pub word: String,
    /// The name of a profile that replaces the route's. Its settings take precedence over the route's policies.
    pub profile: Option<String>,
    /// Policies: a value for every dialect, or dialect to value. They take precedence over those of the profile.
    #[schemars(default, schema_with = "policies::of_profile", title = "rule policies")]
    pub policies: Generated,
}

/// A listener for administrators.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Admin {
    /// A local `HOST:PORT`; port 0 picks a free port. `--admin` takes precedence.
    pub listen: String,
    /// The token that callers send as `Authorization: Bearer TOKEN`. Default: the environment variable
    /// `REFRAME_ADMIN_TOKEN`.
    pub token: Option<SecretSource>,
}

/// A response that needs no backend.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StaticRoute {
    /// Method and path; a last segment `{model}` matches the rest of the path.
    #[schemars(schema_with = "endpoint")]
    pub endpoint: String,
    /// The response body. It sees `models`, `build.version` and, if the path ends in `{model}`, `model`.
    pub body: Skeleton,
}

/// Limits on sizes and concurrency.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Limits {
    /// The size of a request body.
    #[schemars(extend("default" = mebibytes(Allowed::default().body_bytes)))]
    pub body_bytes: Option<Bytes>,
    /// The number of turns in flight, streamed or not; more are rejected with 503.
    #[schemars(extend("default" = Allowed::default().streams, "minimum" = 1))]
    pub streams: Option<i64>,
    /// The size of one event of a backend.
    #[schemars(extend("default" = mebibytes(Allowed::default().event_bytes)))]
    pub event_bytes: Option<Bytes>,
    /// The size of a backend's response that becomes one JSON body.
    #[schemars(extend("default" = mebibytes(Allowed::default().answer_bytes)))]
    pub answer_bytes: Option<Bytes>,
}

/// Time limits.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Timeouts {
    /// Connecting to the backend.
    #[schemars(extend("default" = shown(Times::default().connect)))]
    pub connect: Option<Duration>,
    /// The time until the turn begins.
    #[schemars(extend("default" = shown(Times::default().first_event)))]
    pub first_event: Option<Duration>,
    /// The time between two chunks of the backend's response.
    #[schemars(extend("default" = shown(Times::default().idle)))]
    pub idle: Option<Duration>,
    /// A whole JSON response.
    #[schemars(extend("default" = shown(Times::default().overall)))]
    pub overall: Option<Duration>,
    /// A whole stream. Off by default, because a long stream is healthy while it makes progress.
    #[schemars(extend("default" = shown(Times::default().stream)))]
    pub stream: Option<Duration>,
}

/// SSE comments that keep a silent stream open.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Keepalive {
    /// The interval in a silent stream, also before the first event; `none` turns comments off.
    #[schemars(extend("default" = shown(Comment::default().interval)))]
    pub every: Option<Duration>,
    /// The text of the comment; `{now_ms}` in it is the current time.
    #[schemars(extend("default" = Comment::default().comment))]
    pub comment: Option<Line>,
    /// Requests without comments.
    pub disable_for: Option<DisableFor>,
}

/// Requests that turn keepalive comments off.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DisableFor {
    /// A header with the value 1.
    pub header: Option<String>,
    /// A query parameter with the value 1.
    pub query: Option<String>,
    /// Texts in the user agent.
    pub user_agents: Option<List<String>>,
}

/// An API key of clients.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "API key")]
pub struct ApiKey {
    /// The name of the key in logs.
    pub name: String,
    /// Where the key is stored.
    pub secret: SecretSource,
}

/// The names of the gateway's own headers.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Headers {
    /// The id of the request.
    #[schemars(extend("default" = HeaderNames::default().request_id))]
    pub request_id: Option<HeaderName>,
    /// The request fields that did not reach the backend.
    #[schemars(extend("default" = HeaderNames::default().dropped))]
    pub dropped: Option<HeaderName>,
    /// The time until the response headers, in milliseconds. Default: not sent.
    pub elapsed_ms: Option<HeaderName>,
}

/// A request that works when pasted.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Example {
    /// The path of a route.
    pub path: String,
    /// The request body.
    pub body: AnyValue,
}

fn endpoint(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^({}) \\s*/", METHODS.join("|")) })
}

fn headers(generator: &mut SchemaGenerator) -> Schema {
    let name = generator.subschema_for::<HeaderName>();
    let lists: Vec<&str> = BUILT_IN.iter().filter(|p| p.list).map(|p| p.name).collect();
    let policy = json!({ "type": "string", "not": { "enum": lists } });
    or_null(json_schema!({ "propertyNames": name, "additionalProperties": policy }))
}

fn mebibytes(bytes: usize) -> String {
    format!("{}MiB", bytes >> 20)
}

fn shown(time: Option<time::Duration>) -> String {
    time.map_or("none".to_owned(), |t| format!("{}s", t.as_secs()))
}
