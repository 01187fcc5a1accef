//! The response of a static route: rendered from the models, the health, the metrics and the usage log of the gateway. Its
//! body is validated like a frame.

use super::frame_validation::SchemaMismatch;
use super::render::{self, RenderError, Scope};
use crate::domain::variables::{self, Record, Value};
use crate::domain::{Fault, Health, Tree, UsageReport};
use crate::mapping::config::static_routes::StaticRoute;
use crate::mapping::language::field::scalar_text;

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

/// What a static route can read.
#[derive(Clone, Copy)]
pub struct StaticRouteInput<'i> {
    pub models: &'i [ListedModel<'i>],
    /// The model in the path.
    pub one: Option<ListedModel<'i>>,
    pub health: &'i Health,
    pub usage_log: &'i UsageReport,
    /// By name, if the route reads them.
    pub metrics: &'i Tree,
    /// The path, query and headers of the request.
    pub head: &'i Tree,
}

/// A rendered response.
pub struct StaticResponse<'r> {
    pub status: u16,
    /// The headers with a value, by name.
    pub headers: Vec<(&'r str, String)>,
    pub body: Tree,
}

impl<'i> StaticRouteInput<'i> {
    fn scope(self) -> Scope<'i> {
        let models = self.models.iter().map(|model| model.record());
        let build = Record::Build(env!("CARGO_PKG_VERSION"));
        let mut scope = Scope::default()
            .set(variables::MODELS, Value::list(models))
            .set(variables::HEALTH, Record::Health(self.health))
            .set(variables::USAGE_LOG, Record::UsageReport(self.usage_log))
            .set(variables::METRICS, self.metrics)
            .set(variables::BUILD, build);
        for (name, ty) in [variables::PATH, variables::QUERY, variables::HEADERS] {
            scope = scope.set((name, ty), self.head.get(name));
        }
        match self.one {
            Some(model) => scope.set(variables::MODEL, model.record()),
            None => scope,
        }
    }
}

pub fn response<'r>(route: &'r StaticRoute, input: StaticRouteInput) -> Result<StaticResponse<'r>, Fault> {
    rendered(route, &input.scope()).map_err(|error| Fault::not_rendered("the static route", error))
}

fn rendered<'r>(route: &'r StaticRoute, scope: &Scope) -> Result<StaticResponse<'r>, RenderError> {
    let status = match &route.status {
        Some(status) => render::render(status, scope, &route.pool)?,
        None => None,
    };
    let status = status.as_ref().and_then(scalar_text).and_then(|text| text.parse().ok());
    let mut headers = Vec::new();
    for (name, value) in &route.headers {
        let value = render::render_if_complete(value, scope, &route.pool)?;
        headers.extend(value.as_ref().and_then(scalar_text).map(|value| (name.as_str(), value)));
    }
    let body = render::render(&route.body, scope, &route.pool)?.unwrap_or_default();
    Ok(StaticResponse { status: status.filter(|s| (200..600).contains(s)).unwrap_or(200), headers, body })
}

/// What is wrong with the body by the schema of its route.
pub fn mismatch(route: &StaticRoute, body: &Tree) -> Option<SchemaMismatch> {
    let named = route.schema.as_ref()?;
    let violation = named.schema.check(body).err()?;
    let what = format!("the body of `{} {}`", route.method, route.path);
    let schema = named.name.clone();
    Some(SchemaMismatch { what, template: route.span, schema, violation, data: None })
}
