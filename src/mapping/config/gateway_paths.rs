//! Checks of the paths in gateway.yaml: an example has a route, and the endpoints of the gateway itself have paths of their
//! own.

use super::admin::StatusEndpoint;
use super::gateway::{Docs, GatewayPlan};
use super::path_template::PathMatcher;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Node;

/// The paths of the API documentation.
pub const DOCS_PATHS: [&str; 7] =
    ["/", "/openapi.json", "/openapi.yaml", "/docs", "/schemas", "/schemas/", "/schemas/{file}"];

/// Reports an example that no route serves.
pub(super) fn check_example(path: &Spanned<String>, plan: &GatewayPlan, cx: LoadContext) {
    if plan.routes.iter().any(|route| route.serves_path(path)) {
        return;
    }
    let message = format!("no route serves `{}`", path.value);
    let template = plan.routes.iter().find(|route| route.path == path.value);
    if let Some(parameter) = template.and_then(|route| PathMatcher::new(&route.path)?.names().first().cloned()) {
        let help = format!("an example can be sent as it is: write a value in place of `{{{parameter}}}`");
        cx.add(Diagnostic::new(Code::UnknownReference, path.span, message).help(help));
    } else {
        let known = plan.routes.iter().map(|r| r.path.as_str());
        cx.unknown(Code::UnknownReference, path.span, message, path, known);
    }
}

/// Reports a route that hides an endpoint which the gateway has without being asked: its documentation, and its status. A
/// route at `/` hides only the redirection of browsers.
pub(super) fn check_hidden_paths(plan: &GatewayPlan, cx: LoadContext) {
    let docs = DOCS_PATHS.into_iter().filter(|path| *path != "/" && plan.docs == Docs::Public);
    let status = plan.status_path().filter(|_| matches!(plan.status, StatusEndpoint::Default));
    let own = docs.map(|path| (path, "docs")).chain(status.map(|path| (path, "status")));
    let routes = plan.routes.iter().map(|route| (&route.method, &route.path, route.span));
    let static_routes = plan.static_routes.iter().map(|route| (&route.method, &route.path, route.span));
    let routes: Vec<_> = routes.chain(static_routes).filter(|(method, ..)| *method == "GET").collect();
    for (own_path, key) in own {
        for (_, path, span) in routes.iter().filter(|(_, path, _)| *path == own_path) {
            let message = format!("`GET {path}` hides an endpoint of the gateway");
            let help = format!("use another path, or turn the endpoint off: `{key}: off`");
            cx.add(Diagnostic::new(Code::DuplicateName, *span, message).help(help));
        }
    }
}

/// Reports an endpoint of the gateway itself that is at the path of another one.
pub(super) fn check_own_paths(keys: [(&str, Option<Span>); 2], node: &Node, plan: &GatewayPlan, cx: LoadContext) {
    for (key, span) in keys.into_iter().filter_map(|(key, span)| Some((key, span?))) {
        let path = node.get(key).and_then(Node::as_text).unwrap_or_default();
        let is_route = plan.routes.iter().map(|r| &r.path).chain(plan.static_routes.iter().map(|r| &r.path));
        let other_key = key == "status" && plan.metrics.as_deref() == Some(path);
        if other_key || is_route.into_iter().any(|other| other == path) {
            let other = if other_key { "`metrics:`" } else { "a route" };
            cx.error(Code::DuplicateName, span, format!("{other} has the path `{path}` too"));
        }
    }
}
