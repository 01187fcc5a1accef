//! gateway.yaml: listen address, backends, models, routes, authentication, limits.

use super::admin::{AdminListener, DEFAULT_STATUS_PATH, LiteralPath, StatusEndpoint};
use super::backend::BackendPlan;
use super::backend_address::BackendEntry;
use super::client_keys::{Auth, ClientKey};
use super::cors::{Cors, CorsPlan};
use super::gateway_backends::{self, Backend};
use super::gateway_paths;
use super::headers::HeaderNames;
use super::limits::Limits;
use super::logs::{LogSection, LogsPlan};
use super::metric_aliases::{MetricAliasEntry, MetricAliases};
use super::models::{Model, ModelEntry, ModelMatch};
use super::profile_gateway::{GatewayVariable, UnknownVariable};
use super::route::{RouteEntry, RoutePlan, UserAgentEntry, UserAgentRule};
use super::schemas::SchemaCache;
use super::script::ScriptPlan;
use super::static_routes::{StaticRoute, StaticRouteEntry};
use super::telemetry::{Telemetry, UsageLogPlan, UsageLogSection};
use super::timeouts::{ClientTimeouts, Drain, GatewayTimeouts, Keepalive, Timeouts};
use crate::diagnostics::Span;
use crate::domain::named_enum;
use crate::mapping::grammar::collections::{Elements, Entries, List, Map, NonEmptyList};
use crate::mapping::grammar::notation::{AnyValue, NameOf, Spanned, notation_schema, text_notation};
use crate::mapping::grammar::{At, FromNode, Required, Section, section};
use crate::mapping::language::scope::PolicyWords;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug)]
pub struct GatewayPlan {
    pub listen: Option<String>,
    /// Instead of the host in `listen`.
    pub listen_host: Option<String>,
    pub validation: Validation,
    pub backends: Vec<Backend>,
    pub models: Vec<Model>,
    pub routes: Vec<RoutePlan>,
    /// The first rule with a pattern that occurs in the client's user agent applies.
    pub by_user_agent: Vec<UserAgentRule>,
    pub static_routes: Vec<StaticRoute>,
    /// A working example request for the banner: endpoint path and body.
    pub example: Option<(String, String)>,
    pub limits: Limits,
    pub keepalive: Keepalive,
    pub drain: Drain,
    /// Defaults for backends without their own.
    pub timeouts: Timeouts,
    pub client_timeouts: ClientTimeouts,
    /// The API keys that clients may use.
    pub api_keys: Vec<ClientKey>,
    pub auth: Auth,
    /// Keys that the server does not accept on an address that is not local.
    pub refused_keys: Vec<String>,
    pub protected: Protected,
    pub cors: Option<CorsPlan>,
    /// Path of the metrics endpoint.
    pub metrics: Option<String>,
    pub status: StatusEndpoint,
    pub admin: Option<AdminListener>,
    pub headers: HeaderNames,
    pub telemetry: Telemetry,
    pub usage_log: Option<UsageLogPlan>,
    pub logs: Arc<LogsPlan>,
    pub metric_aliases: MetricAliases,
    pub docs: Docs,
    pub pinned_spans: PinnedSpans,
    /// The headers of clients that a dialect reads or a backend gets.
    pub client_headers: Vec<String>,
    /// The settings that environment variables of the chosen profile made.
    pub variables: Vec<GatewayVariable>,
    /// Environment variables that look as if a profile should know them.
    pub unknown_variables: Vec<UnknownVariable>,
}

/// Which of the gateway's own endpoints need an API key.
#[derive(Clone, Copy, Debug)]
pub struct Protected {
    pub models: bool,
    pub metrics: MetricsProtection,
    pub status: bool,
}

/// Which clients need an API key for the metrics: written as a boolean or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsProtection {
    All,
    /// Those on other machines.
    Remote,
    None,
}

impl<'n> FromNode<'n> for MetricsProtection {
    fn from_node(node: &'n Node, at: At) -> Option<MetricsProtection> {
        match &node.kind {
            YamlKind::Bool(true) => Some(MetricsProtection::All),
            YamlKind::Bool(false) => Some(MetricsProtection::None),
            YamlKind::Text(word) if word == "remote" => Some(MetricsProtection::Remote),
            _ => {
                at.cx.wrong_value(node, "true, false or `remote`", "remote");
                None
            }
        }
    }

    fn shown(&self) -> Option<Value> {
        (*self == MetricsProtection::All).then_some(Value::Bool(true))
    }
}

notation_schema!(MetricsProtection, { "enum": [true, false, "remote"] });

/// Spans of the settings that are read only at start, where they are present.
#[derive(Clone, Copy, Debug, Default)]
pub struct PinnedSpans {
    pub listen: Option<Span>,
    pub admin: Option<Span>,
    pub api_keys: Option<Span>,
    pub auth: Option<Span>,
}

named_enum! {
    /// Whether the OpenAPI document, the schemas and the API documentation are served.
    pub enum Docs {
        Public = "public",
        Off = "off",
    }
}

named_enum! {
    /// What happens to a frame that violates its schema or its order.
    pub enum Validation {
        Strict = "strict",
        Report = "report",
        Off = "off",
    }
}

impl GatewayPlan {
    /// Call once the dialects of all routes are compiled.
    pub fn collect_client_headers(&mut self) {
        let settings = self.backends.iter().filter_map(|backend| Some(&backend.address.as_ref()?.settings));
        let forwarded = settings.flat_map(|s| s.capabilities.forwarded_headers()).map(|header| &header.value.0);
        let dialects = self.routes.iter().filter_map(|route| route.variants.default_dialect());
        let read = dialects.flat_map(|dialect| &dialect.request.head_parameters);
        let read = read.filter(|(part, _)| part == "headers").map(|(_, name)| name);
        let mut names: Vec<String> = forwarded.chain(read).cloned().collect();
        names.sort();
        names.dedup();
        self.client_headers = names;
    }

    /// How many turns of one client may be in flight. By default a client cannot take every slot if several
    /// clients can be distinguished. With a single key, or without one, everybody behind a proxy would share the limit.
    /// `key`: the name of its API key. `several_keys`: more than one key has a value.
    pub fn streams_per_client(&self, key: Option<&str>, several_keys: bool) -> usize {
        let of_key = self.api_keys.iter().find(|own| Some(own.name.as_str()) == key).and_then(|own| own.limits.streams);
        if let Some(limit) = of_key {
            return limit.0;
        }
        let streams = self.limits.streams.0;
        let default = if several_keys { streams.div_ceil(2) } else { streams };
        self.limits.streams_per_client.map_or(default, |limit| limit.0)
    }

    /// Path of the status endpoint. With `auth: none` there is no default path: the status would expose the file names
    /// of the set to every client.
    pub fn status_path(&self) -> Option<&str> {
        match &self.status {
            StatusEndpoint::Path(path) => Some(path),
            StatusEndpoint::Default => (self.auth != Auth::None).then_some(DEFAULT_STATUS_PATH),
            StatusEndpoint::Off => None,
        }
    }

    /// Whether a static route has what its response is about.
    pub fn serves(&self, route: &StaticRoute) -> bool {
        !route.reads_usage_log || self.usage_log.is_some()
    }
}

/// What gateway.yaml can refer to.
pub struct KnownNames<'k> {
    pub backends: &'k [Arc<BackendPlan>],
    /// Names of all backend files, also of those with errors.
    pub backend_names: &'k [&'k str],
    pub scripts: &'k [Arc<ScriptPlan>],
    pub script_names: &'k [&'k str],
    pub dialects: &'k [&'k str],
    pub profiles: &'k [&'k str],
    pub tables: &'k Tables,
    pub fragments: &'k [Entry],
    pub schemas: &'k SchemaCache<'k>,
    /// The policies of all dialects, with their values.
    pub policies: PolicyWords,
}

section! {
    /// Where the server listens, which models and routes exist, and which limits apply.
    #[subject = "gateway.yaml"]
    #[title = "gateway.yaml"]
    pub struct Gateway<'n> {
        /// `HOST:PORT`; port 0 picks a free port. `--listen` and `PORT` take precedence; read at startup only.
        #[extend("default" = "127.0.0.1:8080")]
        listen: Option<ListenAddress>,
        /// The host instead of the one in `listen`, and of 127.0.0.1 with `PORT`. `--listen` takes precedence; read at
        /// startup only.
        listen_host: Option<String>,
        /// What happens to a frame that violates its schema or the order of its dialect: `strict` ends the turn with a
        /// fault, `report` logs the violation and sends the frame, `off` does not check.
        validation: NameOf<Validation> = NameOf(Validation::Strict),
        /// The backends that models refer to, by name.
        backends: Required<Entries<'n, Map<BackendEntry<'n>>>>,
        /// The models; the first match is used. An unknown model is a 404.
        models: Required<NonEmptyList<ModelEntry>>,
        /// Which dialect each endpoint serves. A request to an unknown path is rejected in the error format of the
        /// first route's dialect.
        routes: Required<NonEmptyList<RouteEntry<'n>>>,
        /// Other profiles or policies for some clients, at every route: the first rule that matches the `User-Agent` is
        /// used.
        by_user_agent: Elements<'n, UserAgentEntry<'n>> = Elements::default(),
        /// Responses that need no backend.
        static_routes: List<StaticRouteEntry<'n>> = List::default(),
        /// Limits on sizes, concurrency and rates.
        limits: Limits = Limits::default(),
        /// Time limits. Exceeding one of a backend is a fault of the kind `timeout`.
        timeouts: GatewayTimeouts = GatewayTimeouts::DEFAULT,
        /// SSE comments in silent streams.
        keepalive: Keepalive = Keepalive::default(),
        /// What happens to requests in flight when the server is stopped.
        drain: Drain = Drain::default(),
        /// The API keys that clients may send, by default as `Authorization: Bearer KEY`. A key from an unset variable is ignored;
        /// if no key is configured, only local requests are accepted.
        api_keys: List<ClientKey> = List::default(),
        /// `keys`: clients must send one of `api_keys`. `none`: every client is accepted, from anywhere.
        auth: NameOf<Auth> = NameOf(Auth::Keys),
        /// API keys that everybody knows, such as those of examples: in addition to the built-in ones. The server does not start
        /// with one of them on an address that is not local.
        refused_keys: List<String> = List::default(),
        /// Whether the list of models needs a key: static routes that read `models` or `model`.
        protect_models: bool = true,
        /// Whether the metrics need a key. `remote`: only for clients on other machines, and for web pages.
        protect_metrics: MetricsProtection = MetricsProtection::All,
        /// Whether the status document needs a key.
        protect_status: bool = true,
        /// Which web pages of other origins may read the responses. Default: none, except for the API documentation.
        cors: Option<Cors>,
        /// The names of the gateway's own headers.
        headers: HeaderNames = HeaderNames::default(),
        /// The names of clients in logs and metrics.
        telemetry: Telemetry = Telemetry::default(),
        /// A file with one JSON record per turn. Default: none.
        usage_log: Option<UsageLogSection<'n>>,
        /// Logs with lines of your own, by name. Default: none.
        logs: Map<LogSection<'n>> = Map::default(),
        /// Metrics under other names, by name. Default: none.
        metric_aliases: Map<MetricAliasEntry<'n>> = Map::default(),
        /// The path of the metrics.
        metrics: Option<Spanned<LiteralPath>>,
        /// The path of the status document, or `off`: the current generation, the last rejected set with its
        /// diagnostics, the turns in flight. It requires the same key as a model request. With `auth: none` it is
        /// served only if the path is set explicitly.
        #[extend("default" = DEFAULT_STATUS_PATH)]
        status: Option<Spanned<StatusEndpoint>>,
        /// A second listener for administrators: `POST /admin/reload`, `GET /status`, `GET /metrics`. Local addresses
        /// only; read at startup only. Default: none.
        admin: Option<AdminListener>,
        /// The OpenAPI document at `/openapi.json` and `/openapi.yaml`, the schemas below `/schemas/`, and a page to
        /// browse them at `/docs`. They need no key; `off` disables all of them.
        docs: NameOf<Docs> = NameOf(Docs::Public),
        /// A request that works when pasted; printed at startup.
        example: Option<Example>,
    }
}

section! {
    /// A request that works when pasted.
    #[subject = "`example:`"]
    pub struct Example {
        /// The path of a route.
        path: Spanned<String>,
        /// The request body.
        body: AnyValue,
    }
}

pub fn parse(node: &Node, known: &KnownNames, cx: LoadContext) -> Option<GatewayPlan> {
    let fields = Gateway::open(node, "", cx)?;
    let gateway = Gateway::read_fields(&fields);
    fields.finish();
    compile(gateway?, node, known, cx)
}

fn compile(gateway: Gateway, node: &Node, known: &KnownNames, cx: LoadContext) -> Option<GatewayPlan> {
    let timeouts = gateway.timeouts.backend.or(Timeouts::DEFAULT);
    let mut plan = GatewayPlan {
        listen: gateway.listen.map(|address| address.0),
        listen_host: gateway.listen_host,
        validation: gateway.validation.0,
        backends: gateway
            .backends
            .iter()
            .filter_map(|entry| gateway_backends::backend(entry, timeouts, known, cx))
            .collect(),
        models: Vec::new(),
        routes: Vec::new(),
        by_user_agent: UserAgentRule::compile_list(&gateway.by_user_agent, known, cx),
        static_routes: gateway.static_routes.iter().filter_map(|entry| StaticRoute::new(entry, known, cx)).collect(),
        example: gateway.example.as_ref().map(|e| (e.path.value.clone(), e.body.0.to_json())),
        limits: gateway.limits,
        keepalive: gateway.keepalive,
        drain: gateway.drain,
        api_keys: gateway.api_keys.0,
        auth: gateway.auth.0,
        refused_keys: gateway.refused_keys.0,
        protected: Protected {
            models: gateway.protect_models,
            metrics: gateway.protect_metrics,
            status: gateway.protect_status,
        },
        cors: gateway.cors.map(CorsPlan::from),
        metrics: gateway.metrics.as_ref().map(|path| path.0.clone()),
        status: gateway.status.as_ref().map_or(StatusEndpoint::Default, |status| status.value.clone()),
        admin: gateway.admin,
        pinned_spans: PinnedSpans {
            listen: node.get("listen").map(|n| n.span),
            admin: node.get("admin").map(|n| n.span),
            api_keys: node.get("api_keys").map(|n| n.span),
            auth: node.get("auth").map(|n| n.span),
        },
        client_headers: Vec::new(),
        variables: Vec::new(),
        unknown_variables: Vec::new(),
        headers: gateway.headers,
        telemetry: gateway.telemetry,
        metric_aliases: MetricAliases::compile(&gateway.metric_aliases, known, cx),
        logs: Arc::new(LogsPlan::compile(&gateway.logs, gateway.usage_log.as_ref(), known, cx)),
        usage_log: gateway.usage_log.map(UsageLogPlan::from),
        docs: gateway.docs.0,
        timeouts,
        client_timeouts: gateway.timeouts.client,
    };
    let named: Vec<&str> = gateway.backends.iter().map(|e| e.key.as_str()).collect();
    for entry in gateway.models.0 {
        let model = Model::new(entry, &named, &plan.backends, cx);
        if let Some(Model { matches: ModelMatch::Id(id), span, .. }) = &model
            && let Some(first) = plan.models.iter().find(|m| matches!(&m.matches, ModelMatch::Id(other) if other == id))
        {
            cx.duplicate(*span, format!("two models have the id `{id}`"), first.span);
        }
        plan.models.extend(model);
    }
    let route_count = node.get("routes").map_or(0, |routes| routes.as_list_or_one().len());
    for entry in gateway.routes.0 {
        let route = RoutePlan::new(entry, known, plan.validation, cx);
        if let Some(route) = &route
            && let Some(first) = plan.routes.iter().find(|r| r.serves_same_requests(route))
        {
            cx.duplicate(route.span, format!("two routes serve `{} {}`", route.method, route.path), first.span);
        }
        plan.routes.extend(route);
    }
    // A route with a mistake may be the one that serves it.
    if let Some(Example { path, .. }) = gateway.example.as_ref().filter(|_| plan.routes.len() == route_count) {
        gateway_paths::check_example(path, &plan, cx);
    }
    gateway_paths::check_own_paths(
        [("metrics", gateway.metrics.map(|m| m.span)), ("status", gateway.status.map(|s| s.span))],
        node,
        &plan,
        cx,
    );
    gateway_paths::check_hidden_paths(&plan, cx);
    gateway_backends::check_forwarded_headers(&plan, cx);
    Some(plan)
}

text_notation! {
    /// `HOST:PORT`. Whether the address is free is known only on bind.
    ListenAddress(String), |text, node, at| {
        let valid = text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !valid {
            at.cx.wrong_value(node, "a listen address", "127.0.0.1:8080");
        }
        valid.then(|| text.to_owned())
    }
}
notation_schema!(ListenAddress, { "type": "string" });
