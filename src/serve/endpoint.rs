//! One request: which generation, which route, what it asks.

use super::{answer, body, pages, reply};
use crate::canon::{Fault, FaultKind};
use crate::mapping::dialect::DialectPlan;
use crate::reload::{Generation, Store};
use poem::http::Method;
use poem::{Endpoint, Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The gateway as an endpoint: routes live in the generation, so that a reload can change them.
pub struct Gateway {
    store: Arc<Store>,
    /// Turns under way, over all generations.
    running: Arc<AtomicUsize>,
    started: i64,
}

impl Gateway {
    pub fn new(store: Arc<Store>) -> Gateway {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
        Gateway { store, running: Arc::default(), started }
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
        if let Ok(value) = id.parse() {
            response.headers_mut().insert("x-request-id", value);
        }
        let elapsed_ms = began.elapsed().as_millis() as u64;
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
        if let Some(route) = on_path.iter().find(|r| r.method == request.method().as_str()) {
            let Some(dialect) = generation.plan.dialect(&route.dialect, route.profile.as_deref()) else {
                return reply::fault(fallback.as_deref(), &Fault::new(FaultKind::Internal, "the route has no dialect"));
            };
            return self.turn(generation, dialect.clone(), request, id).await;
        }
        let asked = if *request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        let page = pages::find(gateway, asked.as_str(), &path);
        let mut allowed: Vec<&str> = on_path.iter().map(|r| r.method.as_str()).collect();
        allowed.extend(pages::methods(gateway, &path));
        match page {
            Some(page) => pages::render(page, gateway, &path, self.started)
                .unwrap_or_else(|fault| reply::fault(fallback.as_deref(), &fault)),
            None if allowed.is_empty() => {
                let message = format!("there is nothing at {path}");
                reply::fault(fallback.as_deref(), &Fault::new(FaultKind::UnknownPath, message))
            }
            None => {
                let message = format!("{path} does not take {}", request.method());
                let mut response = reply::fault(fallback.as_deref(), &Fault::new(FaultKind::WrongMethod, message));
                if let Ok(value) = allowed.join(", ").parse() {
                    response.headers_mut().insert("allow", value);
                }
                response
            }
        }
    }

    async fn turn(
        &self,
        generation: &Arc<Generation>,
        dialect: Arc<DialectPlan>,
        mut request: Request,
        id: &str,
    ) -> Response {
        let limits = generation.plan.gateway.limits;
        let Some(slot) = Slot::take(&self.running, limits.streams) else {
            let message = format!("{} turns are under way, which is all that is allowed", limits.streams);
            let fault = Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) };
            return reply::fault(Some(&dialect), &fault);
        };
        let body = match body::read(request.take_body(), limits.body_bytes).await {
            Ok(body) => body,
            Err(fault) => return reply::fault(Some(&dialect), &fault),
        };
        match answer::answer(generation, dialect.clone(), &body, slot, id).await {
            Ok(response) => response,
            Err(fault) => reply::fault(Some(&dialect), &fault),
        }
    }
}

/// An unknown path is refused in the words of the first route.
fn default_dialect(generation: &Generation) -> Option<Arc<DialectPlan>> {
    let route = generation.plan.gateway.routes.first()?;
    generation.plan.dialect(&route.dialect, route.profile.as_deref()).cloned()
}

/// A place among the turns that may run at once; given back when it is dropped.
pub struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(running: &Arc<AtomicUsize>, limit: usize) -> Option<Slot> {
        let slot = Slot(running.clone());
        (running.fetch_add(1, Ordering::Relaxed) < limit).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
