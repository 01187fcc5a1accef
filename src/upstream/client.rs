//! HTTP clients for backends: pooled connections without redirects, proxies or cookies, and a DNS resolver that rejects
//! link-local and metadata addresses (DNS rebinding, SSRF).

use super::child::{ChildPools, Readiness};
use super::secrets::Keyring;
use crate::domain::{BackendHealth, Fault};
use crate::mapping::config::backend::Transport;
use crate::mapping::config::backend_address::{BackendAddress, is_internal};
use crate::mapping::config::gateway_backends::Backend;
use crate::mapping::grammar::notation::TimeLimit;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One client per set of connection settings. Outlives generations, so that a reload closes no connection.
#[derive(Debug, Default)]
pub struct ClientPool {
    clients: Mutex<HashMap<ClientSettings, reqwest::Client>>,
    pub keys: Keyring,
    /// The backends that are child processes.
    pub children: ChildPools,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ClientSettings {
    connect: Option<Duration>,
    allowed: Vec<IpAddr>,
}

const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

impl ClientPool {
    pub fn client(&self, address: &BackendAddress) -> Result<reqwest::Client, String> {
        let settings = ClientSettings {
            connect: TimeLimit::of(address.timeouts.connect),
            allowed: address.allowed_addresses.clone(),
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&settings) {
            return Ok(client.clone());
        }
        let client = build_client(&settings)?;
        clients.insert(settings, client.clone());
        Ok(client)
    }

    /// Creates the clients of these backends, so that the first request does not have to.
    pub fn prepare(&self, backends: &[Backend]) {
        for address in backends.iter().filter_map(|backend| backend.address.as_ref()) {
            if let Err(reason) = self.client(address) {
                tracing::warn!(reason, "the HTTP client could not be created");
            }
        }
    }

    /// The fault of every request, if no backend can serve one, and none waits until it can.
    pub fn check_ready(&self, backends: &[Backend]) -> Result<(), Fault> {
        let mut fault = None;
        for backend in backends {
            let pool = match backend.plan.transport {
                Transport::Http | Transport::Replay => return Ok(()),
                Transport::ChildJsonrpc => self.children.pool(&backend.name),
            };
            match pool.map(|pool| pool.check_ready()) {
                Some(Err(not_ready)) => fault = fault.or(Some(not_ready)),
                Some(Ok(())) | None => return Ok(()),
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Whether a backend can serve requests. An HTTP backend has nothing to wait for: its state shows with each request.
    pub fn health(&self, backend: &Backend) -> BackendHealth {
        let name = backend.name.clone();
        let process = match backend.plan.transport {
            Transport::Http | Transport::Replay => return BackendHealth::always_ready(name),
            Transport::ChildJsonrpc => self.children.pool(&name),
        };
        let readiness = process.map(|pool| pool.readiness());
        let reason = readiness.as_ref().map(|readiness| readiness.reason.name().to_owned());
        let ready = readiness.as_ref().is_some_and(Readiness::is_ready);
        BackendHealth { name, ready, reason, worker: readiness.as_ref().map(Readiness::health) }
    }
}

fn build_client(settings: &ClientSettings) -> Result<reqwest::Client, String> {
    // Fails if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .dns_resolver(Arc::new(GuardedResolver { allowed: settings.allowed.clone() }));
    if let Some(connect) = settings.connect {
        builder = builder.connect_timeout(connect);
    }
    builder.build().map_err(|error| error.to_string())
}

/// Rejects internal addresses that are not in `allow_addresses`: a hostname may resolve to one.
struct GuardedResolver {
    allowed: Vec<IpAddr>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let resolved: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let permitted: Vec<SocketAddr> =
                resolved.iter().copied().filter(|a| !is_internal(a.ip()) || allowed.contains(&a.ip())).collect();
            if permitted.is_empty() && !resolved.is_empty() {
                let message =
                    "the hostname resolves to a link-local or metadata address that is not in `allow_addresses`";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}
