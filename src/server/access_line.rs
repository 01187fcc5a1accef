//! The log line of a response, and who called which route.

use super::router::header;
use super::{log_lines, request_head};
use crate::domain::variables::{self, Record};
use crate::domain::{HttpExchange, LogMoment, Tree};
use crate::engine::render::Scope;
use crate::mapping::config::gateway::GatewayPlan;
use crate::reload::Generation;
use crate::telemetry::{ACCESS_TARGET, TurnMetrics};
use poem::http::Method;
use poem::http::header::AUTHORIZATION;
use poem::{Request, Response};
use std::time::Duration;
use url::form_urlencoded;

/// What the line contains of a request.
pub struct AccessLine {
    method: Method,
    path: String,
    user_agent: Option<String>,
    client: String,
    /// Whether the request has an API key, in one of the places for it.
    auth: &'static str,
    /// Without credentials, if lines of `logs:` may read them.
    headers: Option<Tree>,
}

/// Who called which route, for logs and metrics.
pub struct CallerLabels {
    pub method: Method,
    pub route: String,
    /// By the closed list of gateway.yaml.
    pub client: String,
    /// The name of the API key.
    pub key: Option<String>,
}

impl CallerLabels {
    /// What lines of `logs:` see of the request.
    pub fn exchange(&self) -> HttpExchange {
        HttpExchange {
            method: self.method.as_str().to_owned(),
            route: self.route.clone(),
            status: 200,
            client: self.client.clone(),
            key: self.key.clone(),
            ..HttpExchange::default()
        }
    }
}

/// The path of a route as gateway.yaml writes it: data of a response.
#[derive(Clone)]
pub struct RouteLabel(pub String);

/// The label of paths that nothing serves.
pub const OTHER_ROUTE: &str = "other";
/// Characters of a `User-Agent` in the log.
const MAX_USER_AGENT: usize = 200;

impl AccessLine {
    pub fn of(request: &Request, gateway: &GatewayPlan) -> AccessLine {
        let agent = header(request, "user-agent");
        let headers = request.headers();
        let mut key_headers = gateway.api_keys.iter().flat_map(|key| key.headers.iter());
        let query = request.uri().query().unwrap_or_default();
        let has_parameter = |name: &str| form_urlencoded::parse(query.as_bytes()).any(|(own, _)| own == name);
        let has_key = headers.contains_key(AUTHORIZATION)
            || key_headers.any(|name| headers.contains_key(&name.0))
            || gateway.api_keys.iter().filter_map(|key| key.query.as_deref()).any(has_parameter);
        AccessLine {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            user_agent: agent.map(|agent| agent.chars().take(MAX_USER_AGENT).collect()),
            client: gateway.telemetry.client(agent.unwrap_or_default()).to_owned(),
            auth: if has_key { "present" } else { "none" },
            headers: (!gateway.logs.at(LogMoment::Response).is_empty())
                .then(|| request_head::without_credentials(None, gateway, request).to_tree()),
        }
    }

    pub fn log(
        &self,
        response: &Response,
        id: &str,
        elapsed: Duration,
        generation: &Generation,
        metrics: &TurnMetrics,
    ) {
        let route = response.data::<RouteLabel>().map_or(OTHER_ROUTE, |label| &label.0);
        metrics.observe_request(route, elapsed);
        self.write_lines(route, response, id, elapsed, generation);
        let generation = generation.number;
        let AccessLine { method, path, user_agent: ua, client, auth, .. } = self;
        let (status, dur_ms) = (response.status().as_u16(), elapsed.as_millis() as u64);
        tracing::info!(
            target: ACCESS_TARGET,
            %id,
            %method,
            path,
            route,
            status,
            ua,
            auth,
            client,
            dur_ms,
            generation,
            "responded"
        );
    }
}

impl AccessLine {
    /// The lines of `logs:` about a response.
    fn write_lines(&self, route: &str, response: &Response, id: &str, elapsed: Duration, generation: &Generation) {
        let Some(head) = &self.headers else { return };
        let http = HttpExchange {
            method: self.method.as_str().to_owned(),
            route: route.to_owned(),
            path: Some(self.path.clone()),
            status: response.status().as_u16(),
            user_agent: self.user_agent.clone(),
            client: self.client.clone(),
            key: None,
            auth: Some(self.auth),
            duration_ms: Some(elapsed.as_millis() as u64),
        };
        log_lines::write(&generation.plan.gateway.logs, LogMoment::Response, || {
            Scope::default()
                .set(variables::REQUEST_ID, id)
                .set(variables::HTTP, Record::Http(&http))
                .set(variables::HEADERS, head.get(variables::HEADERS.0))
        });
    }
}

/// The line of a client that was refused before its request was read: nothing is known of it.
pub fn log_refusal(response: &Response, id: &str, generation: u64, metrics: &TurnMetrics) {
    metrics.observe_request(OTHER_ROUTE, Duration::ZERO);
    let status = response.status().as_u16();
    tracing::info!(target: ACCESS_TARGET, %id, route = OTHER_ROUTE, status, dur_ms = 0, generation, "refused");
}
