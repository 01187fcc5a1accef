//! Who may use what: the checks before a request is served, for all endpoints in one place.

use super::limits::ClientId;
use super::router::header;
use super::{auth, origin};
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::client_keys::ClientKey;
use crate::mapping::config::gateway::{GatewayPlan, MetricsProtection};
use crate::reload::Target;
use crate::upstream::secrets::Keyring;
use poem::Request;

/// Who sends a request.
pub struct Caller<'g> {
    pub id: ClientId,
    /// The API key that it sent, if it needs one.
    pub key: Option<&'g ClientKey>,
}

impl Caller<'_> {
    /// Whether the caller may request a model. A caller without a key may request all of them.
    pub fn allows_model(&self, name: &str) -> bool {
        self.key.is_none_or(|key| key.allows_model(name))
    }
}

/// Checks the key of a request, and what the key allows. `target` serves it; `None` if nothing serves its method.
pub fn check<'g>(
    gateway: &'g GatewayPlan,
    keys: &Keyring,
    targets: &[Target],
    target: Option<Target>,
    request: &Request,
) -> Result<Caller<'g>, Fault> {
    let is_open = |target| is_open(gateway, target, || origin::is_local_request(request));
    let needs_key = match target {
        Some(target) => !is_open(target),
        // An unknown path has nothing to protect.
        None => targets.iter().any(|target| !is_open(*target)),
    };
    let key = match needs_key {
        true => auth::check(gateway, keys, request.headers(), request.uri().query())?,
        false => None,
    };
    if needs_key && targets.iter().any(|target| matches!(target, Target::Metrics | Target::Status)) {
        let host = request.uri().authority().map(|a| a.as_str()).or_else(|| header(request, "host"));
        origin::check_host(gateway, keys, host)?;
    }
    let path = request.uri().path();
    if key.is_some_and(|key| !key.allows_path(path)) {
        return Err(Fault::new(FaultKind::Forbidden, format!("this API key does not allow {path}")));
    }
    let id = match (key, request.remote_addr().as_socket_addr()) {
        (Some(key), _) => ClientId::Key(key.name.as_str().into()),
        (None, Some(address)) => ClientId::of_address(address.ip()),
        (None, None) => ClientId::Unknown,
    };
    Ok(Caller { id, key })
}

/// Whether it needs no API key. The documentation is public; of the others, gateway.yaml decides.
fn is_open(gateway: &GatewayPlan, target: Target, is_local: impl FnOnce() -> bool) -> bool {
    match target {
        Target::ApiDocs => true,
        Target::Route(_) => false,
        Target::StaticRoute(at) => {
            let route = &gateway.static_routes[at];
            route.open || (route.reads_models && !gateway.protected.models)
        }
        Target::Metrics => match gateway.protected.metrics {
            MetricsProtection::All => false,
            MetricsProtection::Remote => is_local(),
            MetricsProtection::None => true,
        },
        Target::Status => !gateway.protected.status,
    }
}
