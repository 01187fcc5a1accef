//! The log line of a response, and who called which route.

use super::{log_lines, request_head};
use crate::domain::variables::{self, Record};
use crate::domain::{HttpExchange, LogMoment, Tree};
use crate::engine::render::Scope;
use crate::mapping::config::gateway::GatewayPlan;
use crate::reload::Generation;
use crate::telemetry::{ACCESS_TARGET, TurnMetrics};
use poem::http::header::{AUTHORIZATION, USER_AGENT};
use poem::http::{HeaderValue, Method, Uri};
use poem::{Request, Response};
use std::time::Duration;
use url::form_urlencoded;

/// What the line contains of a request.
pub struct AccessLine<'g> {
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
    /// By the closed list of gateway.yaml.
    pub client: &'g str,
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

/// The label of paths that nothing serves.
pub const OTHER_ROUTE: &str = "other";
/// Characters of a `User-Agent` in the log.
const MAX_USER_AGENT: usize = 200;

impl<'g> AccessLine<'g> {
    pub fn of(request: &Request, gateway: &'g GatewayPlan) -> AccessLine<'g> {
        let agent = request.headers().get(USER_AGENT).filter(|agent| agent.to_str().is_ok());
        let headers = request.headers();
        let mut key_headers = gateway.api_keys.iter().flat_map(|key| key.headers.iter());
        let query = request.uri().query().unwrap_or_default();
        let has_parameter = |name: &str| form_urlencoded::parse(query.as_bytes()).any(|(own, _)| own == name);
        let has_key = headers.contains_key(AUTHORIZATION)
            || key_headers.any(|name| headers.contains_key(&name.0))
            || gateway.api_keys.iter().filter_map(|key| key.query.as_deref()).any(has_parameter);
        AccessLine {
            method: request.method().clone(),
            uri: request.uri().clone(),
            user_agent: agent.cloned(),
            client: gateway.telemetry.client(agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default()),
            auth: if has_key { "present" } else { "none" },
            headers: (!gateway.logs.at(LogMoment::Response).is_empty())
                .then(|| request_head::without_credentials(None, gateway, request).to_tree()),
        }
    }

    pub fn log(
        &self,
        route: &str,
        response: &Response,
        id: &str,
        elapsed: Duration,
        generation: &Generation,
        metrics: &TurnMetrics,
    ) {
        metrics.observe_request(route, elapsed);
        self.write_lines(route, response, id, elapsed, generation);
        let generation = generation.number;
        let AccessLine { method, client, auth, .. } = self;
        let (path, ua) = (self.uri.path(), self.user_agent());
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

impl AccessLine<'_> {
    fn user_agent(&self) -> Option<&str> {
        let agent = self.user_agent.as_ref()?.to_str().ok()?;
        Some(agent.char_indices().nth(MAX_USER_AGENT).map_or(agent, |(end, _)| &agent[..end]))
    }

    /// The lines of `logs:` about a response.
    fn write_lines(&self, route: &str, response: &Response, id: &str, elapsed: Duration, generation: &Generation) {
        let Some(head) = &self.headers else { return };
        let http = HttpExchange {
            method: self.method.as_str().to_owned(),
            route: route.to_owned(),
            path: Some(self.uri.path().to_owned()),
            status: response.status().as_u16(),
            user_agent: self.user_agent().map(str::to_owned),
            client: self.client.to_owned(),
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
