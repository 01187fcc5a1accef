//! The admin listener: reload, status and metrics. Off by default; it listens on a loopback address only and requires a
//! token of its own.

use super::listener::Listener;
use super::{AppState, response, status};
use crate::domain::Fault;
use crate::mapping::config::gateway::GatewayPlan;
use crate::reload::{Cause, ReloadOutcome, Reloader};
use crate::upstream::secrets::{Keyring, Secret};
use poem::http::header::{ACCEPT, ALLOW, WWW_AUTHENTICATE};
use poem::http::{HeaderValue, Method};
use poem::{Endpoint, Request, Response};
use serde_json::json;
use std::sync::Arc;

pub struct Admin {
    reloader: Arc<Reloader>,
    app_state: Arc<AppState>,
    token: Secret,
}

impl Admin {
    /// Binds the listener; `None` if it is not configured. `keys` contains the API keys of clients. An error has a help
    /// line.
    pub async fn bind(gateway: &GatewayPlan, keys: &Keyring) -> Result<Option<(Listener, Secret)>, String> {
        let Some(plan) = &gateway.admin else { return Ok(None) };
        let error = |why: String, help: &str| format!("{why}\nhelp: {help}");
        // A separate keyring: a backend that names the same source must not get the token.
        let admin_keys = Keyring::default();
        let Some(token) = admin_keys.get(&plan.token) else {
            let why = format!("the admin listener needs a token, but {}", admin_keys.missing_reason(&plan.token));
            return Err(error(why, "callers send it as `Authorization: Bearer TOKEN`"));
        };
        // API keys are shared with clients, who must not get admin access.
        let clients = gateway.api_keys.iter().filter_map(|key| keys.get(&key.secret));
        if clients.fold(false, |same, key| same | key.matches(token.expose().as_bytes())) {
            let why = "the token of the admin listener is also a client API key".to_owned();
            return Err(error(why, "use a separate token"));
        }
        let listen = &plan.listen.0;
        let listener = Listener::bind(listen)
            .await
            .map_err(|cause| error(format!("cannot listen on {listen}: {cause}"), "choose another address"))?;
        if !listener.local_addr().ip().is_loopback() {
            let why = format!("the admin listener would accept connections from other hosts at {listen}");
            return Err(error(why, "it must listen on a loopback address: 127.0.0.1:PORT"));
        }
        Ok(Some((listener, token)))
    }

    pub fn new(reloader: Arc<Reloader>, app_state: Arc<AppState>, token: Secret) -> Admin {
        Admin { reloader, app_state, token }
    }
}

impl Endpoint for Admin {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.respond(&request).await;
        tracing::info!(%method, path, status = response.status().as_u16(), "admin");
        Ok(response)
    }
}

impl Admin {
    async fn respond(&self, request: &Request) -> Response {
        let token = super::auth::bearer_token(request.headers()).filter(|token| !token.is_empty());
        if !token.is_some_and(|token| self.token.matches(token)) {
            let message = match token {
                Some(_) => "invalid admin token",
                None => "the admin token is required: `Authorization: Bearer TOKEN`",
            };
            let mut response = error_response(401, message);
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"admin\""));
            return response;
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            "/admin/reload" if *request.method() == Method::POST => self.reload().await,
            "/admin/reload" => method_not_allowed("POST"),
            "/status" if is_read => own_document(status::status(&self.reloader)),
            "/metrics" if is_read => {
                let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
                own_document(status::metrics(&self.reloader, &self.app_state, accept))
            }
            "/status" | "/metrics" => method_not_allowed("GET, HEAD"),
            path => error_response(
                404,
                &format!("unknown endpoint: {path} (available: POST /admin/reload, GET /status, GET /metrics)"),
            ),
        }
    }

    /// Responds after the reload is complete.
    async fn reload(&self) -> Response {
        let reloader = self.reloader.clone();
        match tokio::task::spawn_blocking(move || reloader.reload(Cause::Admin)).await {
            Ok(outcome) => {
                let status = match outcome {
                    ReloadOutcome::Applied(_) | ReloadOutcome::Unchanged(_) => 200,
                    ReloadOutcome::Rejected(_) => 422,
                };
                response::json(status, outcome.to_json(&self.reloader.current()).to_string())
            }
            Err(error) => {
                tracing::error!(%error, "a reload panicked");
                error_response(500, "the reload failed; see the log")
            }
        }
    }
}

fn own_document(document: Result<Response, Fault>) -> Response {
    document.unwrap_or_else(|fault| error_response(fault.status(), &fault.message))
}

fn error_response(status: u16, message: &str) -> Response {
    response::json(status, json!({ "error": { "message": message } }).to_string())
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = error_response(405, &format!("allowed methods: {allowed}"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
