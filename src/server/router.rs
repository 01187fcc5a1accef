//! Routes a request: to a turn, a static route, the API documentation, `/status` or `/metrics`.

use super::api_docs::ApiDocs;
use super::body::RequestBody;
use super::keepalive::keepalive_interval;
use super::limits::{ClientId, ConcurrencySlot, TurnSlots};
use super::models::ModelCache;
use super::report_once::ReportOnce;
use super::write_stall::{ResponseWatch, WriteTimeout};
use super::{auth, origin, request_head, response, static_routes, status, turn_response};
use crate::domain::{Fault, FaultKind};
use crate::engine::request::RouteInput;
use crate::engine::response_head::HeadContext;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::{GatewayPlan, Validation};
use crate::mapping::config::route::RoutePlan;
use crate::reload::{Generation, Reloader, Target};
use crate::telemetry::{ClientTimeout, Metrics};
use crate::upstream::ClientPool;
use poem::http::HeaderName;
use poem::{Endpoint, Request, Response};
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;

/// The gateway as an endpoint: routes live in the generation, so that a reload can change them.
pub struct Gateway {
    reloader: Arc<Reloader>,
    turn_slots: Arc<TurnSlots>,
    app_state: Arc<AppState>,
    api_docs: ApiDocs,
    started_at: i64,
}

/// State that outlives generations.
pub struct AppState {
    pub client_pool: ClientPool,
    pub metrics: Arc<Metrics>,
    pub write_timeout: Arc<WriteTimeout>,
    pub reports: Arc<ReportOnce>,
    models: ModelCache,
    /// How many large requests may be read at the same time.
    pub large_requests: Arc<Semaphore>,
}

impl Default for AppState {
    fn default() -> AppState {
        let metrics = Arc::<Metrics>::default();
        let write_timeout = Arc::new(WriteTimeout::new(metrics.clone()));
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        AppState {
            client_pool: ClientPool::default(),
            metrics,
            write_timeout,
            reports: Arc::default(),
            models: ModelCache::default(),
            large_requests: Arc::new(Semaphore::new(processors)),
        }
    }
}

/// The context of one turn.
pub struct TurnContext<'c> {
    pub generation: &'c Arc<Generation>,
    pub dialect: Arc<DialectPlan>,
    pub app_state: &'c Arc<AppState>,
    /// How long a stream may be silent before a keepalive is sent.
    pub keepalive: Option<Duration>,
    pub validation: Validation,
    pub id: &'c str,
    /// Whether the client still reads.
    pub response_watch: Option<ResponseWatch>,
}

/// A request after the checks that need only its headers.
struct Admitted<'r> {
    request: Request,
    body: &'r mut RequestBody,
    client: ClientId,
    id: &'r str,
}

impl Gateway {
    pub fn new(reloader: Arc<Reloader>, app_state: Arc<AppState>) -> Gateway {
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
        Gateway { reloader, turn_slots: Arc::default(), app_state, api_docs: ApiDocs::default(), started_at }
    }
}

impl Endpoint for Gateway {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let began = Instant::now();
        let id = uuid::Uuid::now_v7().simple().to_string();
        // Read once: this generation serves the whole request.
        let generation = self.reloader.current();
        self.app_state.write_timeout.set(generation.plan.gateway.client_timeouts.write.0);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut body = RequestBody::take(&mut request);
        let mut response = self.route(&generation, request, &mut body, &id).await;
        body.finish(&mut response);
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
    async fn route(
        &self,
        generation: &Arc<Generation>,
        request: Request,
        body: &mut RequestBody,
        id: &str,
    ) -> Response {
        let gateway = &generation.plan.gateway;
        let targets = generation.paths.find(request.method().as_str(), request.uri()).await;
        let on_path = targets.iter().find_map(|target| match target {
            Target::Route(at) => gateway.routes.get(*at),
            Target::StaticRoute(_) | Target::Metrics | Target::Status | Target::ApiDocs => None,
        });
        self.serve(generation, &targets, request, body, id).await.unwrap_or_else(|fault| {
            // Errors of a path without a route have the format of the first route.
            let route = on_path.or(gateway.routes.first());
            let dialect = route.and_then(|route| route.variants.default_dialect());
            let mut response = response::fault(dialect.map(|dialect| &**dialect), &fault, head(id));
            let allowed: Vec<&str> = targets.iter().flat_map(|target| target.methods(gateway)).collect();
            if let (FaultKind::WrongMethod, Ok(value)) = (fault.kind, allowed.join(", ").parse()) {
                response.headers_mut().insert("allow", value);
            }
            response
        })
    }

    async fn serve(
        &self,
        generation: &Arc<Generation>,
        targets: &[Target],
        request: Request,
        body: &mut RequestBody,
        id: &str,
    ) -> Result<Response, Fault> {
        let gateway = &generation.plan.gateway;
        let client = self.check_access(gateway, targets, &request)?;
        let (method, path) = (request.method(), request.uri().path());
        let unknown_path = || Fault::new(FaultKind::UnknownPath, format!("unknown endpoint: {path}"));
        match targets.iter().find(|target| target.methods(gateway).contains(&method.as_str())) {
            None if targets.is_empty() => Err(unknown_path()),
            None => Err(Fault::new(FaultKind::WrongMethod, format!("{path} does not allow {method}"))),
            Some(Target::Route(at)) => {
                let admitted = Admitted { request, body, client, id };
                Ok(self.route_turn(generation, &gateway.routes[*at], admitted).await)
            }
            Some(Target::StaticRoute(at)) => {
                let static_route = &gateway.static_routes[*at];
                let models = match static_route.prefix() {
                    None => self.app_state.models.all(gateway, &self.app_state.client_pool).await,
                    Some(_) => Vec::new(),
                };
                let head = request_head::of_static_route(static_route, gateway, &request);
                static_routes::render(static_route, gateway, &models, path, &head, self.started_at)
            }
            Some(Target::Metrics) => status::metrics(&self.reloader, &self.app_state, header(&request, "accept")),
            Some(Target::Status) => status::status(&self.reloader),
            Some(Target::ApiDocs) => self.api_docs.respond(generation, &request).ok_or_else(unknown_path),
        }
    }

    /// The API documentation is public, and an unknown path has nothing to protect.
    fn check_access(&self, gateway: &GatewayPlan, targets: &[Target], request: &Request) -> Result<ClientId, Fault> {
        let keys = &self.app_state.client_pool.keys;
        let key = match targets.iter().any(|target| *target != Target::ApiDocs) {
            true => auth::check(gateway, keys, request.headers(), request.uri().query())?,
            false => None,
        };
        if targets.iter().any(|target| matches!(target, Target::Metrics | Target::Status)) {
            let host = request.uri().authority().map(|a| a.as_str()).or_else(|| header(request, "host"));
            origin::check_host(gateway, keys, host)?;
        }
        let address = request.remote_addr().as_socket_addr();
        Ok(match (key, address) {
            (Some(name), _) => ClientId::Key(name.into()),
            (None, Some(address)) => ClientId::of_address(address.ip()),
            (None, None) => ClientId::Unknown,
        })
    }

    async fn route_turn(&self, generation: &Arc<Generation>, route: &RoutePlan, admitted: Admitted<'_>) -> Response {
        let id = admitted.id;
        let response = match route.variants.select(|name| joined_header(&admitted.request, name)) {
            Some(Ok(variant)) => {
                let turn = self.turn(generation, &variant.plan, route, admitted).await;
                turn.unwrap_or_else(|fault| response::fault(Some(&variant.plan), &fault, head(id)))
            }
            Some(Err(rejected)) => response::fault(Some(rejected.plan), &rejected.fault, head(id)),
            None => response::fault(None, &Fault::new(FaultKind::Internal, "the route has no dialect"), head(id)),
        };
        self.app_state.metrics.count_response(&route.path, response.status().as_u16());
        response
    }

    async fn turn(
        &self,
        generation: &Arc<Generation>,
        dialect: &Arc<DialectPlan>,
        route: &RoutePlan,
        admitted: Admitted<'_>,
    ) -> Result<Response, Fault> {
        let gateway = &generation.plan.gateway;
        let (app_state, metrics) = (&self.app_state, &self.app_state.metrics);
        let Admitted { request, body, client, id } = admitted;
        let keepalive = keepalive_interval(&gateway.keepalive, &request);
        let body =
            body.read(gateway.limits.body_bytes.0, gateway.client_timeouts.body.0).await.inspect_err(|fault| {
                if fault.kind == FaultKind::Timeout {
                    metrics.count_client_timeout(ClientTimeout::Body);
                }
            })?;
        // After the body was read: a client that sends it slowly must not keep others out.
        let slot = ConcurrencySlot::acquire(&self.turn_slots, gateway, client, generation).map_err(|reached| {
            metrics.count_limit_reached(reached.name());
            reached.fault()
        })?;
        let (dialect, validation) = (dialect.clone(), route.validation);
        let response_watch = request.extensions().get::<ResponseWatch>().cloned();
        let input = RouteInput { head: request_head::of_turn(route, gateway, &request), set: &route.set.0 };
        let context = TurnContext { generation, dialect, app_state, keepalive, validation, id, response_watch };
        turn_response::respond(context, body, input, slot).await
    }
}

/// What the headers of an error can read before the request was read.
fn head(request_id: &str) -> HeadContext<'_> {
    HeadContext { request_id, ..HeadContext::default() }
}

pub(super) fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request.headers().get(name).and_then(|v| v.to_str().ok())
}

/// The value of a header. Repeated headers are joined, which never gives a valid policy value.
pub(super) fn joined_header(request: &Request, name: &str) -> Option<String> {
    let mut values = request.headers().get_all(name).iter().map(|v| String::from_utf8_lossy(v.as_bytes()));
    let first = values.next()?.into_owned();
    Some(values.fold(first, |all, value| format!("{all}, {value}")))
}
