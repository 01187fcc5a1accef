//! Who may ask.

use crate::domain::{Fault, FaultKind};
use crate::mapping::config::backend_address::KeySource;
use crate::mapping::config::gateway::{Auth, GatewayPlan};
use crate::upstream::secrets::Keyring;
use poem::http::HeaderMap;
use poem::http::header::{AUTHORIZATION, ORIGIN};
use std::net::IpAddr;

/// Fine, or why not. Every key is compared, whichever fits: how long it takes says nothing.
pub fn check(gateway: &GatewayPlan, keys: &Keyring, headers: &HeaderMap) -> Result<(), Fault> {
    if gateway.auth == Auth::None {
        return Ok(());
    }
    let secrets: Vec<_> = gateway.keys.iter().filter_map(|key| keys.get(&key.secret)).collect();
    // A variable may be left unset, which says that no key is wanted. A file that was named and cannot be read says no
    // such thing.
    let files = gateway.keys.iter().any(|key| matches!(key.secret, KeySource::File(_)));
    if secrets.is_empty() && !files {
        return own_machine(headers);
    }
    let token = bearer(headers).unwrap_or_default();
    if secrets.iter().fold(false, |fits, secret| fits | secret.matches(token)) {
        return Ok(());
    }
    let shown = headers.get(AUTHORIZATION).is_some_and(|v| !v.is_empty());
    let message = if shown { "this key is not known" } else { "a key is needed: `Authorization: Bearer KEY`" };
    Err(Fault::new(FaultKind::Unauthorized, message))
}

/// What stands after `Bearer`, whatever its letters' case.
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let shown = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = shown.split_at(shown.iter().position(|b| *b == b' ').unwrap_or(shown.len()));
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// Without a key, what is told about the gateway itself is told under this machine's own names: a page of somebody else's
/// can make a name of its own lead here, and its reading sends no origin.
pub fn by_own_name(gateway: &GatewayPlan, keys: &Keyring, host: Option<&str>) -> Result<(), Fault> {
    let Some(host) = host.filter(|_| gateway.auth == Auth::Keys && !is_closed(gateway, keys)) else { return Ok(()) };
    let name = name_of(host);
    let own = name == "localhost" || name.ends_with(".localhost");
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    if own || literal {
        return Ok(());
    }
    Err(Fault::new(FaultKind::Unauthorized, "by another name than this machine's a key is needed: set REFRAME_API_KEY"))
}

/// Without its port.
fn name_of(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name })
}

/// Has the operator named a key that is really there?
pub fn is_closed(gateway: &GatewayPlan, keys: &Keyring) -> bool {
    gateway.keys.iter().any(|key| keys.get(&key.secret).is_some())
}

/// Without a key only this machine may ask, and a web page of somebody else's is not this machine, although it runs here.
fn own_machine(headers: &HeaderMap) -> Result<(), Fault> {
    let origin = headers.get(ORIGIN).and_then(|v| v.to_str().ok()).unwrap_or_default();
    // A page in a box calls itself null, and may be anybody's.
    let page = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let Some(host) = page.or((origin == "null").then_some(origin)) else { return Ok(()) };
    let name = name_of(host);
    // Not by the host that it asked for: a name can be made to lead here.
    if matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
        return Ok(());
    }
    Err(Fault::new(FaultKind::Unauthorized, "a web page of another host needs a key: set REFRAME_API_KEY"))
}
