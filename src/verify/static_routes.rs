//! Renders every static route before the set is used. A body that violates its schema would be an error for every
//! client.

use super::schema_advice::advice;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::{
    BackendHealth, Health, RequestHead, Tree, UsageBucket, UsageGroup, UsageReport, UsageSum, WorkerHealth, variables,
};
use crate::engine::static_route::{ListedModel, StaticRouteInput, mismatch, response};
use crate::mapping::Plan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::static_routes::StaticRoute;

/// One diagnostic for each static route with a body that its schema does not allow.
pub fn check_static_routes(plan: &Plan) -> Vec<Diagnostic> {
    let validated = |_: &&_| plan.gateway.validation != Validation::Off;
    let routes = plan.gateway.static_routes.iter().filter(validated).filter(|route| !reads_client(route));
    let model = ListedModel { id: "witness", backend: "backend", created: &1_767_225_600 };
    let backends = vec![BackendHealth {
        reason: Some("handshake_complete".to_owned()),
        worker: Some(WorkerHealth::default()),
        ..BackendHealth::always_ready("backend".to_owned())
    }];
    let health = Health { draining: false, backends, turns: 0 };
    let usage_log = witness_usage();
    routes
        .filter_map(|route| {
            let (one, head) = (route.prefix().map(|_| model), witness_head(route).to_tree());
            let models = &[model, model];
            let (health, usage_log, metrics) = (&health, &usage_log, &Tree::Null);
            let input = StaticRouteInput { models, one, health, usage_log, metrics, head: &head };
            let rendered = response(route, input).ok()?.body;
            let mut mismatch = mismatch(route, &rendered)?;
            mismatch.data = Some(rendered);
            let message = format!("{} never satisfies its schema: {}", mismatch.what, mismatch.reason());
            let help = advice(&mismatch, &plan.sources);
            Some(Diagnostic::new(Code::UnsatisfiableFrame, mismatch.template, message).help(help))
        })
        .collect()
}

/// Whether the body depends on what the client sends in its query or headers: no witness is like every client.
fn reads_client(route: &StaticRoute) -> bool {
    let mut reads = false;
    let names = [variables::QUERY.0, variables::HEADERS.0];
    route.body.visit(&mut |visited| {
        let mut paths = visited.expression.variables().iter();
        reads |= paths.any(|path| path.0.first().is_some_and(|name| names.contains(&&**name)));
    });
    reads
}

fn witness_usage() -> UsageReport {
    let sum = UsageSum { requests: 2, estimated: 1, input: 5, output: 7, total: 12 };
    UsageReport {
        start: 0,
        end: 1_767_225_600_000,
        group: Some(UsageGroup::Hour),
        sum,
        buckets: vec![UsageBucket { start: 0, sum }],
        records: Tree::from(vec![Tree::map([("model", Tree::from("witness"))])]),
        complete: true,
    }
}

fn witness_head(route: &StaticRoute) -> RequestHead {
    let names = route.path_matcher.as_ref().map_or(&[][..], |path| path.names());
    let path = names.iter().map(|name| (name.clone(), "witness".to_owned())).collect();
    RequestHead { path, ..RequestHead::default() }
}
