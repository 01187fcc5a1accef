//! The backends, dialects and profiles of a set.

use crate::cli::columns::aligned;
use crate::cli::dialect_names;
use crate::diagnostics::Span;
use crate::mapping::Plan;
use crate::mapping::config::route::RoutePlan;

pub fn backends(plan: &Plan) -> String {
    let mut rows = vec![["backend", "transport", "framing", "extends", "used by", "defined at"].map(str::to_owned)];
    for backend in &plan.backends {
        let framings: Vec<&str> = backend.framings.iter().map(|framing| framing.name()).collect();
        let used = plan.gateway.backends.iter().filter(|entry| entry.plan.name == backend.name);
        rows.push([
            backend.name.clone(),
            backend.transport.name().to_owned(),
            framings.join(", "),
            backend.extends.as_ref().map(|base| base.value.clone()).unwrap_or_default(),
            used.map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", "),
            file(backend.span, plan),
        ]);
    }
    aligned(&rows, usize::MAX)
}

pub fn dialects(plan: &Plan) -> String {
    let mut rows = vec![["dialect", "served at", "custom policies", "defined at"].map(str::to_owned)];
    for name in dialect_names(plan) {
        let Some(dialect) = plan.dialect(name, None) else { continue };
        let policies: Vec<&str> = dialect.resolved.custom.iter().map(|policy| policy.name.as_str()).collect();
        let place = file(dialect.body.span, plan);
        rows.push([name.to_owned(), routes(plan, |route| route.dialect == name), policies.join(", "), place]);
    }
    aligned(&rows, usize::MAX)
}

pub fn profiles(plan: &Plan) -> String {
    let mut rows = vec![["profile", "used at", "defined at"].map(str::to_owned)];
    for (name, span) in &plan.profiles {
        let used = routes(plan, |route| route.profile.as_ref() == Some(name));
        rows.push([name.clone(), used, file(*span, plan)]);
    }
    aligned(&rows, usize::MAX)
}

fn routes(plan: &Plan, is_it: impl Fn(&RoutePlan) -> bool) -> String {
    let routes = plan.gateway.routes.iter().filter(|route| is_it(route));
    routes.map(|route| route.path.as_str()).collect::<Vec<_>>().join(", ")
}

/// The file of a span, as the user knows it.
fn file(span: Span, plan: &Plan) -> String {
    plan.sources.get(span.file).map(|source| source.shown.clone()).unwrap_or_default()
}
