//! gateway.yaml: listen address, backends, models, routes, authentication, limits.

use super::admin::{AdminListener, DEFAULT_STATUS_PATH, StatusEndpoint};
use super::backend::{BackendPlan, Transport};
use super::backend_address::{BackendAddress, SecretSource};
use super::headers::{HeaderNames, header_names};
use super::models::{Model, ModelMatch, parse_model};
use super::path_template::PathTemplate;
use super::route::{RoutePlan, UserAgentRule};
use super::script::ScriptPlan;
use super::static_routes::StaticRoute;
use super::timeouts::{Keepalive, Timeouts};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::named_enum;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, constant, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
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

/// An API key for clients. Logs use its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKey {
    pub name: String,
    pub secret: SecretSource,
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

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub body_bytes: usize,
    pub streams: usize,
    /// Size of one event of a backend.
    pub event_bytes: usize,
    /// Size of a backend's whole response, when it is aggregated into one JSON body.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { body_bytes: 16 << 20, streams: 2000, event_bytes: 16 << 20, answer_bytes: 16 << 20 }
    }
}

impl GatewayPlan {
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
}

pub fn parse(node: &Node, known: &KnownNames, cx: LoadContext) -> Option<GatewayPlan> {
    let fields = FieldReader::of(node, "gateway.yaml", cx)?;
    let validation = fields.get("validation").and_then(|n| cx.one_of(n, Validation::NAMES));
    let mut plan = GatewayPlan {
        listen: fields.get("listen").and_then(|n| listen(n, cx)),
        validation: validation.and_then(Validation::from_name).unwrap_or(Validation::Strict),
        backends: Vec::new(),
        models: Vec::new(),
        routes: Vec::new(),
        by_user_agent: UserAgentRule::parse_list(fields.list("by_user_agent"), known, cx),
        static_routes: Vec::new(),
        example: fields.get("example").and_then(|n| example(n, cx)),
        limits: fields.get("limits").map(|n| limits(n, cx)).unwrap_or_default(),
        keepalive: fields.get("keepalive").map(|n| Keepalive::parse(n, cx)).unwrap_or_default(),
        api_keys: fields.list("api_keys").iter().filter_map(|n| client_key(n, cx)).collect(),
        auth: fields
            .get("auth")
            .and_then(|n| cx.one_of(n, Auth::NAMES))
            .and_then(Auth::from_name)
            .unwrap_or(Auth::Keys),
        metrics: fields.text("metrics").map(str::to_owned),
        status: fields.get("status").and_then(|n| StatusEndpoint::parse(n, cx)).unwrap_or(StatusEndpoint::Default),
        admin: fields.get("admin").and_then(|n| AdminListener::parse(n, cx)),
        pinned_spans: PinnedSpans {
            listen: node.get("listen").map(|n| n.span),
            admin: node.get("admin").map(|n| n.span),
            api_keys: node.get("api_keys").map(|n| n.span),
            auth: node.get("auth").map(|n| n.span),
        },
        headers: fields.get("headers").map(|n| header_names(n, cx)).unwrap_or_default(),
        docs: fields
            .get("docs")
            .and_then(|n| cx.one_of(n, Docs::NAMES))
            .and_then(Docs::from_name)
            .unwrap_or(Docs::Public),
        timeouts: Timeouts::default().with_overrides(fields.get("timeouts"), cx),
    };
    let timeouts = plan.timeouts;
    fields.required("backends");
    for entry in fields.map("backends") {
        plan.backends.extend(backend(entry, timeouts, known, cx));
    }
    for node in fields.required_list("models") {
        let named = fields.map("backends").iter().map(|e| e.key.as_str()).collect();
        let model = parse_model(node, named, &plan.backends, cx);
        if let Some(Model { matches: ModelMatch::Id(id), span, .. }) = &model
            && let Some(first) = plan.models.iter().find(|m| matches!(&m.matches, ModelMatch::Id(other) if other == id))
        {
            cx.duplicate(*span, format!("two models have the id `{id}`"), first.span);
        }
        plan.models.extend(model);
    }
    for node in fields.required_list("routes") {
        let route = RoutePlan::parse(node, known, plan.validation, cx);
        if let Some(route) = &route
            && let Some(first) = plan.routes.iter().find(|r| r.serves_same_requests(route))
        {
            cx.duplicate(route.span, format!("two routes serve `{} {}`", route.method, route.path), first.span);
        }
        plan.routes.extend(route);
    }
    let all_routes = !plan.routes.is_empty() && plan.routes.len() == fields.list("routes").len();
    if let Some(path) = fields.get("example").and_then(|n| n.get("path"))
        && let Some(text) = path.as_text()
        && all_routes
        && !plan.routes.iter().any(|r| r.path == text)
    {
        let message = format!("no route serves `{text}`");
        cx.unknown(Code::UnknownReference, path.span, message, text, plan.routes.iter().map(|r| r.path.as_str()));
    }
    for node in fields.list("static_routes") {
        plan.static_routes.extend(StaticRoute::parse(node, known, cx));
    }
    fields.finish();
    Some(plan)
}

/// `HOST:PORT`. Whether the address is free is known only on bind.
fn listen(node: &Node, cx: LoadContext) -> Option<String> {
    let text = node.as_text().unwrap_or_default();
    let valid = text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !valid {
        cx.wrong_value(node, "a listen address", "127.0.0.1:8080");
    }
    valid.then(|| text.to_owned())
}

pub(crate) const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(crate) fn endpoint(node: &Node, cx: LoadContext) -> Option<(String, String)> {
    let text = text_of(node, cx)?;
    match text.split_once(' ') {
        Some((method, path)) if path.trim_start().starts_with('/') => {
            if !METHODS.contains(&method) {
                let span = cx.sources.within(node.span, method);
                let message = format!("unknown HTTP method `{method}`");
                cx.unknown(Code::UnknownValue, span, message, method, METHODS.iter().copied());
                return None;
            }
            let path = path.trim();
            if let Err(why) = PathTemplate::parse(path) {
                cx.error(Code::UnknownValue, cx.sources.within(node.span, path), format!("invalid path: {why}"));
                return None;
            }
            Some((method.to_owned(), path.to_owned()))
        }
        _ => {
            cx.error(Code::UnknownValue, node.span, format!("`{text}` is not an endpoint: write `POST /path`"));
            None
        }
    }
}

fn backend(entry: &Entry, timeouts: Timeouts, known: &KnownNames, cx: LoadContext) -> Option<Backend> {
    let (name, node) = (&entry.key, &entry.value);
    let KnownNames { backends, backend_names, scripts, script_names, .. } = known;
    let fields = FieldReader::of(node, format!("the backend `{name}`"), cx)?;
    let used = fields.required("use")?;
    let text = text_of(used, cx)?;
    let Some(plan) = backends.iter().find(|b| b.name == text) else {
        if !backend_names.contains(&text) {
            let message = format!("no backend file defines `backend: {text}`");
            cx.unknown(Code::UnknownReference, used.span, message, text, backend_names.iter().copied());
        }
        return None;
    };
    let script = match (plan.transport, fields.get("script")) {
        (Transport::Replay, Some(node)) => {
            let text = text_of(node, cx)?;
            let found = scripts.iter().find(|s| s.name == text).cloned();
            if found.is_none() && !script_names.contains(&text) {
                let message = format!("unknown script `{text}`");
                cx.unknown(Code::UnknownReference, node.span, message, text, script_names.iter().copied());
            }
            Some(found?)
        }
        (Transport::Replay, None) => {
            fields.required("script");
            return None;
        }
        (Transport::Http | Transport::ChildJsonrpc, _) => None,
    };
    let address = match (plan.transport, &plan.request_template) {
        (Transport::Http, Some(request_template)) => {
            Some(BackendAddress::parse(&fields, &request_template.capabilities, timeouts, cx))
        }
        (Transport::Http, None) => {
            let message = format!("the backend file `{text}` has no `request:`");
            cx.add(
                Diagnostic::new(Code::MissingKey, used.span, message)
                    .help("an HTTP backend needs `request:` with a path and a body"),
            );
            return None;
        }
        (Transport::Replay | Transport::ChildJsonrpc, _) => None,
    };
    fields.finish();
    let address = match address {
        Some(None) => return None,
        other => other.flatten(),
    };
    Some(Backend { name: name.to_owned(), plan: plan.clone(), script, address, span: entry.key_span })
}

fn client_key(node: &Node, cx: LoadContext) -> Option<ClientKey> {
    let fields = FieldReader::of(node, "a client's API key", cx)?;
    let name = fields.required_text("name");
    let secret = fields.required("secret").and_then(|n| SecretSource::parse(n, cx));
    fields.finish();
    Some(ClientKey { name: name?.to_owned(), secret: secret? })
}

fn example(node: &Node, cx: LoadContext) -> Option<(String, String)> {
    let fields = FieldReader::of(node, "`example:`", cx)?;
    let path = fields.required_text("path");
    let body = fields.required("body").map(|n| constant(n).to_json());
    fields.finish();
    Some((path?.to_owned(), body?))
}

fn limits(node: &Node, cx: LoadContext) -> Limits {
    let mut limits = Limits::default();
    let Some(fields) = FieldReader::of(node, "`limits:`", cx) else { return limits };
    if let Some(bytes) = fields.get("body_bytes").and_then(|n| bytes(n, cx)) {
        limits.body_bytes = bytes;
    }
    if let Some(bytes) = fields.get("event_bytes").and_then(|n| bytes(n, cx)) {
        limits.event_bytes = bytes;
    }
    if let Some(bytes) = fields.get("answer_bytes").and_then(|n| bytes(n, cx)) {
        limits.answer_bytes = bytes;
    }
    match (fields.int("streams"), fields.get("streams")) {
        (Some(0), Some(node)) => cx.error(Code::WrongType, node.span, "`streams:` must be at least 1"),
        (Some(streams), _) => limits.streams = streams as usize,
        (None, _) => {}
    }
    fields.finish();
    limits
}

/// `16MiB`, `512KiB`, or a plain number of bytes.
fn bytes(node: &Node, cx: LoadContext) -> Option<usize> {
    let parsed = match &node.kind {
        YamlKind::Int(n) if *n > 0 => Some(*n as usize),
        YamlKind::Text(text) => [("KiB", 10), ("MiB", 20), ("GiB", 30)]
            .iter()
            .find_map(|(unit, shift)| text.strip_suffix(unit).map(|n| (n.trim().parse::<usize>(), shift)))
            .and_then(|(n, shift)| n.ok()?.checked_shl(*shift)),
        _ => None,
    };
    if parsed.is_none() {
        cx.wrong_value(node, "a number of bytes", "65536, 512KiB or 16MiB");
    }
    parsed
}
