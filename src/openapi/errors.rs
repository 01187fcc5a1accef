//! The error responses of an operation, with the statuses that the dialect gives them.

use super::components::Components;
use super::{any, gateway_headers, header};
use crate::domain::{Fault, FaultKind};
use crate::engine::fault_report;
use crate::engine::response_head::{self, HeadContext};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::variables_read::VariablesRead;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kinds of faults with one description.
pub type ErrorCause = (&'static [FaultKind], &'static str);

pub const UNAUTHORIZED: ErrorCause = (&[FaultKind::Unauthorized], "The API key is missing or unknown.");
pub const FORBIDDEN: ErrorCause = (&[FaultKind::Forbidden], "The API key does not allow this endpoint.");
pub const UNKNOWN: ErrorCause = (&[FaultKind::UnknownModel], "Unknown model.");
pub const WRONG_METHOD: ErrorCause = (&[FaultKind::WrongMethod], "The request does not ask for a WebSocket.");
pub const UPGRADE_REQUIRED: ErrorCause = (&[FaultKind::UpgradeRequired], "The endpoint serves no WebSockets.");
pub const INVALID_QUERY: ErrorCause = (&[FaultKind::Invalid], "Invalid query.");

const INVALID: ErrorCause = (
    &[FaultKind::NotJson, FaultKind::Missing, FaultKind::Invalid, FaultKind::Unsupported, FaultKind::ContextLength],
    "Invalid request",
);

const ROUTE_ERRORS: &[ErrorCause] = &[
    INVALID,
    UNAUTHORIZED,
    FORBIDDEN,
    UNKNOWN,
    (&[FaultKind::TooLarge], "The request body is too large."),
    (&[FaultKind::MediaType], "The request body is encoded, such as by gzip."),
    (&[FaultKind::RateLimited], "A limit of the client or of the backend is reached."),
    (&[FaultKind::Violation, FaultKind::Internal], "The gateway failed, or its response violates its schema."),
    (
        &[FaultKind::Backend, FaultKind::Unreachable, FaultKind::Empty, FaultKind::Truncated, FaultKind::Malformed],
        "The backend failed, or its response was incomplete.",
    ),
    (&[FaultKind::Overloaded], "The gateway cannot take more work, or the backend is unavailable."),
    (&[FaultKind::Timeout], "The backend timed out."),
];

/// Descriptions by status.
type Descriptions = BTreeMap<u16, Vec<String>>;

/// Adds the errors of an endpoint of a turn.
pub fn add_of_route(responses: &mut Value, gateway: &GatewayPlan, dialect: &DialectPlan, components: &mut Components) {
    let mut descriptions = describe(Some(dialect), ROUTE_ERRORS);
    let slow_body = Fault { status: Some(408), limit: Some("body"), ..Fault::new(FaultKind::Timeout, "") };
    let of_status = descriptions.entry(status(Some(dialect), slow_body)).or_default();
    of_status.push("The request body was sent too slowly.".to_owned());
    write(responses, gateway, Some(dialect), descriptions, components);
}

pub fn add(
    responses: &mut Value,
    gateway: &GatewayPlan,
    dialect: Option<&DialectPlan>,
    causes: &[ErrorCause],
    components: &mut Components,
) {
    write(responses, gateway, dialect, describe(dialect, causes), components);
}

fn describe(dialect: Option<&DialectPlan>, causes: &[ErrorCause]) -> Descriptions {
    let member = dialect.and_then(|dialect| member_with_param(&dialect.errors.skeleton));
    let invalid = match member {
        Some(member) => format!("{}; `{member}` names the field.", INVALID.1),
        None => format!("{}.", INVALID.1),
    };
    let mut descriptions = Descriptions::new();
    for (kinds, description) in causes {
        let description = if *description == INVALID.1 { invalid.as_str() } else { description };
        for kind in *kinds {
            let of_status = descriptions.entry(status(dialect, Fault::new(*kind, ""))).or_default();
            if !of_status.iter().any(|known| known == description) {
                of_status.push(description.to_owned());
            }
        }
    }
    descriptions
}

fn write(
    responses: &mut Value,
    gateway: &GatewayPlan,
    dialect: Option<&DialectPlan>,
    descriptions: Descriptions,
    components: &mut Components,
) {
    let schema = dialect.and_then(|d| d.errors.schema.as_ref()).map_or_else(any, |s| components.reference(&s.name));
    for (code, descriptions) in descriptions {
        let mut headers = gateway_headers(gateway);
        if matches!(code, 429 | 503) {
            headers["retry-after"] = header("Seconds to wait before a retry.", "integer");
        }
        let content = json!({ "application/json": { "schema": schema } });
        let description = descriptions.join(" ");
        responses[code.to_string()] = json!({ "description": description, "headers": headers, "content": content });
    }
}

/// The status of a fault, as the dialect reports it.
fn status(dialect: Option<&DialectPlan>, fault: Fault) -> u16 {
    let Some(dialect) = dialect else { return fault.status() };
    let fault = fault_report::reported(dialect, fault);
    let context = HeadContext { fault: Some(&fault), ..HeadContext::default() };
    response_head::status(dialect, &context).ok().flatten().unwrap_or_else(|| fault.status())
}

/// The member of an error envelope that names the field at fault.
fn member_with_param(skeleton: &Skeleton) -> Option<&str> {
    let Skeleton::Map(members) = skeleton else { return None };
    members.iter().find_map(|(name, value)| match value {
        Skeleton::Placeholder { expression, .. } => {
            let reads = VariablesRead::of_expression(expression);
            reads.iter().any(|path| path == "fault.param").then_some(&**name)
        }
        inner => member_with_param(inner),
    })
}
