//! The second listener, for those who run the gateway: reload, status, metrics. Off unless asked for, on this machine
//! only, with a token of its own.

use super::listener::Listener;
use super::{Shell, response, status};
use crate::domain::Tree;
use crate::mapping::config::gateway::GatewayPlan;
use crate::reload::{Cause, Outcome, Store};
use crate::upstream::secrets::{Keyring, Secret};
use poem::http::header::{ALLOW, WWW_AUTHENTICATE};
use poem::http::{HeaderValue, Method};
use poem::{Endpoint, Request, Response};
use std::sync::Arc;

pub struct Admin {
    store: Arc<Store>,
    shell: Arc<Shell>,
    token: Secret,
}

/// Why the listener cannot be opened, and what would help.
pub struct Closed {
    pub why: String,
    pub help: String,
}

impl Admin {
    /// Bound and ready to serve; `None` if nobody asked for it. `keys` are those of clients.
    pub async fn open(gateway: &GatewayPlan, keys: &Keyring) -> Result<Option<(Listener, Secret)>, Closed> {
        let Some(plan) = &gateway.admin else { return Ok(None) };
        let closed = |why: String, help: &str| Closed { why, help: help.to_owned() };
        // Not on the ring of the others: a backend that names it must not get it.
        let own = Keyring::default();
        let Some(token) = own.get(&plan.token) else {
            let why = format!("the admin listener needs a token, and {}", own.why_missing(&plan.token));
            return Err(closed(why, "callers show it as `Authorization: Bearer TOKEN`"));
        };
        // A client's key is in many hands.
        let clients = gateway.keys.iter().filter_map(|key| keys.get(&key.secret));
        if clients.fold(false, |same, key| same | key.matches(token.expose().as_bytes())) {
            let why = "the token of the admin listener is also a client's key".to_owned();
            return Err(closed(why, "give it a token of its own"));
        }
        let listen = &plan.listen;
        let listener = Listener::bind(listen)
            .await
            .map_err(|error| closed(format!("cannot listen on {listen}: {error}"), "choose another place"))?;
        if !listener.local_addr().ip().is_loopback() {
            let why = format!("the admin listener would be reached from elsewhere at {listen}");
            return Err(closed(why, "it listens on this machine only: 127.0.0.1:PORT"));
        }
        Ok(Some((listener, token)))
    }

    pub fn new(store: Arc<Store>, shell: Arc<Shell>, token: Secret) -> Admin {
        Admin { store, shell, token }
    }
}

impl Endpoint for Admin {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.answer(&request).await;
        tracing::info!(%method, path, status = response.status().as_u16(), "admin");
        Ok(response)
    }
}

impl Admin {
    async fn answer(&self, request: &Request) -> Response {
        if !super::auth::bearer(request.headers()).is_some_and(|shown| self.token.matches(shown)) {
            let mut response = refusal(401, "the admin token is needed: `Authorization: Bearer TOKEN`");
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"admin\""));
            return response;
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            "/admin/reload" if *request.method() == Method::POST => self.reload().await,
            "/admin/reload" => refuse_method("POST"),
            "/status" if reads => status::status(&self.store),
            "/metrics" if reads => status::metrics(&self.store, &self.shell),
            "/status" | "/metrics" => refuse_method("GET, HEAD"),
            path => refusal(404, &format!("there is nothing at {path}: POST /admin/reload, GET /status, GET /metrics")),
        }
    }

    /// Answers when it is done: what it says is so.
    async fn reload(&self) -> Response {
        let store = self.store.clone();
        match tokio::task::spawn_blocking(move || store.reload(Cause::Admin)).await {
            Ok(outcome) => {
                let status = match outcome {
                    Outcome::Applied(_) | Outcome::Unchanged(_) => 200,
                    Outcome::Refused(_) => 422,
                };
                response::json(status, &outcome.told(&self.store.current()))
            }
            Err(error) => {
                tracing::error!(%error, "a reload panicked");
                refusal(500, "the reload failed; the log has more")
            }
        }
    }
}

fn refusal(status: u16, message: &str) -> Response {
    response::json(status, &Tree::map([("error", Tree::map([("message", Tree::from(message))]))]))
}

fn refuse_method(allowed: &'static str) -> Response {
    let mut response = refusal(405, &format!("this takes {allowed}"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
