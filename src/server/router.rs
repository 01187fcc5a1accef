//! Routes a request: to a turn, a static route, the API documentation, `/status` or `/metrics`.

use super::access::{self, Caller};
use super::access_line::{self, AccessLine, CallerLabels, OTHER_ROUTE};
use super::admission::Admission;
use super::api_docs::ApiDocs;
use super::app_state::AppState;
use super::auth;
use super::body::RequestBody;
use super::cors::RequestOrigin;
use super::keepalive::keepalive_interval;
use super::limits::{ConcurrencySlot, TurnSlots};
use super::refusal::RefusalResponse;
use super::write_stall::ResponseWatch;
use super::{
    health, methods, metric_aliases, request_head, response, static_routes, status, turn_response, usage_report,
};
use crate::domain::{Fault, FaultKind, RequestHead, Tree, UsageReport};
use crate::engine::request::RouteInput;
use crate::engine::response_head::HeadContext;
use crate::engine::variant::SelectedVariant;
use crate::mapping::config::client_keys::ClientKey;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::route::{HeadResponse, RoutePlan};
use crate::mapping::grammar::notation;
use crate::reload::{Generation, Reloader, Target};
use crate::telemetry::ClientTimeout;
use crate::upstream::descriptors;
use poem::http::header::{CONNECTION, UPGRADE};
use poem::http::{HeaderName, HeaderValue, Method, Version};
use poem::{Endpoint, Request, Response};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The gateway as an endpoint: routes live in the generation, so that a reload can change them.
pub struct Gateway {
    reloader: Arc<Reloader>,
    turn_slots: Arc<TurnSlots>,
    app_state: Arc<AppState>,
    api_docs: ApiDocs,
    started_at: i64,
}

/// The context of one turn.
pub struct TurnContext<'c> {
    pub generation: &'c Arc<Generation>,
    /// Of the client, before its request was read.
    pub dialect: Arc<DialectPlan>,
    /// If the content of the request may choose another variant: with the path, query and headers.
    pub choose: Option<(SelectedVariant<'c>, RequestHead)>,
    pub app_state: &'c Arc<AppState>,
    /// How long a stream may be silent before a keepalive is sent.
    pub keepalive: Option<Duration>,
    pub validation: Validation,
    pub id: &'c str,
    /// The API key of the client, if it needs one.
    pub key: Option<&'c ClientKey>,
    /// Whether the client still reads.
    pub response_watch: Option<ResponseWatch>,
    pub labels: CallerLabels,
    pub admission: Arc<Admission>,
}

/// A request after the checks that need only its headers.
struct Admitted<'r> {
    request: Request,
    body: &'r mut RequestBody,
    caller: Caller<'r>,
    id: &'r str,
    /// The client by the closed list of gateway.yaml.
    client: &'r str,
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
        let id = new_id();
        // Read once: this generation serves the whole request.
        let generation = self.reloader.current();
        self.app_state.write_timeout.set(generation.plan.gateway.client_timeouts.write.0);
        let access_line = AccessLine::of(&request, &generation.plan.gateway);
        let origin = RequestOrigin::of(&request);
        let version = request.version();
        let is_kept_alive = version == Version::HTTP_11 && !requests_close(&request);
        let mut body = RequestBody::take(&mut request);
        let (mut response, route) = self.route(&generation, request, &mut body, (&id, access_line.client)).await;
        body.finish(&mut response);
        // HTTP/2 has no such header, and a connection that ends after the response is not kept alive.
        let kept_alive = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
        let is_wrong = !is_kept_alive && response.headers().get(CONNECTION).is_some_and(kept_alive);
        if version == Version::HTTP_2 || is_wrong {
            response.headers_mut().remove(CONNECTION);
        }
        let elapsed = began.elapsed();
        let names = &generation.plan.gateway.headers;
        set_header(&mut response, &names.request_id, &id);
        if let Some(name) = &names.elapsed_ms {
            set_header(&mut response, name, &(elapsed.as_millis() as u64).to_string());
        }
        if let Some(cors) = &generation.plan.gateway.cors {
            origin.add_headers(cors, response.headers_mut());
        }
        access_line.log(route, &response, &id, elapsed, &generation, &self.app_state.metrics.turns);
        Ok(response)
    }
}

impl Gateway {
    /// Renders the response for clients that are refused before their request is read.
    pub fn refusal(&self) -> RefusalResponse {
        let (reloader, app_state) = (self.reloader.clone(), self.app_state.clone());
        Arc::new(move || {
            let generation = reloader.current();
            let app_state = app_state.clone();
            Box::pin(async move {
                let gateway = &generation.plan.gateway;
                let dialect = gateway.routes.first().and_then(|route| route.variants.default_dialect());
                let id = new_id();
                let fault = descriptors::fault();
                let mut response = response::fault(dialect.map(|dialect| &**dialect), &fault, head(&id));
                set_header(&mut response, &gateway.headers.request_id, &id);
                app_state.metrics.count_limit_reached("open_files");
                access_line::log_refusal(&response, &id, generation.number, &app_state.metrics.turns);
                response::closing(response).await
            })
        })
    }

    /// The response, and the path of its route as gateway.yaml writes it.
    async fn route<'g>(
        &self,
        generation: &'g Arc<Generation>,
        request: Request,
        body: &mut RequestBody,
        (id, client): (&str, &str),
    ) -> (Response, &'g str) {
        let gateway = &generation.plan.gateway;
        let targets = generation.paths.find(request.method().as_str(), request.uri()).await;
        let on_path = targets.iter().find_map(|target| match target {
            Target::Route(at) => gateway.routes.get(*at),
            Target::StaticRoute(_) | Target::Metrics | Target::Status | Target::ApiDocs => None,
        });
        let counted = (*request.method() != Method::OPTIONS).then(|| methods::known_method(request.method()));
        let label = targets.first().map_or(OTHER_ROUTE, |target| target.path(gateway));
        let response = self.serve(generation, &targets, request, body, (id, client)).await.unwrap_or_else(|fault| {
            // Errors of a path without a route have the format of the first route.
            let route = on_path.or(gateway.routes.first());
            let dialect = route.and_then(|route| route.variants.default_dialect());
            let mut response = response::fault(dialect.map(|dialect| &**dialect), &fault, head(id));
            match fault.kind {
                FaultKind::WrongMethod => methods::add_allow(&mut response, &targets, gateway),
                // The protocol that the endpoint has.
                FaultKind::UpgradeRequired => {
                    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
                }
                _ => {}
            }
            response
        });
        if let Some(method) = counted {
            self.app_state.metrics.count_response(label, method, response.status().as_u16());
        }
        (response, label)
    }

    async fn serve(
        &self,
        generation: &Arc<Generation>,
        targets: &[Target],
        request: Request,
        body: &mut RequestBody,
        (id, client): (&str, &str),
    ) -> Result<Response, Fault> {
        let gateway = &generation.plan.gateway;
        let (method, path) = (request.method(), request.uri().path());
        let own = targets.iter().find(|target| target.method(gateway) == method.as_str());
        let target =
            own.or_else(|| targets.iter().find(|t| t.methods(gateway).any(|allowed| allowed == method.as_str())));
        // Browsers send no key with a preflight request.
        if *method == Method::OPTIONS && own.is_none() && target.is_some_and(|target| *target != Target::ApiDocs) {
            return Ok(methods::options(targets, gateway));
        }
        let caller = access::check(gateway, &self.app_state.client_pool.keys, targets, target.copied(), &request)?;
        let unknown_path = || Fault::new(FaultKind::UnknownPath, format!("unknown endpoint: {path}"));
        match target {
            None if targets.is_empty() => Err(unknown_path()),
            None if methods::requests_websocket(&request) && methods::needs_upgrade(targets, gateway) => {
                Err(Fault::new(FaultKind::UpgradeRequired, format!("{path} does not serve WebSockets")))
            }
            None => Err(Fault::new(FaultKind::WrongMethod, format!("{path} does not allow {method}"))),
            // A turn would be started for nobody: the response to HEAD has no body.
            Some(Target::Route(at)) if own.is_none() => {
                if gateway.routes[*at].head == HeadResponse::WhenReady {
                    self.app_state.lifecycle.check_accepts()?;
                    self.app_state.client_pool.check_ready(&gateway.backends)?;
                }
                Ok(response::text(HEAD_TYPE, String::new()))
            }
            Some(Target::Route(at)) => {
                let admitted = Admitted { request, body, caller, id, client };
                Ok(self.route_turn(generation, &gateway.routes[*at], admitted).await)
            }
            Some(Target::StaticRoute(at)) => {
                let static_route = &gateway.static_routes[*at];
                let mut models = match static_route.prefix() {
                    None if static_route.reads_models => {
                        self.app_state.models.all(gateway, &self.app_state.client_pool).await
                    }
                    None | Some(_) => Vec::new(),
                };
                models.retain(|(name, _)| caller.allows_model(name));
                let head = request_head::of_static_route(static_route, gateway, &request);
                let health = health::of(gateway, &self.app_state, self.turn_slots.in_flight());
                let usage_log = match &gateway.usage_log {
                    Some(log) if static_route.reads_usage_log => {
                        usage_report::read(log, &self.app_state, &head).await?
                    }
                    Some(_) | None => UsageReport::default(),
                };
                let metrics = match static_route.reads_metrics {
                    true => metric_aliases::as_tree(&status::metrics_text(&self.reloader, &self.app_state)),
                    false => Tree::Null,
                };
                static_route.resets.iter().for_each(|metric| self.app_state.metrics.reset(metric.name()));
                let allows_model = &|name: &str| caller.allows_model(name);
                let shown = static_routes::Shown {
                    models: &models,
                    allows_model,
                    health: &health,
                    usage_log: &usage_log,
                    metrics: &metrics,
                    created: self.started_at,
                };
                static_routes::render(static_route, gateway, path, &head, &shown)
            }
            Some(Target::Metrics) => status::metrics(&self.reloader, &self.app_state, header(&request, "accept")),
            Some(Target::Status) => status::status(&self.reloader),
            Some(Target::ApiDocs) => self.api_docs.respond(generation, &request).ok_or_else(unknown_path),
        }
    }

    async fn route_turn(&self, generation: &Arc<Generation>, route: &RoutePlan, admitted: Admitted<'_>) -> Response {
        let id = admitted.id;
        match route.variants.select(|name| joined_header(&admitted.request, name)) {
            Some(Ok(selected)) => {
                let gateway = &generation.plan.gateway;
                let admission = Admission::new(gateway, &self.app_state, &admitted.caller);
                let turn = self.turn(generation, selected, route, admitted, &admission).await;
                let fault = |fault| response::fault(Some(&selected.variant.plan), &fault, head(id));
                let mut response = turn.unwrap_or_else(fault);
                admission.add_headers(gateway, &mut response);
                response
            }
            Some(Err(rejected)) => response::fault(Some(rejected.plan), &rejected.fault, head(id)),
            None => response::fault(None, &Fault::new(FaultKind::Internal, "the route has no dialect"), head(id)),
        }
    }

    async fn turn(
        &self,
        generation: &Arc<Generation>,
        selected: SelectedVariant<'_>,
        route: &RoutePlan,
        admitted: Admitted<'_>,
        admission: &Arc<Admission>,
    ) -> Result<Response, Fault> {
        let gateway = &generation.plan.gateway;
        let (app_state, metrics) = (&self.app_state, &self.app_state.metrics);
        let Admitted { request, body, caller, id, client } = admitted;
        admission.admit_request(gateway, app_state)?;
        let keepalive = keepalive_interval(&gateway.keepalive, &request);
        let body =
            body.read(gateway.limits.body_bytes.0, gateway.client_timeouts.body.0).await.inspect_err(|fault| {
                if fault.kind == FaultKind::Timeout {
                    metrics.count_client_timeout(ClientTimeout::Body);
                }
            })?;
        // After the body was read: a client that sends it slowly must not keep others out.
        let several_keys = auth::has_several_api_keys(gateway, &app_state.client_pool.keys);
        let slot = ConcurrencySlot::acquire(&self.turn_slots, gateway, caller.id, several_keys, generation);
        let slot = slot.map_err(|reached| {
            metrics.count_limit_reached(reached.name());
            let in_flight = self.turn_slots.in_flight();
            admission.count_turns(in_flight, in_flight);
            reached.fault()
        })?;
        admission.count_turns(slot.before, slot.before + 1);
        let (dialect, validation) = (selected.variant.plan.clone(), route.validation);
        let choose = selected
            .depends_on_request()
            .then(|| (selected, request_head::without_credentials(route.path_matcher.as_ref(), gateway, &request)));
        let labels = CallerLabels {
            method: request.method().clone(),
            route: route.path.clone(),
            client: client.to_owned(),
            key: caller.key.map(|key| key.name.clone()),
        };
        let response_watch = request.extensions().get::<ResponseWatch>().cloned();
        let input = RouteInput { head: request_head::of_turn(route, gateway, &request), set: &route.set.0 };
        let key = caller.key;
        let context = TurnContext {
            generation,
            dialect,
            choose,
            app_state,
            keepalive,
            validation,
            id,
            key,
            response_watch,
            labels,
            admission: admission.clone(),
        };
        turn_response::respond(context, body, input, slot).await
    }
}

/// The content type of the response to HEAD at the endpoint of a turn.
const HEAD_TYPE: &str = "application/json; charset=utf-8";

/// Whether the client wants the connection to end after the response.
fn requests_close(request: &Request) -> bool {
    let values = request.headers().get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// The id of a request, in its response and in the log.
fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

fn set_header(response: &mut Response, name: &notation::HeaderName, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.0.as_str()), value.parse()) {
        response.headers_mut().insert(name, value);
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
