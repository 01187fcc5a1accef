//! Static routes: responses without a backend, such as the list of models.

use super::response;
use crate::domain::variables::{self, Record, Value};
use crate::domain::{Fault, FaultKind};
use crate::engine::render;
use crate::engine::render::Scope;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::static_routes::StaticRoute;
use percent_encoding::percent_decode_str;
use poem::Response;

/// `models`: all models, each with the index of its backend in the plan.
pub fn render(
    route: &StaticRoute,
    gateway: &GatewayPlan,
    models: &[(String, usize)],
    path: &str,
    created: i64,
) -> Result<Response, Fault> {
    let backend_name = |backend: usize| gateway.backends.get(backend).map_or("", |b| b.name.as_str());
    let models = models.iter().map(|(id, backend)| Record::Model(id, backend_name(*backend), &created));
    let build = Record::Build(env!("CARGO_PKG_VERSION"));
    let mut scope = Scope::default().set(variables::MODELS, Value::list(models)).set(variables::BUILD, build);
    // Clients escape special characters, and some escape the slash in `vendor/model` too.
    let id = route.prefix().and_then(|prefix| path.strip_prefix(prefix));
    let id = id.map(|id| percent_decode_str(id).decode_utf8_lossy());
    if let Some(id) = &id {
        let found = gateway.model(id).ok_or_else(|| unknown_model(id))?;
        scope = scope.set(variables::MODEL, Record::Model(id, backend_name(found.backend), &created));
    }
    let body =
        render::render(&route.body, &scope, &route.pool).map_err(|e| Fault::not_rendered("the static route", e))?;
    Ok(response::json(200, body.unwrap_or_default().to_json()))
}

pub fn unknown_model(id: &str) -> Fault {
    Fault::new(FaultKind::UnknownModel, format!("the model `{id}` does not exist")).param("model")
}
