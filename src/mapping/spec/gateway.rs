//! gateway.yaml.

use super::capabilities::Capabilities;
use super::notation::{
    Anything, Bytes, Duration, Generated, HeaderName, Line, List, Map, NameOf, NonEmptyList, exactly_one, or_null,
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

/// Where to listen, which models and routes there are, how much is allowed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "gateway.yaml")]
pub struct Gateway {
    /// `HOST:PORT`; port 0 picks a free one. `--listen` and `PORT` come first; read at the start only.
    #[schemars(extend("default" = "127.0.0.1:8080"))]
    pub listen: Option<String>,
    /// What becomes of a frame that breaks its schema or comes out of order: `strict` ends the turn with a fault, `report` logs
    /// it and lets it pass, `off` does not look.
    #[schemars(extend("default" = Validation::Strict.name()))]
    pub validation: Option<NameOf<Validation>>,
    /// The backends that models can name.
    pub backends: Map<Backend>,
    /// The models, the first that matches. An unknown model is 404.
    pub models: NonEmptyList<Model>,
    /// What is spoken at which endpoint. An unknown path is refused in the words of the first route's dialect.
    pub routes: NonEmptyList<Route>,
    /// What clients of some names get at every route: the first rule whose word is in the `User-Agent`.
    pub by_user_agent: Option<List<AgentRule>>,
    /// Answers that need no backend.
    pub static_routes: Option<List<Page>>,
    /// How much is allowed.
    pub limits: Option<Limits>,
    /// How long things may take; what is late is a `timeout`.
    pub timeouts: Option<Timeouts>,
    /// An SSE comment for a stream that is silent.
    pub keepalive: Option<Keepalive>,
    /// The keys that clients may show as `Authorization: Bearer KEY`. A key that is not set is none; without any, only this
    /// machine may ask.
    pub api_keys: Option<List<ClientKey>>,
    /// `keys`: a client shows one of them. `none`: anybody may ask, from anywhere.
    #[schemars(extend("default" = Auth::Keys.name()))]
    pub auth: Option<NameOf<Auth>>,
    /// What our own headers are called.
    pub headers: Option<Headers>,
    /// The path where the metrics are.
    pub metrics: Option<String>,
    /// The path where the gateway tells how it is: the generation that serves, what was refused last and why, the turns under
    /// way; or `off`. Whoever may ask a model may ask for it; where anybody may (`auth: none`) it is told only if it is named here.
    #[schemars(extend("default" = DEFAULT_STATUS_PATH, "pattern" = "^(/|off$)"))]
    pub status: Option<String>,
    /// A second listener, for those who run the gateway: `POST /admin/reload`, `GET /status`, `GET /metrics`. On this machine only;
    /// read at the start only. Default: there is none.
    pub admin: Option<Admin>,
    /// The OpenAPI document at `/openapi.json` and `/openapi.yaml`, the schemas below `/schemas/` and a page to read them at
    /// `/docs`; `off`: none of them. They need no key.
    #[schemars(extend("default" = Docs::Public.name()))]
    pub docs: Option<NameOf<Docs>>,
    /// A request that works when pasted; printed at the start.
    pub example: Option<Example>,
}

/// A backend that models can name: a backend file, where it is, and how it is asked. A replay backend has `script`, one that is
/// dialled has `url`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Backend {
    /// The name in a backend file: what it says after `backend:`.
    #[schemars(rename = "use")]
    pub file: String,
    /// What a replay backend plays: the name of a script.
    pub script: Option<String>,
    /// Where it is: scheme, host and path. The paths of the backend file come behind it.
    pub url: Option<String>,
    /// The key that it is shown.
    pub api_key: Option<KeySource>,
    /// As those of the gateway, for this backend.
    pub timeouts: Option<Timeouts>,
    /// Link-local and metadata addresses that are meant; all others of that kind are refused.
    pub allow_addresses: Option<List<String>>,
    #[schemars(flatten)]
    pub capabilities: Capabilities,
}

/// Where a secret is kept: exactly one of the two. A key never stands in a mapping.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["env", "file"])))]
pub struct KeySource {
    /// The name of an environment variable.
    pub env: Option<String>,
    /// The path of a file that holds it.
    pub file: Option<String>,
}

/// A model, by its `id` or by a pattern, and the backend that serves it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["id", "match"])))]
pub struct Model {
    /// Its name.
    pub id: Option<String>,
    /// A prefix before the only `*`; `"*"` takes all.
    #[schemars(rename = "match", extend("pattern" = "^[^*]*\\*$"))]
    pub pattern: Option<String>,
    /// One of `backends:`.
    pub backend: String,
}

/// What is spoken at an endpoint.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Route {
    /// Method and path: `POST /path`. The path is compared whole.
    #[schemars(schema_with = "endpoint")]
    pub endpoint: String,
    /// The name of a dialect.
    pub dialect: String,
    /// The name of a profile.
    pub profile: Option<String>,
    /// Policies that hold at this route: they come after those of the profile and of its `environment:`.
    #[schemars(default, schema_with = "policies::of_dialect", title = "route policies")]
    pub policies: Generated,
    /// Headers with which a client chooses a policy of this route: header to policy. A client can say nothing but the words of
    /// the policy; another one is 400.
    #[schemars(default, schema_with = "headers", title = "header to policy")]
    pub headers: Generated,
    /// As that of the gateway, for this route. Default: the gateway's.
    pub validation: Option<NameOf<Validation>>,
}

/// What a client gets whose user agent has a word in it: at least one of `profile` and `policies`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("anyOf" = exactly_one(["profile", "policies"])))]
pub struct AgentRule {
    /// Text that is somewhere in the `User-Agent`; upper and lower case are one.
    #[schemars(rename = "match", extend("minLength" = 1))]
    pub word: String,
    /// The name of a profile that is used instead of the route's. What it sets comes after the route's policies.
    pub profile: Option<String>,
    /// Named choices: a value for every dialect, or dialect to value. They come after those of the profile.
    #[schemars(default, schema_with = "policies::of_profile", title = "rule policies")]
    pub policies: Generated,
}

/// A listener for those who run the gateway.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Admin {
    /// `HOST:PORT` of this machine; port 0 picks a free one. `--admin` comes first.
    pub listen: String,
    /// Where the token is kept that its callers show as `Authorization: Bearer TOKEN`. Default: in the environment, as
    /// `REFRAME_ADMIN_TOKEN`.
    pub token: Option<KeySource>,
}

/// A fixed answer made from what the gateway knows.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Page {
    /// Method and path; a last segment `{model}` takes the rest of the path.
    #[schemars(schema_with = "endpoint")]
    pub endpoint: String,
    /// The answer. It sees `models`, `build.version` and, if the path ends in `{model}`, `model`.
    pub body: Skeleton,
}

/// How much is allowed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Limits {
    /// Of a request.
    #[schemars(extend("default" = mebibytes(Allowed::default().body_bytes)))]
    pub body_bytes: Option<Bytes>,
    /// Answers under way at once.
    #[schemars(extend("default" = Allowed::default().streams, "minimum" = 0))]
    pub streams: Option<i64>,
    /// Of one event of a backend.
    #[schemars(extend("default" = mebibytes(Allowed::default().event_bytes)))]
    pub event_bytes: Option<Bytes>,
    /// Of a backend's answer that becomes one JSON body.
    #[schemars(extend("default" = mebibytes(Allowed::default().answer_bytes)))]
    pub answer_bytes: Option<Bytes>,
}

/// How long things may take.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Timeouts {
    /// Until the backend is reached.
    #[schemars(extend("default" = shown(Times::default().connect)))]
    pub connect: Option<Duration>,
    /// Until the turn begins.
    #[schemars(extend("default" = shown(Times::default().first_event)))]
    pub first_event: Option<Duration>,
    /// Between two pieces of the backend's answer.
    #[schemars(extend("default" = shown(Times::default().idle)))]
    pub idle: Option<Duration>,
    /// Of a JSON answer.
    #[schemars(extend("default" = shown(Times::default().overall)))]
    pub overall: Option<Duration>,
    /// Of a whole stream. A stream that goes on is healthy.
    #[schemars(extend("default" = shown(Times::default().stream)))]
    pub stream: Option<Duration>,
}

/// The comment that keeps a silent stream open, and who does not want it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Keepalive {
    /// After how long a silence, also before the first event; `none` turns it off.
    #[schemars(extend("default" = shown(Comment::default().interval)))]
    pub every: Option<Duration>,
    /// Its text; `{now_ms}` in it is the time.
    #[schemars(extend("default" = Comment::default().comment))]
    pub comment: Option<Line>,
    /// Who does not want it.
    pub disable_for: Option<Unless>,
}

/// Who does not want comments.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Unless {
    /// A header with the value 1.
    pub header: Option<String>,
    /// A query parameter with the value 1.
    pub query: Option<String>,
    /// Words in the user agent.
    pub user_agents: Option<List<String>>,
}

/// A key that clients may show.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClientKey {
    /// The name that logs know it by.
    pub name: String,
    /// Where it is kept.
    pub secret: KeySource,
}

/// What our own headers are called.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Headers {
    /// The id of a request.
    #[schemars(extend("default" = HeaderNames::default().request_id))]
    pub request_id: Option<HeaderName>,
    /// What of a request did not reach the backend.
    #[schemars(extend("default" = HeaderNames::default().dropped))]
    pub dropped: Option<HeaderName>,
    /// How long the head took, in milliseconds. Default: it is not said.
    pub elapsed_ms: Option<HeaderName>,
}

/// A request that works when pasted.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Example {
    /// The path of a route.
    pub path: String,
    /// What is sent there.
    pub body: Anything,
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
