//! Static routes: responses without a backend, such as the list of models.

use super::response;
use crate::domain::variables;
use crate::domain::{Fault, FaultKind, Tree};
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
    let model_entry = |id: &str, backend: usize| {
        let backend = gateway.backends.get(backend).map_or("", |b| b.name.as_str());
        Tree::map([("id", Tree::from(id)), ("backend", Tree::from(backend)), ("created", Tree::from(created))])
    };
    let models = Tree::from(models.iter().map(|(id, backend)| model_entry(id, *backend)).collect::<Vec<_>>());
    let build = Tree::map([("version", Tree::from(env!("CARGO_PKG_VERSION")))]);
    let model = match route.prefix() {
        None => Tree::Null,
        Some(prefix) => {
            // Clients escape special characters, and some escape the slash in `vendor/model` too.
            let id = percent_decode_str(path.strip_prefix(prefix).unwrap_or_default()).decode_utf8_lossy();
            let found = gateway.model(&id).ok_or_else(|| unknown_model(&id))?;
            model_entry(&id, found.backend)
        }
    };
    let scope =
        Scope::default().set(variables::MODELS, &models).set(variables::BUILD, &build).set(variables::MODEL, &model);
    let body = render::render(&route.body, &scope, &route.pool)
        .map_err(|e| Fault::new(FaultKind::Internal, format!("the static route could not be rendered: {e}")))?;
    Ok(response::json(200, body.unwrap_or_default().to_json()))
}

pub fn unknown_model(id: &str) -> Fault {
    Fault::new(FaultKind::UnknownModel, format!("the model `{id}` does not exist")).param("model")
}
