//! Renders every static route before the set is used. A body that violates its schema would be an error for every
//! client.

use super::schema_advice::advice;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::RequestHead;
use crate::engine::static_route::{ListedModel, body, mismatch};
use crate::mapping::Plan;
use crate::mapping::config::gateway::Validation;

/// One diagnostic for each static route with a body that its schema does not allow.
pub fn check_static_routes(plan: &Plan) -> Vec<Diagnostic> {
    let validated = |_: &&_| plan.gateway.validation != Validation::Off;
    let routes = plan.gateway.static_routes.iter().filter(validated);
    let model = ListedModel { id: "witness", backend: "backend", created: &1_767_225_600 };
    routes
        .filter_map(|route| {
            let rendered =
                body(route, &[model, model], route.prefix().map(|_| model), &RequestHead::default().to_tree()).ok()?;
            let mut mismatch = mismatch(route, &rendered)?;
            mismatch.data = Some(rendered);
            let message = format!("{} never satisfies its schema: {}", mismatch.what, mismatch.reason());
            let help = advice(&mismatch, &plan.sources);
            Some(Diagnostic::new(Code::UnsatisfiableFrame, mismatch.template, message).help(help))
        })
        .collect()
}
