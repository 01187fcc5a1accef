//! Starts a turn: reads the client's body and builds the backend's request. A large body is read on a thread of its own,
//! so that the connections of other clients are served meanwhile, and reading stops if its client disconnects.

use super::admission::Admission;
use super::app_state::AppState;
use super::static_routes;
use crate::domain::{Fault, FaultKind, TurnRequest};
use crate::engine::emission_budget::Cancelled;
use crate::engine::request::{self, RequestLimits, RouteInput};
use crate::mapping::config::client_keys::ClientKey;
use crate::mapping::config::dialect::DialectPlan;
use crate::reload::Generation;
use crate::upstream::{self, UpstreamTurn};
use std::sync::Arc;

/// A body of this size is read in a few milliseconds, which is no reason to change the thread.
const LARGE_BODY: usize = 256 * 1024;

/// A turn after its request was read and given to a backend.
pub struct StartedTurn {
    pub request: Arc<TurnRequest>,
    /// Its index in `backends:` of the gateway.
    pub backend: usize,
    /// The model as gateway.yaml names it.
    pub model: String,
    pub upstream: UpstreamTurn,
}

pub async fn start(
    generation: &Arc<Generation>,
    dialect: &Arc<DialectPlan>,
    app_state: &Arc<AppState>,
    body: Vec<u8>,
    input: RouteInput<'_>,
    (key, admission): (Option<&ClientKey>, &Arc<Admission>),
) -> Result<StartedTurn, Fault> {
    let limits = &generation.plan.gateway.limits;
    let mut limits = RequestLimits {
        values: limits.request_values.0,
        items: limits.request_items.0,
        depth: limits.json_depth.0,
        choices: limits.choices.0,
        cancelled: None,
    };
    if body.len() < LARGE_BODY {
        return read_and_start(generation, dialect, app_state, &body, input, (key, admission), &limits);
    }
    let client = CancelOnDrop::default();
    limits.cancelled = Some(client.0.clone());
    // As many as there are processors: each takes a multiple of its body in memory.
    let permit = app_state.large_requests.clone().acquire_owned().await;
    let (generation, dialect, app_state) = (generation.clone(), dialect.clone(), app_state.clone());
    let (head, set, key, admission) = (input.head, input.set.to_vec(), key.cloned(), admission.clone());
    let started = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let input = RouteInput { head, set: &set };
        read_and_start(&generation, &dialect, &app_state, &body, input, (key.as_ref(), &admission), &limits)
    });
    started.await.unwrap_or_else(|_| Err(Fault::new(FaultKind::Internal, "the request could not be read")))
}

/// Dropped with the connection if the client disconnects.
#[derive(Default)]
struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

fn read_and_start(
    generation: &Generation,
    dialect: &DialectPlan,
    app_state: &AppState,
    body: &[u8],
    input: RouteInput,
    (key, admission): (Option<&ClientKey>, &Admission),
    limits: &RequestLimits,
) -> Result<StartedTurn, Fault> {
    let mut request = request::read_with(&dialect.request, body, input, limits)?;
    let plan = &generation.plan;
    // For the clients of a key, models that it does not allow do not exist.
    let is_allowed = key.is_none_or(|key| key.allows_model(&request.model));
    let model = plan.gateway.resolve_model(&mut request).filter(|_| is_allowed).ok_or_else(|| {
        let param = dialect.request.param_of("model").unwrap_or_else(|| "model".to_owned());
        static_routes::unknown_model(&request.model).param(param)
    })?;
    let backend = plan.gateway.backends.get(model.backend).ok_or_else(no_backend)?;
    limits.check_cancelled()?;
    admission.admit_prompt(&request, dialect)?;
    let request = Arc::new(request);
    let upstream = upstream::start(&app_state.client_pool, plan, backend, &request, &dialect.request)?;
    Ok(StartedTurn { request, backend: model.backend, model: model.name(), upstream })
}

pub fn no_backend() -> Fault {
    Fault::new(FaultKind::Internal, "the model has no backend")
}
