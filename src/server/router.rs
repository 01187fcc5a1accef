//! Routes a request: to a turn, a static route, the API documentation, `/status` or `/metrics`.

use super::api_docs::ApiDocs;
use super::keepalive::keepalive_interval;
use super::limits::ConcurrencySlot;
use super::models::ModelCache;
use super::{auth, body, origin, response, static_routes, status, turn_response};
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::{Docs, Validation};
use crate::mapping::config::route::RoutePlan;
use crate::reload::{Generation, Reloader};
use crate::telemetry::Metrics;
use crate::upstream::ClientPool;
use poem::http::{HeaderName, Method, StatusCode};
use poem::{Endpoint, Request, Response};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The gateway as an endpoint: routes live in the generation, so that a reload can change them.
pub struct Gateway {
    reloader: Arc<Reloader>,
    /// Turns in flight, over all generations.
    turns_in_flight: Arc<AtomicUsize>,
    app_state: Arc<AppState>,
    api_docs: ApiDocs,
    started_at: i64,
}

/// State that outlives generations.
#[derive(Default)]
pub struct AppState {
    pub client_pool: ClientPool,
    pub metrics: Arc<Metrics>,
    models: ModelCache,
}

/// The context of one turn.
pub struct TurnContext<'c> {
    pub generation: &'c Arc<Generation>,
    pub dialect: Arc<DialectPlan>,
    pub app_state: &'c AppState,
    /// How long a stream may be silent before a keepalive is sent.
    pub keepalive: Option<Duration>,
    pub validation: Validation,
    pub id: &'c str,
}

impl Gateway {
    pub fn new(reloader: Arc<Reloader>, app_state: Arc<AppState>) -> Gateway {
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
        let api_docs = ApiDocs::new(reloader.clone());
        Gateway { reloader, turns_in_flight: Arc::default(), app_state, api_docs, started_at }
    }
}

impl Endpoint for Gateway {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let began = Instant::now();
        let id = uuid::Uuid::now_v7().simple().to_string();
        // Read once: this generation serves the whole request.
        let generation = self.reloader.current();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut response = self.route(&generation, request, &id).await;
        let elapsed_ms = began.elapsed().as_millis() as u64;
        let names = &generation.plan.gateway.headers;
        let headers = [(Some(&names.request_id), id.clone()), (names.elapsed_ms.as_ref(), elapsed_ms.to_string())];
        for (name, value) in headers {
            if let (Some(Ok(name)), Ok(value)) = (name.map(|n| HeaderName::try_from(n.0.as_str())), value.parse()) {
                response.headers_mut().insert(name, value);
            }
        }
        let (status, generation) = (response.status().as_u16(), generation.number);
        tracing::info!(%id, %method, path, status, elapsed_ms, generation, "responded");
        Ok(response)
    }
}

impl Gateway {
    async fn route(&self, generation: &Arc<Generation>, request: Request, id: &str) -> Response {
        let path = request.uri().path().to_owned();
        let gateway = &generation.plan.gateway;
        let fallback = default_dialect(generation);
        let on_path: Vec<_> = gateway.routes.iter().filter(|r| r.path == path).collect();
        let is_telemetry = [gateway.metrics.as_deref(), gateway.status_path()].contains(&Some(path.as_str()));
        let is_known = !on_path.is_empty() || is_telemetry || static_routes::has_path(gateway, &path);
        if is_known && let Err(fault) = auth::check(gateway, &self.app_state.client_pool.keys, request.headers()) {
            let dialect = on_path.first().and_then(|r| r.variants.default_dialect());
            return response::fault(dialect.or(fallback.as_ref()).map(|d| &**d), &fault);
        }
        let host = request.uri().authority().map(|a| a.as_str()).or_else(|| header(&request, "host"));
        if is_telemetry && let Err(fault) = origin::check_host(gateway, &self.app_state.client_pool.keys, host) {
            return response::fault(fallback.as_deref(), &fault);
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if gateway.metrics.as_ref() == Some(&path) && is_read {
            return status::metrics(&self.reloader, &self.app_state);
        }
        if let Some(route) = on_path.iter().find(|r| r.method == request.method().as_str()) {
            let response = match route.variants.select(|name| joined_header(&request, name)) {
                Some(Ok(variant)) => self.turn(generation, variant.plan.clone(), route, request, id).await,
                Some(Err(rejected)) => response::fault(Some(rejected.plan), &rejected.fault),
                None => {
                    let fault = Fault::new(FaultKind::Internal, "the route has no dialect");
                    response::fault(fallback.as_deref(), &fault)
                }
            };
            self.app_state.metrics.count_response(&route.path, response.status().as_u16());
            return response;
        }
        let method = if *request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        let static_route = static_routes::find(gateway, method.as_str(), &path);
        let mut allowed: Vec<&str> = on_path.iter().map(|r| r.method.as_str()).collect();
        allowed.extend(static_routes::methods(gateway, &path));
        match static_route {
            Some(static_route) => {
                let models = match static_route.prefix() {
                    None => self.app_state.models.all(gateway, &self.app_state.client_pool).await,
                    Some(_) => Vec::new(),
                };
                static_routes::render(static_route, gateway, &models, &path, self.started_at)
                    .unwrap_or_else(|fault| response::fault(fallback.as_deref(), &fault))
            }
            None if allowed.is_empty() && gateway.docs == Docs::Public && ApiDocs::has_path(&path) => {
                if method != Method::GET {
                    return method_not_allowed(fallback.as_deref(), &path, request.method(), &["GET", "HEAD"]);
                }
                let response = self.api_docs.respond(request).await;
                match response.status() {
                    StatusCode::NOT_FOUND => unknown_path(fallback.as_deref(), &path),
                    _ => response,
                }
            }
            None if allowed.is_empty() && is_telemetry && !is_read => {
                method_not_allowed(fallback.as_deref(), &path, request.method(), &["GET", "HEAD"])
            }
            None if allowed.is_empty() && is_telemetry => status::status(&self.reloader),
            None if allowed.is_empty() => unknown_path(fallback.as_deref(), &path),
            None => method_not_allowed(fallback.as_deref(), &path, request.method(), &allowed),
        }
    }

    async fn turn(
        &self,
        generation: &Arc<Generation>,
        dialect: Arc<DialectPlan>,
        route: &RoutePlan,
        mut request: Request,
        id: &str,
    ) -> Response {
        let limits = generation.plan.gateway.limits;
        let Some(slot) = ConcurrencySlot::acquire(&self.turns_in_flight, limits.streams.0, generation) else {
            let requests = if limits.streams.0 == 1 { "request" } else { "requests" };
            let message = format!("concurrency limit reached ({} {requests} in flight)", limits.streams.0);
            let fault = Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) };
            return response::fault(Some(&dialect), &fault);
        };
        let keepalive = keepalive_interval(&generation.plan.gateway.keepalive, &request);
        let body = match body::read(request.take_body(), limits.body_bytes.0).await {
            Ok(body) => body,
            Err(fault) => return response::fault(Some(&dialect), &fault),
        };
        let context = TurnContext {
            generation,
            dialect: dialect.clone(),
            app_state: &self.app_state,
            keepalive,
            validation: route.validation,
            id,
        };
        match turn_response::respond(context, &body, slot).await {
            Ok(response) => response,
            Err(fault) => response::fault(Some(&dialect), &fault),
        }
    }
}

fn unknown_path(dialect: Option<&DialectPlan>, path: &str) -> Response {
    response::fault(dialect, &Fault::new(FaultKind::UnknownPath, format!("unknown endpoint: {path}")))
}

fn method_not_allowed(dialect: Option<&DialectPlan>, path: &str, method: &Method, allowed: &[&str]) -> Response {
    let message = format!("{path} does not allow {method}");
    let mut response = response::fault(dialect, &Fault::new(FaultKind::WrongMethod, message));
    if let Ok(value) = allowed.join(", ").parse() {
        response.headers_mut().insert("allow", value);
    }
    response
}

pub(super) fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request.headers().get(name).and_then(|v| v.to_str().ok())
}

/// The value of a header. Repeated headers are joined, which never gives a valid policy value.
fn joined_header(request: &Request, name: &str) -> Option<String> {
    let mut values = request.headers().get_all(name).iter().map(|v| String::from_utf8_lossy(v.as_bytes()));
    let first = values.next()?.into_owned();
    Some(values.fold(first, |all, value| format!("{all}, {value}")))
}

/// The dialect of the first route: errors for unknown paths use its envelope.
fn default_dialect(generation: &Generation) -> Option<Arc<DialectPlan>> {
    generation.plan.gateway.routes.first()?.variants.default_dialect().cloned()
}
