//! The body of a static route: rendered from the models of the gateway, and validated like a frame.

use super::frame_validation::SchemaMismatch;
use super::render;
use super::render::Scope;
use crate::domain::variables::{self, Record, Value};
use crate::domain::{Fault, Tree};
use crate::mapping::config::static_routes::StaticRoute;

/// A model as static routes see it.
#[derive(Clone, Copy)]
pub struct ListedModel<'m> {
    pub id: &'m str,
    pub backend: &'m str,
    pub created: &'m i64,
}

impl<'m> ListedModel<'m> {
    fn record(self) -> Record<'m> {
        Record::Model(self.id, self.backend, self.created)
    }
}

/// Renders the body. `one`: the model in the path; `head`: the path, query and headers of the request.
pub fn body(route: &StaticRoute, models: &[ListedModel], one: Option<ListedModel>, head: &Tree) -> Result<Tree, Fault> {
    let models = models.iter().map(|model| model.record());
    let build = Record::Build(env!("CARGO_PKG_VERSION"));
    let mut scope = Scope::default().set(variables::MODELS, Value::list(models)).set(variables::BUILD, build);
    for (name, ty) in [variables::PATH, variables::QUERY, variables::HEADERS] {
        scope = scope.set((name, ty), head.get(name));
    }
    if let Some(model) = one {
        scope = scope.set(variables::MODEL, model.record());
    }
    let body = render::render(&route.body, &scope, &route.pool);
    Ok(body.map_err(|error| Fault::not_rendered("the static route", error))?.unwrap_or_default())
}

/// What is wrong with the body by the schema of its route.
pub fn mismatch(route: &StaticRoute, body: &Tree) -> Option<SchemaMismatch> {
    let named = route.schema.as_ref()?;
    let violation = named.schema.check(body).err()?;
    let what = format!("the body of `{} {}`", route.method, route.path);
    let schema = named.name.clone();
    Some(SchemaMismatch { what, template: route.span, schema, violation, data: None })
}
