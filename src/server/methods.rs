//! The methods of a path: what OPTIONS and a 405 list, which ones metrics name, and requests for a WebSocket.

use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::route::WebSocket;
use crate::reload::Target;
use poem::http::header::{ALLOW, UPGRADE};
use poem::http::{Method, StatusCode};
use poem::{IntoResponse, Request, Response};

/// A label of metrics: clients cannot create others.
pub(super) fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// The response to OPTIONS.
pub(super) fn options(targets: &[Target], gateway: &GatewayPlan) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    add_allow(&mut response, targets, gateway);
    response
}

/// Adds the methods that a path allows.
pub(super) fn add_allow(response: &mut Response, targets: &[Target], gateway: &GatewayPlan) {
    let mut allowed: Vec<&str> = Vec::new();
    for method in targets.iter().flat_map(|target| target.methods(gateway)) {
        if !allowed.contains(&method) {
            allowed.push(method);
        }
    }
    if let Ok(value) = allowed.join(",").parse() {
        response.headers_mut().insert(ALLOW, value);
    }
}

pub(super) fn requests_websocket(request: &Request) -> bool {
    *request.method() == Method::GET && request.headers().contains_key(UPGRADE)
}

/// Whether a route at this path answers requests for a WebSocket with 426.
pub(super) fn needs_upgrade(targets: &[Target], gateway: &GatewayPlan) -> bool {
    targets.iter().any(|target| match target {
        Target::Route(at) => gateway.routes[*at].websocket == WebSocket::UpgradeRequired,
        Target::StaticRoute(_) | Target::Metrics | Target::Status | Target::ApiDocs => false,
    })
}
