//! Authentication of clients by API key.

use super::origin;
use crate::diagnostics::or_list;
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::client_keys::{Auth, ClientKey};
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::secret::SecretSource;
use crate::mapping::grammar::notation::HeaderName;
use crate::upstream::secrets::{KeyRules, Keyring, Secret};
use poem::http::HeaderMap;
use poem::http::header::AUTHORIZATION;
use std::borrow::Cow;
use std::collections::BTreeSet;
use url::form_urlencoded;

/// Checks the client's API key and returns it; without configured keys, only the origin. Every key is compared,
/// so that timing does not reveal which one matches.
pub fn check<'g>(
    gateway: &'g GatewayPlan,
    keys: &Keyring,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Option<&'g ClientKey>, Fault> {
    if gateway.auth == Auth::None {
        return Ok(None);
    }
    let secrets: Vec<_> = gateway.api_keys.iter().filter_map(|key| Some((key, keys.get(&key.secret)?))).collect();
    // An unset variable means that no key is required. A configured file that cannot be read does not.
    let has_files = gateway.api_keys.iter().any(|key| matches!(key.secret, SecretSource::File(_)));
    if secrets.is_empty() && !has_files {
        return origin::check_origin(headers).map(|()| None);
    }
    let matches = |(key, secret): &(&'g ClientKey, Secret)| {
        // No early return: every key is compared in every place.
        let found = presented(key, headers, query).iter().fold(false, |found, token| secret.matches(token) | found);
        found.then_some(*key)
    };
    if let Some(key) = secrets.iter().map(matches).fold(None, Option::or) {
        return Ok(Some(key));
    }
    // Keys without a value are ignored; without any other, all of them are in files that cannot be read.
    let keys: Vec<&ClientKey> = match secrets.is_empty() {
        true => gateway.api_keys.iter().collect(),
        false => secrets.iter().map(|(key, _)| *key).collect(),
    };
    let places: BTreeSet<&str> = keys.iter().flat_map(|key| &*key.headers).map(|name| &*name.0).collect();
    let by_bearer = places.contains(AUTHORIZATION.as_str());
    let is_sent = keys.iter().any(|key| !presented(key, headers, query).is_empty());
    let message = match headers.get(AUTHORIZATION).filter(|value| !value.is_empty() && by_bearer) {
        _ if is_sent => "invalid API key".to_owned(),
        Some(_) => "expected `Authorization: Bearer KEY`".to_owned(),
        None if by_bearer => "an API key is required: `Authorization: Bearer KEY`".to_owned(),
        None => {
            let queries = keys.iter().filter_map(|key| key.query.as_ref());
            let queries = queries.map(|name| format!("the query parameter `{name}`"));
            let headers = places.into_iter().map(|name| format!("the header `{name}`"));
            let all: Vec<String> = headers.chain(queries).collect();
            format!("an API key is required in {}", or_list(all.iter().map(String::as_str)))
        }
    };
    Err(Fault::new(FaultKind::Unauthorized, message))
}

/// What the client sent in the places of this key.
fn presented<'r>(key: &ClientKey, headers: &'r HeaderMap, query: Option<&'r str>) -> Vec<Cow<'r, [u8]>> {
    let in_header = |name: &HeaderName| match name.0.as_str() {
        "authorization" => bearer_token(headers),
        name => headers.get(name).map(|value| value.as_bytes().trim_ascii()),
    };
    let tokens = key.headers.iter().filter_map(in_header).map(Cow::Borrowed);
    let pairs = query.into_iter().flat_map(|query| form_urlencoded::parse(query.as_bytes()));
    let in_query = pairs.filter(|(name, _)| key.query.as_deref() == Some(&**name));
    let in_query = in_query.map(|(_, value)| Cow::Owned(value.into_owned().into_bytes()));
    tokens.chain(in_query).collect()
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
    let rules = remote_key_rules(gateway);
    weak_api_key(gateway, keys, |secret| rules.is_short(secret))
}

/// The name of an API key with a value that everybody knows.
pub fn well_known_api_key<'g>(gateway: &'g GatewayPlan, keys: &Keyring) -> Option<&'g str> {
    let rules = remote_key_rules(gateway);
    weak_api_key(gateway, keys, |secret| rules.is_refused(secret))
}

fn weak_api_key<'g>(gateway: &'g GatewayPlan, keys: &Keyring, is_weak: impl Fn(&Secret) -> bool) -> Option<&'g str> {
    let weak = gateway.api_keys.iter().find(|key| keys.get(&key.secret).as_ref().is_some_and(&is_weak));
    weak.map(|key| key.name.as_str()).filter(|_| gateway.auth == Auth::Keys)
}

/// What API keys must satisfy at an address that is not local.
pub fn remote_key_rules(gateway: &GatewayPlan) -> KeyRules {
    let known = gateway.refused_keys.iter().map(String::as_str).chain(WELL_KNOWN_KEYS.iter().copied());
    KeyRules { min_length: MIN_REMOTE_KEY, refused: known.map(str::to_owned).collect() }
}

/// Keys from examples and lists of common passwords, of the length of a key. `refused_keys:` names more.
const WELL_KNOWN_KEYS: &[&str] = &[
    "00000000",
    "11111111",
    "12345678",
    "123456789",
    "1234567890",
    "87654321",
    "abcd1234",
    "abcdefgh",
    "admin123",
    "api-key-here",
    "changeit",
    "changeme",
    "change-me",
    "changethis",
    "default-key",
    "dummy-key",
    "example-key",
    "iloveyou",
    "letmein1",
    "my-api-key",
    "my-secret-key",
    "my-secret",
    "passw0rd",
    "password",
    "password1",
    "password123",
    "placeholder",
    "qwerty123",
    "qwertyui",
    "replace-me",
    "replaceme",
    "secret-key",
    "secret123",
    "secretkey",
    "supersecret",
    "test-api-key",
    "test-key",
    "test1234",
    "testing123",
    "your-api-key",
    "your_api_key",
    "your-key-here",
    "your-secret-key",
];

/// Whether a configured API key has a value.
pub fn has_api_key(gateway: &GatewayPlan, keys: &Keyring) -> bool {
    gateway.api_keys.iter().any(|key| keys.get(&key.secret).is_some())
}

/// Whether several clients can be distinguished by their keys.
pub fn has_several_api_keys(gateway: &GatewayPlan, keys: &Keyring) -> bool {
    // Nearly always the answer.
    if gateway.api_keys.len() <= 1 {
        return false;
    }
    // A key that allows no route, such as one for the metrics, has no turns.
    let has_turns = |key: &&ClientKey| gateway.routes.iter().any(|route| key.allows_path(&route.path));
    let with_value = gateway.api_keys.iter().filter(|key| keys.get(&key.secret).is_some());
    with_value.filter(has_turns).nth(1).is_some()
}
