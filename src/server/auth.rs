//! Authentication of clients by API key.

use super::origin;
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::gateway::{Auth, ClientKey, GatewayPlan};
use crate::mapping::config::secret::SecretSource;
use crate::upstream::secrets::{Keyring, Secret};
use poem::http::HeaderMap;
use poem::http::header::AUTHORIZATION;

/// Checks the client's API key and returns its name; without configured keys, only the origin. Every key is compared,
/// so that timing does not reveal which one matches.
pub fn check<'g>(gateway: &'g GatewayPlan, keys: &Keyring, headers: &HeaderMap) -> Result<Option<&'g str>, Fault> {
    if gateway.auth == Auth::None {
        return Ok(None);
    }
    let secrets: Vec<_> = gateway.api_keys.iter().filter_map(|key| Some((key, keys.get(&key.secret)?))).collect();
    // An unset variable means that no key is required. A configured file that cannot be read does not.
    let has_files = gateway.api_keys.iter().any(|key| matches!(key.secret, SecretSource::File(_)));
    if secrets.is_empty() && !has_files {
        return origin::check_origin(headers).map(|()| None);
    }
    let token = bearer_token(headers);
    let matches = |(key, secret): &(&'g ClientKey, Secret)| secret.matches(token.unwrap_or_default()).then_some(*key);
    if let Some(key) = secrets.iter().map(matches).fold(None, Option::or) {
        return Ok(Some(&key.name));
    }
    let message = match headers.get(AUTHORIZATION) {
        Some(value) if !value.is_empty() && token.is_none() => "expected `Authorization: Bearer KEY`",
        Some(value) if !value.is_empty() => "invalid API key",
        Some(_) | None => "an API key is required: `Authorization: Bearer KEY`",
    };
    Err(Fault::new(FaultKind::Unauthorized, message))
}

/// The token after `Bearer`, which is not case-sensitive.
pub fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at(value.iter().position(|b| *b == b' ').unwrap_or(value.len()));
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// The length from which on an API key may protect an address that is not local: shorter ones can be guessed.
pub const MIN_REMOTE_KEY: usize = 8;

/// The name of an API key that is too short for an address that is not local.
pub fn short_api_key<'g>(gateway: &'g GatewayPlan, keys: &Keyring) -> Option<&'g str> {
    let is_short = |secret: &Secret| secret.expose().chars().count() < MIN_REMOTE_KEY;
    let short = gateway.api_keys.iter().find(|key| keys.get(&key.secret).as_ref().is_some_and(is_short));
    short.map(|key| key.name.as_str()).filter(|_| gateway.auth == Auth::Keys)
}

/// Whether a configured API key has a value.
pub fn has_api_key(gateway: &GatewayPlan, keys: &Keyring) -> bool {
    gateway.api_keys.iter().any(|key| keys.get(&key.secret).is_some())
}
