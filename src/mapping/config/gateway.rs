//! gateway.yaml: where to listen, which models and routes there are, how much is allowed.

use super::admin::{Admin, STATUS, Status};
use super::backend::{BackendPlan, Transport};
use super::backend_address::{KeySource, Reach};
use super::headers::{HeaderNames, header_names};
use super::route::{AgentRule, RoutePlan};
use super::script::ScriptPlan;
use super::static_routes::Page;
use super::timeouts::{Keepalive, Timeouts};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::words;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{Cx, Fields, constant, text_of};
use crate::mapping::source::yaml::{Entry, Kind, Node};
use std::sync::Arc;

#[derive(Debug)]
pub struct GatewayPlan {
    pub listen: Option<String>,
    pub validation: Validation,
    pub backends: Vec<Backend>,
    pub models: Vec<Model>,
    pub routes: Vec<RoutePlan>,
    /// The first whose word is in the client's user agent.
    pub by_user_agent: Vec<AgentRule>,
    pub pages: Vec<Page>,
    /// A request that works when pasted: endpoint path and body, for the banner.
    pub example: Option<(String, String)>,
    pub limits: Limits,
    pub keepalive: Keepalive,
    /// For backends that say nothing else.
    pub timeouts: Timeouts,
    /// Who may ask; none: whoever can reach us.
    pub keys: Vec<ClientKey>,
    pub auth: Auth,
    /// Where the metrics are.
    pub metrics: Option<String>,
    pub status: Status,
    pub admin: Option<Admin>,
    pub headers: HeaderNames,
    pub docs: Docs,
    pub at: Places,
}

/// Where what is read at the start only stands, as far as it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    pub listen: Option<Span>,
    pub admin: Option<Span>,
    pub keys: Option<Span>,
    pub auth: Option<Span>,
}

words! {
    /// Are the OpenAPI document, the schemas and the page to read them there?
    pub enum Docs {
        Public = "public",
        Off = "off",
    }
}

words! {
    /// Must a client show a key? `keys`: one of them, and without any only the machine itself may ask.
    pub enum Auth {
        Keys = "keys",
        None = "none",
    }
}

/// A key that clients may show, by the name that logs know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKey {
    pub name: String,
    pub secret: KeySource,
}

words! {
    /// What becomes of a frame that breaks its schema or its order.
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
    /// Of a backend that is dialled.
    pub reach: Option<Reach>,
    /// Of its name.
    pub span: Span,
}

#[derive(Debug)]
pub struct Model {
    pub matches: Match,
    /// Position in `GatewayPlan::backends`.
    pub backend: usize,
    /// Of its name or pattern.
    pub span: Span,
}

#[derive(Debug)]
pub enum Match {
    Id(String),
    /// A prefix before `*`.
    Prefix(String),
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub body_bytes: usize,
    pub streams: usize,
    /// Of one event of a backend.
    pub event_bytes: usize,
    /// Of a backend's whole answer, when it is kept to become one JSON body.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { body_bytes: 16 << 20, streams: 2000, event_bytes: 16 << 20, answer_bytes: 16 << 20 }
    }
}

impl GatewayPlan {
    /// Where the status is. Where anybody may ask, a path that nobody named would tell them what is in the files.
    pub fn status_path(&self) -> Option<&str> {
        match &self.status {
            Status::At(path) => Some(path),
            Status::Usual => (self.auth != Auth::None).then_some(STATUS),
            Status::Off => None,
        }
    }

    /// The first model that matches.
    pub fn model(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|m| match &m.matches {
            Match::Id(id) => id == name,
            Match::Prefix(prefix) => name.starts_with(prefix.as_str()),
        })
    }
}

/// What gateway.yaml may name.
pub struct Known<'k> {
    pub backends: &'k [Arc<BackendPlan>],
    /// Of all backend files, also of those that have errors.
    pub backend_names: &'k [&'k str],
    pub scripts: &'k [Arc<ScriptPlan>],
    pub script_names: &'k [&'k str],
    pub dialects: &'k [&'k str],
    pub profiles: &'k [&'k str],
    pub tables: &'k Tables,
    pub parts: &'k [Entry],
}

pub fn parse(node: &Node, known: &Known, cx: Cx) -> Option<GatewayPlan> {
    let fields = Fields::of(node, "gateway.yaml", cx)?;
    let validation = fields.get("validation").and_then(|n| cx.word(n, Validation::WORDS));
    let mut plan = GatewayPlan {
        listen: fields.get("listen").and_then(|n| listen(n, cx)),
        validation: validation.and_then(Validation::from_word).unwrap_or(Validation::Strict),
        backends: Vec::new(),
        models: Vec::new(),
        routes: Vec::new(),
        by_user_agent: AgentRule::parse_all(fields.list("by_user_agent"), known, cx),
        pages: Vec::new(),
        example: fields.get("example").and_then(|n| example(n, cx)),
        limits: fields.get("limits").map(|n| limits(n, cx)).unwrap_or_default(),
        keepalive: fields.get("keepalive").map(|n| Keepalive::parse(n, cx)).unwrap_or_default(),
        keys: fields.list("keys").iter().filter_map(|n| client_key(n, cx)).collect(),
        auth: fields.get("auth").and_then(|n| cx.word(n, Auth::WORDS)).and_then(Auth::from_word).unwrap_or(Auth::Keys),
        metrics: fields.text("metrics").map(str::to_owned),
        status: fields.get("status").and_then(|n| Status::parse(n, cx)).unwrap_or(Status::Usual),
        admin: fields.get("admin").and_then(|n| Admin::parse(n, cx)),
        at: Places {
            listen: node.get("listen").map(|n| n.span),
            admin: node.get("admin").map(|n| n.span),
            keys: node.get("keys").map(|n| n.span),
            auth: node.get("auth").map(|n| n.span),
        },
        headers: fields.get("headers").map(|n| header_names(n, cx)).unwrap_or_default(),
        docs: fields
            .get("docs")
            .and_then(|n| cx.word(n, Docs::WORDS))
            .and_then(Docs::from_word)
            .unwrap_or(Docs::Public),
        timeouts: Timeouts::default().refined(fields.get("timeouts"), cx),
    };
    let timeouts = plan.timeouts;
    fields.required("backends");
    for entry in fields.map("backends") {
        plan.backends.extend(backend(entry, timeouts, known, cx));
    }
    for node in fields.required_list("models") {
        let named = fields.map("backends").iter().map(|e| e.key.as_str()).collect();
        let model = model(node, named, &plan.backends, cx);
        if let Some(Model { matches: Match::Id(id), span, .. }) = &model
            && let Some(first) = plan.models.iter().find(|m| matches!(&m.matches, Match::Id(other) if other == id))
        {
            cx.twice(*span, format!("two models are called `{id}`"), first.span);
        }
        plan.models.extend(model);
    }
    for node in fields.required_list("routes") {
        let route = RoutePlan::parse(node, known, plan.validation, cx);
        if let Some(route) = &route
            && let Some(first) = plan.routes.iter().find(|r| (&r.method, &r.path) == (&route.method, &route.path))
        {
            cx.twice(route.span, format!("two routes serve `{} {}`", route.method, route.path), first.span);
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
    for node in fields.list("pages") {
        plan.pages.extend(Page::parse(node, known, cx));
    }
    fields.done();
    Some(plan)
}

/// `HOST:PORT`. Whether it can be had is known only when it is asked for.
fn listen(node: &Node, cx: Cx) -> Option<String> {
    let text = node.as_text().unwrap_or_default();
    let sound = text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !sound {
        cx.wrong_value(node, "an address to listen on", "127.0.0.1:8080");
    }
    sound.then(|| text.to_owned())
}

pub(crate) const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(crate) fn endpoint(node: &Node, cx: Cx) -> Option<(String, String)> {
    let text = text_of(node, cx)?;
    match text.split_once(' ') {
        Some((method, path)) if path.trim_start().starts_with('/') => {
            if !METHODS.contains(&method) {
                let span = cx.sources.within(node.span, method);
                let message = format!("HTTP has no method `{method}`");
                cx.unknown(Code::UnknownValue, span, message, method, METHODS.iter().copied());
                return None;
            }
            Some((method.to_owned(), path.trim().to_owned()))
        }
        _ => {
            cx.error(Code::UnknownValue, node.span, format!("`{text}` is not an endpoint: write `POST /path`"));
            None
        }
    }
}

fn backend(entry: &Entry, timeouts: Timeouts, known: &Known, cx: Cx) -> Option<Backend> {
    let (name, node) = (&entry.key, &entry.value);
    let Known { backends, backend_names, scripts, script_names, .. } = known;
    let fields = Fields::of(node, format!("the backend `{name}`"), cx)?;
    let used = fields.required("use")?;
    let text = text_of(used, cx)?;
    let Some(plan) = backends.iter().find(|b| b.name == text) else {
        if !backend_names.contains(&text) {
            let message = format!("no backend file says `backend: {text}`");
            cx.unknown(Code::UnknownReference, used.span, message, text, backend_names.iter().copied());
        }
        return None;
    };
    let script = match (plan.transport, fields.get("script")) {
        (Transport::Replay, Some(node)) => {
            let text = text_of(node, cx)?;
            let found = scripts.iter().find(|s| s.name == text).cloned();
            if found.is_none() && !script_names.contains(&text) {
                let message = format!("no script is called `{text}`");
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
    let reach = match (plan.transport, &plan.ask) {
        (Transport::Http, Some(ask)) => Some(Reach::parse(&fields, &ask.manners, timeouts, cx)),
        (Transport::Http, None) => {
            let message = format!("the backend file `{text}` does not say how it is asked");
            cx.add(
                Diagnostic::new(Code::MissingKey, used.span, message).help("it has `request:`, with a path and a body"),
            );
            return None;
        }
        (Transport::Replay | Transport::ChildJsonrpc, _) => None,
    };
    fields.done();
    let reach = match reach {
        Some(None) => return None,
        other => other.flatten(),
    };
    Some(Backend { name: name.to_owned(), plan: plan.clone(), script, reach, span: entry.key_span })
}

fn model(node: &Node, named: Vec<&str>, backends: &[Backend], cx: Cx) -> Option<Model> {
    let fields = Fields::of(node, "a model", cx)?;
    let (id, pattern) = (fields.text("id"), fields.get("match"));
    let matches = match (id, pattern) {
        (Some(id), None) => Match::Id(id.to_owned()),
        (None, Some(pattern)) => {
            let text = text_of(pattern, cx)?;
            match text.strip_suffix('*') {
                Some(prefix) if !prefix.contains('*') => Match::Prefix(prefix.to_owned()),
                _ => {
                    cx.error(Code::UnknownValue, pattern.span, "a pattern ends in its only `*`: \"gpt-*\", or \"*\"");
                    return None;
                }
            }
        }
        _ => {
            let message = "a model has exactly one of `id:` and `match:`";
            fields.get("backend");
            fields.not_one_of(&["id", "match"], Diagnostic::new(Code::MissingKey, node.span, message));
            fields.done();
            return None;
        }
    };
    let backend = fields.required("backend")?;
    let text = text_of(backend, cx)?;
    fields.done();
    let found = backends.iter().position(|b| b.name == text);
    // Without `backends:` that is what is missing.
    if found.is_none() && !named.is_empty() && !named.contains(&text) {
        let message = format!("no backend is called `{text}`");
        cx.unknown(Code::UnknownReference, backend.span, message, text, named);
    }
    let span = node.get("id").or(pattern).map_or(node.span, |n| n.span);
    Some(Model { matches, backend: found?, span })
}

fn client_key(node: &Node, cx: Cx) -> Option<ClientKey> {
    let fields = Fields::of(node, "a client's key", cx)?;
    let name = fields.required_text("name");
    let secret = fields.required("secret").and_then(|n| KeySource::parse(n, cx));
    fields.done();
    Some(ClientKey { name: name?.to_owned(), secret: secret? })
}

fn example(node: &Node, cx: Cx) -> Option<(String, String)> {
    let fields = Fields::of(node, "`example:`", cx)?;
    let path = fields.required_text("path");
    let body = fields.required("body").map(|n| constant(n).to_json());
    fields.done();
    Some((path?.to_owned(), body?))
}

fn limits(node: &Node, cx: Cx) -> Limits {
    let mut limits = Limits::default();
    let Some(fields) = Fields::of(node, "`limits:`", cx) else { return limits };
    if let Some(bytes) = fields.get("body_bytes").and_then(|n| bytes(n, cx)) {
        limits.body_bytes = bytes;
    }
    if let Some(bytes) = fields.get("event_bytes").and_then(|n| bytes(n, cx)) {
        limits.event_bytes = bytes;
    }
    if let Some(bytes) = fields.get("answer_bytes").and_then(|n| bytes(n, cx)) {
        limits.answer_bytes = bytes;
    }
    if let Some(streams) = fields.int("streams") {
        limits.streams = streams as usize;
    }
    fields.done();
    limits
}

/// `16MiB`, `512KiB`, or a plain number of bytes.
fn bytes(node: &Node, cx: Cx) -> Option<usize> {
    let parsed = match &node.kind {
        Kind::Int(n) if *n > 0 => Some(*n as usize),
        Kind::Text(text) => [("KiB", 10), ("MiB", 20), ("GiB", 30)]
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
