//! Static routes: responses without a backend, such as the list of models.

use super::response;
use crate::domain::{Fault, FaultKind, Health, RequestHead, Tree, UsageReport};
use crate::engine::static_route::{self, ListedModel, StaticRouteInput};
use crate::mapping::config::gateway::{GatewayPlan, Validation};
use crate::mapping::config::static_routes::StaticRoute;
use percent_encoding::percent_decode_str;
use poem::Response;

/// What a static route shows besides the request.
pub struct Shown<'s> {
    /// The models that the client may request, each with the index of its backend in the plan.
    pub models: &'s [(String, usize)],
    /// Whether the client may request a model.
    pub allows_model: &'s dyn Fn(&str) -> bool,
    pub health: &'s Health,
    pub usage_log: &'s UsageReport,
    pub metrics: &'s Tree,
    /// When the process started.
    pub created: i64,
}

pub fn render(
    route: &StaticRoute,
    gateway: &GatewayPlan,
    path: &str,
    head: &RequestHead,
    shown: &Shown,
) -> Result<Response, Fault> {
    let Shown { models, allows_model, health, usage_log, metrics, created } = *shown;
    let backend_name = |backend: usize| gateway.backends.get(backend).map_or("", |b| b.name.as_str());
    let listed = |id, backend| ListedModel { id, backend: backend_name(backend), created: &created };
    let models: Vec<ListedModel> = models.iter().map(|(id, backend)| listed(id, *backend)).collect();
    // Clients escape special characters, and some escape the slash in `vendor/model` too.
    let id = route.prefix().and_then(|prefix| path.strip_prefix(prefix));
    let id = id.map(|id| percent_decode_str(id).decode_utf8_lossy());
    let one = match &id {
        Some(id) => {
            let model = gateway.model(id).filter(|_| allows_model(id)).ok_or_else(|| unknown_model(id))?;
            Some(listed(id, model.backend))
        }
        None => None,
    };
    let input = StaticRouteInput { models: &models, one, health, usage_log, metrics, head: &head.to_tree() };
    let static_route::StaticResponse { status, headers, body } = static_route::response(route, input)?;
    if gateway.validation != Validation::Off
        && let Some(mismatch) = static_route::mismatch(route, &body)
    {
        let (what, schema, pointer) = (&mismatch.what, &mismatch.schema, &mismatch.violation.pointer);
        tracing::error!(what, schema, pointer, "a static route violates its schema");
        if gateway.validation == Validation::Strict {
            let message = format!("{what} violates its schema at `{pointer}`");
            return Err(Fault::new(FaultKind::Violation, message));
        }
    }
    let mut response = response::json(status, body.to_json());
    for (name, value) in headers {
        response::add_header(&mut response, name, &value);
    }
    Ok(response)
}

pub fn unknown_model(id: &str) -> Fault {
    let fault = Fault::new(FaultKind::UnknownModel, format!("the model `{id}` does not exist")).param("model");
    Fault { value: Some(id.into()), ..fault }
}
