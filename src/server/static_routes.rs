//! Pages: answers that need no backend, such as the list of models.

use super::response;
use crate::domain::{Fault, FaultKind, Tree};
use crate::engine::render;
use crate::engine::render::{Scope, Value};
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::static_routes::Page;
use percent_encoding::percent_decode_str;
use poem::Response;

pub fn find<'g>(gateway: &'g GatewayPlan, method: &str, path: &str) -> Option<&'g Page> {
    gateway.pages.iter().find(|p| p.method == method && covers(p, path))
}

/// What a page takes; who takes GET takes HEAD.
pub fn methods<'g>(gateway: &'g GatewayPlan, path: &str) -> Vec<&'g str> {
    let pages = gateway.pages.iter().filter(|p| covers(p, path));
    pages.flat_map(|p| if p.method == "GET" { vec!["GET", "HEAD"] } else { vec![p.method.as_str()] }).collect()
}

pub fn covered(gateway: &GatewayPlan, path: &str) -> bool {
    gateway.pages.iter().any(|p| covers(p, path))
}

fn covers(page: &Page, path: &str) -> bool {
    match page.prefix() {
        Some(prefix) => path.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()),
        None => page.path == path,
    }
}

/// `models`: what the backends say that they have, each with the backend's place in the plan.
pub fn render(
    page: &Page,
    gateway: &GatewayPlan,
    models: &[(String, usize)],
    path: &str,
    created: i64,
) -> Result<Response, Fault> {
    let card = |id: &str, backend: usize| {
        let backend = gateway.backends.get(backend).map_or("", |b| b.name.as_str());
        Tree::map([("id", Tree::from(id)), ("backend", Tree::from(backend)), ("created", Tree::from(created))])
    };
    let models = Tree::from(models.iter().map(|(id, backend)| card(id, *backend)).collect::<Vec<_>>());
    let build = Tree::map([("version", Tree::from(env!("CARGO_PKG_VERSION")))]);
    let model = match page.prefix() {
        None => Tree::Null,
        Some(prefix) => {
            // Clients escape what a path cannot hold, and some the slash in `vendor/model` too.
            let id = percent_decode_str(path.strip_prefix(prefix).unwrap_or_default()).decode_utf8_lossy();
            let found = gateway.model(&id).ok_or_else(|| unknown_model(&id))?;
            card(&id, found.backend)
        }
    };
    let scope = Scope::default()
        .with("models", Value::Tree(&models))
        .with("build", Value::Tree(&build))
        .with("model", Value::Tree(&model));
    let body = render::render(&page.body, &scope, &page.pool)
        .map_err(|e| Fault::new(FaultKind::Internal, format!("the page failed: {e}")))?;
    Ok(response::json(200, &body.unwrap_or_default()))
}

pub fn unknown_model(id: &str) -> Fault {
    Fault::new(FaultKind::UnknownModel, format!("the model `{id}` does not exist")).param("model")
}
