//! Checks of `Origin` and `Host` for gateways without an API key: against requests of foreign web pages and against DNS
//! rebinding.

use super::auth;
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::gateway::{Auth, GatewayPlan};
use crate::upstream::secrets::Keyring;
use poem::http::HeaderMap;
use poem::http::header::ORIGIN;
use std::net::IpAddr;

/// Without an API key only local requests are accepted. A browser on this machine also sends requests of foreign web
/// pages, which their `Origin` reveals.
pub fn check_origin(headers: &HeaderMap) -> Result<(), Fault> {
    let origin = headers.get(ORIGIN).and_then(|v| v.to_str().ok()).unwrap_or_default();
    // Sandboxed iframes send `Origin: null`; treat them as untrusted.
    let page = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let Some(host) = page.or((origin == "null").then_some(origin)) else { return Ok(()) };
    let name = without_port(host);
    // Not compared with `Host`: by DNS rebinding a foreign name can resolve to this machine.
    if matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Unauthorized,
        "an API key is required for requests from web pages of other hosts; set REFRAME_API_KEY",
    ))
}

/// Without an API key, `/status` and `/metrics` are served only under local hostnames: after DNS rebinding a foreign
/// web page can read them with same-origin requests, which send no `Origin`.
pub fn check_host(gateway: &GatewayPlan, keys: &Keyring, host: Option<&str>) -> Result<(), Fault> {
    let is_open = gateway.auth == Auth::Keys && !auth::has_api_key(gateway, keys);
    let Some(host) = host.filter(|_| is_open) else { return Ok(()) };
    let name = without_port(host);
    let is_local = name == "localhost" || name.ends_with(".localhost");
    let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    if is_local || is_address {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Unauthorized,
        "an API key is required when this endpoint is reached through a non-local hostname; set REFRAME_API_KEY",
    ))
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name })
}
