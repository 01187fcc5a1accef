//! gateway.yaml: listen address, backends, models, routes, authentication, limits.

use super::admin::{AdminListener, DEFAULT_STATUS_PATH, LiteralPath, StatusEndpoint};
use super::backend::{BackendPlan, Transport};
use super::backend_address::{BackendAddress, BackendEntry};
use super::headers::HeaderNames;
use super::models::{Model, ModelEntry, ModelMatch};
use super::route::{RouteEntry, RoutePlan, UserAgentEntry, UserAgentRule};
use super::schemas::SchemaCache;
use super::script::ScriptPlan;
use super::secret::SecretSource;
use super::static_routes::{StaticRoute, StaticRouteEntry};
use super::timeouts::{ClientTimeouts, GatewayTimeouts, Keepalive, Timeouts};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::named_enum;
use crate::mapping::grammar::collections::{Elements, Entries, List, Map, NonEmptyList};
use crate::mapping::grammar::notation::{
    AnyValue, Bytes, HeaderName, NameOf, PositiveCount, Spanned, notation_schema, text_notation,
};
use crate::mapping::grammar::{Required, Section, section};
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{Entry, Node};
use std::sync::Arc;

#[derive(Debug)]
pub struct GatewayPlan {
    pub listen: Option<String>,
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
    /// Defaults for backends without their own.
    pub timeouts: Timeouts,
    pub client_timeouts: ClientTimeouts,
    /// The API keys that clients may use.
    pub api_keys: Vec<ClientKey>,
    pub auth: Auth,
    /// Path of the metrics endpoint.
    pub metrics: Option<String>,
    pub status: StatusEndpoint,
    pub admin: Option<AdminListener>,
    pub headers: HeaderNames,
    pub docs: Docs,
    pub pinned_spans: PinnedSpans,
    /// The headers of clients that a dialect reads or a backend gets.
    pub client_headers: Vec<String>,
}

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
    /// How clients authenticate. `keys`: with an API key; if none is set, only local requests are accepted.
    pub enum Auth {
        Keys = "keys",
        None = "none",
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

#[derive(Debug)]
pub struct Backend {
    pub name: String,
    pub plan: Arc<BackendPlan>,
    pub script: Option<Arc<ScriptPlan>>,
    /// Only for HTTP backends.
    pub address: Option<BackendAddress>,
    /// Span of its name.
    pub span: Span,
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
    pub fn streams_per_client(&self) -> usize {
        let streams = self.limits.streams.0;
        let default = if self.api_keys.len() > 1 { streams.div_ceil(2) } else { streams };
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
}

section! {
    /// Where the server listens, which models and routes exist, and which limits apply.
    #[subject = "gateway.yaml"]
    #[title = "gateway.yaml"]
    pub struct Gateway<'n> {
        /// `HOST:PORT`; port 0 picks a free port. `--listen` and `PORT` take precedence; read at startup only.
        #[extend("default" = "127.0.0.1:8080")]
        listen: Option<ListenAddress>,
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
        /// Limits on sizes and concurrency.
        limits: Limits = Limits::default(),
        /// Time limits. Exceeding one of a backend is a fault of the kind `timeout`.
        timeouts: GatewayTimeouts = GatewayTimeouts::DEFAULT,
        /// SSE comments in silent streams.
        keepalive: Keepalive = Keepalive::default(),
        /// The API keys that clients may send, by default as `Authorization: Bearer KEY`. A key from an unset variable is ignored;
        /// if no key is configured, only local requests are accepted.
        api_keys: List<ClientKey> = List::default(),
        /// `keys`: clients must send one of `api_keys`. `none`: every client is accepted, from anywhere.
        auth: NameOf<Auth> = NameOf(Auth::Keys),
        /// The names of the gateway's own headers.
        headers: HeaderNames = HeaderNames::default(),
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
    /// Limits on sizes and concurrency.
    #[derive(Copy)]
    #[subject = "`limits:`"]
    pub struct Limits: Default {
        /// The size of a request body.
        body_bytes: Bytes = Bytes(16 << 20),
        /// The number of JSON values in a request body, at most a million; more are rejected with 413. Many small values
        /// take much more memory than their text.
        request_values: PositiveCount = PositiveCount(250_000),
        /// The number of messages, content parts, tool calls, results and tools in a request; more are rejected with
        /// 400.
        request_items: PositiveCount = PositiveCount(50_000),
        /// The number of turns in flight, streamed or not; more are rejected with 503.
        streams: PositiveCount = PositiveCount(2000),
        /// The number of turns in flight of one client: of one API key, or of one address if clients send no key. More
        /// are rejected with 429. Default: half of `streams` if there are several `api_keys`, else `streams`.
        streams_per_client: Option<PositiveCount>,
        /// The size of one event of a backend.
        event_bytes: Bytes = Bytes(16 << 20),
        /// The size of a backend's response that becomes one JSON body.
        answer_bytes: Bytes = Bytes(16 << 20),
        /// The memory of what a turn keeps of a backend's response: text, arguments, reasoning, citations,
        /// log-probabilities. A turn that needs more fails.
        turn_bytes: Bytes = Bytes(64 << 20),
    }
}

section! {
    /// An API key of clients.
    #[derive(PartialEq, Eq)]
    #[subject = "a client's API key"]
    #[title = "API key"]
    pub struct ClientKey {
        /// The name of the key in logs.
        name: String,
        /// Where the key is stored.
        secret: SecretSource,
        /// The headers in which clients may send it: as `Bearer KEY` in `authorization`, as it is in others.
        headers: List<HeaderName> = List(vec![HeaderName("authorization".to_owned())]),
        /// The parameter of the query in which clients may send it. Default: none.
        query: Option<String>,
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
        validation: gateway.validation.0,
        backends: gateway.backends.iter().filter_map(|entry| backend(entry, timeouts, known, cx)).collect(),
        models: Vec::new(),
        routes: Vec::new(),
        by_user_agent: UserAgentRule::compile_list(&gateway.by_user_agent, known, cx),
        static_routes: gateway.static_routes.iter().filter_map(|entry| StaticRoute::new(entry, known, cx)).collect(),
        example: gateway.example.as_ref().map(|e| (e.path.value.clone(), e.body.0.to_json())),
        limits: gateway.limits,
        keepalive: gateway.keepalive,
        api_keys: gateway.api_keys.0,
        auth: gateway.auth.0,
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
        headers: gateway.headers,
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
    if let Some(Example { path, .. }) = &gateway.example
        && plan.routes.len() == route_count
        && !plan.routes.iter().any(|r| r.path == path.value)
    {
        let message = format!("no route serves `{}`", path.value);
        cx.unknown(Code::UnknownReference, path.span, message, path, plan.routes.iter().map(|r| r.path.as_str()));
    }
    let own_paths = [("metrics", gateway.metrics.map(|m| m.span)), ("status", gateway.status.map(|s| s.span))];
    for (key, span) in own_paths.into_iter().filter_map(|(key, span)| Some((key, span?))) {
        let path = node.get(key).and_then(Node::as_text).unwrap_or_default();
        let is_route = plan.routes.iter().map(|r| &r.path).chain(plan.static_routes.iter().map(|r| &r.path));
        let other_key = key == "status" && plan.metrics.as_deref() == Some(path);
        if other_key || is_route.into_iter().any(|other| other == path) {
            let other = if other_key { "`metrics:`" } else { "a route" };
            cx.error(Code::DuplicateName, span, format!("{other} has the path `{path}` too"));
        }
    }
    check_forwarded_headers(&plan, cx);
    Some(plan)
}

/// A header with an API key of the gateway must not reach a backend.
fn check_forwarded_headers(plan: &GatewayPlan, cx: LoadContext) {
    let carries_key =
        |name: &str| plan.auth == Auth::Keys && plan.api_keys.iter().any(|key| key.headers.iter().any(|h| h.0 == name));
    let forwarded = plan.backends.iter().filter_map(|backend| backend.address.as_ref());
    for header in forwarded.flat_map(|address| address.settings.capabilities.forwarded_headers()) {
        let name = &header.value.0;
        if carries_key(name) {
            let message = format!("the header `{name}` carries the API keys of this gateway and cannot be forwarded");
            cx.error(Code::UnknownValue, header.span, message);
        }
    }
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

fn backend(entry: &Entry, timeouts: Timeouts, known: &KnownNames, cx: LoadContext) -> Option<Backend> {
    let name = &entry.key;
    let KnownNames { backends, backend_names, scripts, script_names, .. } = known;
    let fields = BackendEntry::open(&entry.value, name, cx)?;
    let address = BackendEntry::read_fields(&fields)?;
    let file = &address.file;
    let Some(plan) = backends.iter().find(|b| b.name == file.value) else {
        if !backend_names.contains(&file.as_str()) {
            let message = format!("no backend file defines `backend: {}`", file.value);
            cx.unknown(Code::UnknownReference, file.span, message, file, backend_names.iter().copied());
        }
        return None;
    };
    let (script, address) = match (plan.transport, &plan.request_template) {
        (Transport::Replay, _) => {
            fields.required("script");
            let wanted = address.script?;
            let found = scripts.iter().find(|s| s.name == wanted.value).cloned();
            if found.is_none() && !script_names.contains(&wanted.as_str()) {
                let message = format!("unknown script `{}`", wanted.value);
                cx.unknown(Code::UnknownReference, wanted.span, message, &wanted, script_names.iter().copied());
            }
            (Some(found?), None)
        }
        (Transport::Http, Some(template)) => {
            fields.required("url");
            let address = BackendAddress::new(&address, &template.settings, timeouts, known, cx);
            fields.finish();
            (None, Some(address?))
        }
        (Transport::Http, None) => {
            let message = format!("the backend file `{}` has no `request:`", file.value);
            cx.add(
                Diagnostic::new(Code::MissingKey, file.span, message)
                    .help("an HTTP backend needs `request:` with a path and a body"),
            );
            return None;
        }
        (Transport::ChildJsonrpc, _) => (None, None),
    };
    Some(Backend { name: name.to_owned(), plan: plan.clone(), script, address, span: entry.key_span })
}
