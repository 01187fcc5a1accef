//! Checks of `Origin` and `Host` for gateways without an API key: against requests of foreign web pages and against DNS
//! rebinding.

use super::auth;
use super::router::header;
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::client_keys::Auth;
use crate::mapping::config::gateway::GatewayPlan;
use crate::upstream::secrets::Keyring;
use poem::Request;
use poem::http::HeaderMap;
use poem::http::header::ORIGIN;
use poem::http::uri::Authority;
use url::{Host, Url};

/// Headers that proxies add.
const FORWARDED: &[&str] = &["forwarded", "x-forwarded-for", "x-real-ip"];

/// Without an API key only local requests are accepted. A browser on this machine also sends requests of foreign web
/// pages, which their `Origin` reveals.
pub fn check_origin(headers: &HeaderMap) -> Result<(), Fault> {
    let origin = headers.get(ORIGIN).and_then(|v| v.to_str().ok()).unwrap_or_default();
    // Only web pages are foreign: extensions and local applications have other schemes, other programs no origin.
    // Sandboxed iframes send `Origin: null`; treat them as untrusted.
    if origin != "null" && !origin.starts_with("https://") && !origin.starts_with("http://") {
        return Ok(());
    }
    // Not compared with `Host`: by DNS rebinding a foreign name can resolve to this machine.
    let page = Url::parse(origin).ok();
    if page.is_some_and(|page| matches!(page.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Unauthorized,
        "an API key is required for requests from web pages of other hosts; set REFRAME_API_KEY",
    ))
}

/// Whether a program on this machine sent the request: over a loopback address, without a proxy between, under a local
/// hostname, and not a web page of another host.
pub fn is_local_request(request: &Request) -> bool {
    let address = request.remote_addr().as_socket_addr();
    let is_forwarded = FORWARDED.iter().any(|name| request.headers().contains_key(*name));
    let host = request.uri().authority().map(|a| a.as_str()).or_else(|| header(request, "host"));
    address.is_some_and(|address| address.ip().to_canonical().is_loopback())
        && !is_forwarded
        && host.is_none_or(is_local_host)
        && check_origin(request.headers()).is_ok()
}

/// Without an API key, `/status` and `/metrics` are served only under local hostnames: after DNS rebinding a foreign
/// web page can read them with same-origin requests, which send no `Origin`.
pub fn check_host(gateway: &GatewayPlan, keys: &Keyring, host: Option<&str>) -> Result<(), Fault> {
    let is_open = gateway.auth == Auth::Keys && !auth::has_api_key(gateway, keys);
    let Some(host) = host.filter(|_| is_open) else { return Ok(()) };
    if is_local_host(host) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Unauthorized,
        "an API key is required when this endpoint is reached through a non-local hostname; set REFRAME_API_KEY",
    ))
}

/// A name or an address that no DNS entry of somebody else can have.
fn is_local_host(host: &str) -> bool {
    let authority = host.parse::<Authority>().ok();
    authority.is_some_and(|authority| match Host::parse(authority.host()) {
        Ok(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Err(_) => false,
    })
}
