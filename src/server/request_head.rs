//! What mappings can read of a client's HTTP request besides its body.

use super::router::joined_header;
use crate::domain::RequestHead;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::path_template::PathMatcher;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::config::static_routes::StaticRoute;
use poem::Request;
use url::form_urlencoded;

/// Headers with credentials, which no response may repeat.
const CREDENTIALS: &[&str] = &["authorization", "cookie", "proxy-authorization"];

/// For a turn: of the headers only those that a dialect reads or a backend gets.
pub fn of_turn(route: &RoutePlan, gateway: &GatewayPlan, request: &Request) -> RequestHead {
    let names = gateway.client_headers.iter();
    let headers = names.filter_map(|name| Some((name.clone(), joined_header(request, name)?)));
    RequestHead { headers: headers.collect(), ..path_and_query(route.path_matcher.as_ref(), request) }
}

/// For a static route.
pub fn of_static_route(route: &StaticRoute, gateway: &GatewayPlan, request: &Request) -> RequestHead {
    without_credentials(route.path_matcher.as_ref(), gateway, request)
}

/// All headers and parameters except those with credentials.
pub fn without_credentials(path: Option<&PathMatcher>, gateway: &GatewayPlan, request: &Request) -> RequestHead {
    let carries_key = |name: &str| gateway.api_keys.iter().any(|key| key.headers.iter().any(|h| h.0 == name));
    let names = request.headers().keys().map(|name| name.as_str());
    let names = names.filter(|name| !CREDENTIALS.contains(name) && !carries_key(name));
    let headers = names.filter_map(|name| Some((name.to_owned(), joined_header(request, name)?))).collect();
    let mut head = RequestHead { headers, ..path_and_query(path, request) };
    head.query.retain(|(name, _)| !gateway.api_keys.iter().any(|key| key.query.as_ref() == Some(name)));
    head
}

fn path_and_query(path: Option<&PathMatcher>, request: &Request) -> RequestHead {
    let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    RequestHead {
        path: path.map_or(Vec::new(), |path| path.parameters(request.uri().path())),
        query: query.into_owned().collect(),
        headers: Vec::new(),
    }
}
