//! One request: which generation, which route, what it asks.

use super::api_docs::Operations;
use super::models::Listed;
use super::{auth, body, response, static_routes, status, turn_response};
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::{Docs, Validation};
use crate::mapping::config::route::RoutePlan;
use crate::mapping::config::timeouts::Keepalive;
use crate::reload::{Generation, Store, Turn};
use crate::telemetry::Metrics;
use crate::upstream::Dialler;
use poem::http::{HeaderName, Method, StatusCode};
use poem::{Endpoint, Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The gateway as an endpoint: routes live in the generation, so that a reload can change them.
pub struct Gateway {
    store: Arc<Store>,
    /// Turns under way, over all generations.
    running: Arc<AtomicUsize>,
    shell: Arc<Shell>,
    operations: Operations,
    started: i64,
}

/// What outlives generations.
#[derive(Default)]
pub struct Shell {
    pub dialler: Dialler,
    pub metrics: Arc<Metrics>,
    models: Listed,
}

/// One request on its way to an answer.
pub struct Call<'c> {
    pub generation: &'c Arc<Generation>,
    pub dialect: Arc<DialectPlan>,
    pub shell: &'c Shell,
    /// How long a stream may be silent before it gives a sign of life.
    pub keepalive: Option<Duration>,
    pub validation: Validation,
    pub id: &'c str,
}

impl Gateway {
    pub fn new(store: Arc<Store>, shell: Arc<Shell>) -> Gateway {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
        let operations = Operations::new(store.clone());
        Gateway { store, running: Arc::default(), shell, operations, started }
    }
}

impl Endpoint for Gateway {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let began = Instant::now();
        let id = uuid::Uuid::now_v7().simple().to_string();
        // Once: the whole request is answered by this generation.
        let generation = self.store.current();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut response = self.route(&generation, request, &id).await;
        let elapsed_ms = began.elapsed().as_millis() as u64;
        let names = &generation.plan.gateway.headers;
        let own = [(Some(&names.request_id), id.clone()), (names.elapsed_ms.as_ref(), elapsed_ms.to_string())];
        for (name, value) in own {
            if let (Some(Ok(name)), Ok(value)) = (name.map(|n| HeaderName::try_from(n.as_str())), value.parse()) {
                response.headers_mut().insert(name, value);
            }
        }
        let (status, generation) = (response.status().as_u16(), generation.number);
        tracing::info!(%id, %method, path, status, elapsed_ms, generation, "answered");
        Ok(response)
    }
}

impl Gateway {
    async fn route(&self, generation: &Arc<Generation>, request: Request, id: &str) -> Response {
        let path = request.uri().path().to_owned();
        let gateway = &generation.plan.gateway;
        let fallback = default_dialect(generation);
        let on_path: Vec<_> = gateway.routes.iter().filter(|r| r.path == path).collect();
        let own = [gateway.metrics.as_deref(), gateway.status_path()].contains(&Some(path.as_str()));
        let known = !on_path.is_empty() || own || static_routes::covered(gateway, &path);
        if known && let Err(fault) = auth::check(gateway, &self.shell.dialler.keys, request.headers()) {
            let own = on_path.first().and_then(|r| r.variants.base());
            return response::fault(own.or(fallback.as_ref()).map(|d| &**d), &fault);
        }
        let host = request.uri().authority().map(|a| a.as_str()).or_else(|| header(&request, "host"));
        if own && let Err(fault) = auth::by_own_name(gateway, &self.shell.dialler.keys, host) {
            return response::fault(fallback.as_deref(), &fault);
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if gateway.metrics.as_ref() == Some(&path) && reads {
            return status::metrics(&self.store, &self.shell);
        }
        if let Some(route) = on_path.iter().find(|r| r.method == request.method().as_str()) {
            let response = match route.variants.pick(|name| said(&request, name)) {
                Some(Ok(variant)) => self.turn(generation, variant.plan.clone(), route, request, id).await,
                Some(Err(refused)) => response::fault(Some(refused.plan), &refused.fault),
                None => {
                    let fault = Fault::new(FaultKind::Internal, "the route has no dialect");
                    response::fault(fallback.as_deref(), &fault)
                }
            };
            self.shell.metrics.answered(&route.path, response.status().as_u16());
            return response;
        }
        let asked = if *request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        let page = static_routes::find(gateway, asked.as_str(), &path);
        let mut allowed: Vec<&str> = on_path.iter().map(|r| r.method.as_str()).collect();
        allowed.extend(static_routes::methods(gateway, &path));
        match page {
            Some(page) => {
                let models = match page.prefix() {
                    None => self.shell.models.all(gateway, &self.shell.dialler).await,
                    Some(_) => Vec::new(),
                };
                static_routes::render(page, gateway, &models, &path, self.started)
                    .unwrap_or_else(|fault| response::fault(fallback.as_deref(), &fault))
            }
            None if allowed.is_empty() && gateway.docs == Docs::Public && Operations::covers(&path) => {
                if asked != Method::GET {
                    return refuse_method(fallback.as_deref(), &path, request.method(), &["GET", "HEAD"]);
                }
                let response = self.operations.answer(request).await;
                match response.status() {
                    StatusCode::NOT_FOUND => unknown_path(fallback.as_deref(), &path),
                    _ => response,
                }
            }
            None if allowed.is_empty() && own && !reads => {
                refuse_method(fallback.as_deref(), &path, request.method(), &["GET", "HEAD"])
            }
            None if allowed.is_empty() && own => status::status(&self.store),
            None if allowed.is_empty() => unknown_path(fallback.as_deref(), &path),
            None => refuse_method(fallback.as_deref(), &path, request.method(), &allowed),
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
        let Some(slot) = Slot::take(&self.running, limits.streams, generation) else {
            let message = format!("{} turns are under way, which is all that is allowed", limits.streams);
            let fault = Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) };
            return response::fault(Some(&dialect), &fault);
        };
        let keepalive = keepalive(&generation.plan.gateway.keepalive, &request);
        let body = match body::read(request.take_body(), limits.body_bytes).await {
            Ok(body) => body,
            Err(fault) => return response::fault(Some(&dialect), &fault),
        };
        let call = Call {
            generation,
            dialect: dialect.clone(),
            shell: &self.shell,
            keepalive,
            validation: route.validation,
            id,
        };
        match turn_response::answer(call, &body, slot).await {
            Ok(response) => response,
            Err(fault) => response::fault(Some(&dialect), &fault),
        }
    }
}

fn unknown_path(dialect: Option<&DialectPlan>, path: &str) -> Response {
    response::fault(dialect, &Fault::new(FaultKind::UnknownPath, format!("there is nothing at {path}")))
}

fn refuse_method(dialect: Option<&DialectPlan>, path: &str, method: &Method, allowed: &[&str]) -> Response {
    let message = format!("{path} does not take {method}");
    let mut response = response::fault(dialect, &Fault::new(FaultKind::WrongMethod, message));
    if let Ok(value) = allowed.join(", ").parse() {
        response.headers_mut().insert("allow", value);
    }
    response
}

/// Some clients cannot read comments, and say so by header, query or name.
fn keepalive(plan: &Keepalive, request: &Request) -> Option<Duration> {
    let header = |name: &str| header(request, name);
    let by_header = plan.header.as_deref().and_then(header) == Some("1");
    let query = request.uri().query().unwrap_or_default();
    let by_query =
        plan.query.as_ref().is_some_and(|name| query.split('&').any(|pair| pair == format!("{name}=1").as_str()));
    let agent = header("user-agent").unwrap_or_default().to_lowercase();
    let by_agent = plan.user_agents.iter().any(|word| agent.contains(word));
    plan.every.filter(|_| !(by_header || by_query || by_agent))
}

fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request.headers().get(name).and_then(|v| v.to_str().ok())
}

/// What a header says; one that stands twice says both, which is never a word of a policy.
fn said(request: &Request, name: &str) -> Option<String> {
    let mut values = request.headers().get_all(name).iter().map(|v| String::from_utf8_lossy(v.as_bytes()));
    let first = values.next()?.into_owned();
    Some(values.fold(first, |all, value| format!("{all}, {value}")))
}

/// An unknown path is refused in the words of the first route.
fn default_dialect(generation: &Generation) -> Option<Arc<DialectPlan>> {
    generation.plan.gateway.routes.first()?.variants.base().cloned()
}

/// A place among the turns that may run at once; given back when it is dropped.
pub struct Slot {
    running: Arc<AtomicUsize>,
    _turn: Turn,
}

impl Slot {
    fn take(running: &Arc<AtomicUsize>, limit: usize, generation: &Arc<Generation>) -> Option<Slot> {
        let slot = Slot { running: running.clone(), _turn: generation.turn() };
        (running.fetch_add(1, Ordering::Relaxed) < limit).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}
