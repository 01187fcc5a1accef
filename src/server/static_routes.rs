//! Static routes: responses without a backend, such as the list of models.

use super::response;
use crate::domain::{Fault, FaultKind, RequestHead};
use crate::engine::static_route::{self, ListedModel};
use crate::mapping::config::gateway::{GatewayPlan, Validation};
use crate::mapping::config::static_routes::StaticRoute;
use percent_encoding::percent_decode_str;
use poem::Response;

/// `models`: all models, each with the index of its backend in the plan.
pub fn render(
    route: &StaticRoute,
    gateway: &GatewayPlan,
    models: &[(String, usize)],
    path: &str,
    head: &RequestHead,
    created: i64,
) -> Result<Response, Fault> {
    let backend_name = |backend: usize| gateway.backends.get(backend).map_or("", |b| b.name.as_str());
    let listed = |id, backend| ListedModel { id, backend: backend_name(backend), created: &created };
    let models: Vec<ListedModel> = models.iter().map(|(id, backend)| listed(id, *backend)).collect();
    // Clients escape special characters, and some escape the slash in `vendor/model` too.
    let id = route.prefix().and_then(|prefix| path.strip_prefix(prefix));
    let id = id.map(|id| percent_decode_str(id).decode_utf8_lossy());
    let one = match &id {
        Some(id) => Some(listed(id, gateway.model(id).ok_or_else(|| unknown_model(id))?.backend)),
        None => None,
    };
    let body = static_route::body(route, &models, one, &head.to_tree())?;
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
    Ok(response::json(200, body.to_json()))
}

pub fn unknown_model(id: &str) -> Fault {
    Fault::new(FaultKind::UnknownModel, format!("the model `{id}` does not exist")).param("model")
}
