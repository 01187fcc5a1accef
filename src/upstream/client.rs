//! The connections to backends: pooled, without redirects, proxies or cookies, and never to an address that a name
//! resolved to behind our back.

use super::secrets::Keyring;
use crate::mapping::config::backend_address::{Reach, is_internal};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Outlives generations, so that a reload drops no connection.
#[derive(Debug, Default)]
pub struct Dialler {
    clients: Mutex<HashMap<Settings, reqwest::Client>>,
    pub keys: Keyring,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Settings {
    connect: Option<Duration>,
    allowed: Vec<IpAddr>,
}

const POOL_IDLE: Duration = Duration::from_secs(90);

impl Dialler {
    pub fn client(&self, reach: &Reach) -> Result<reqwest::Client, String> {
        let settings = Settings { connect: reach.timeouts.connect, allowed: reach.allowed.clone() };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&settings) {
            return Ok(client.clone());
        }
        let client = build(&settings)?;
        clients.insert(settings, client.clone());
        Ok(client)
    }
}

fn build(settings: &Settings) -> Result<reqwest::Client, String> {
    // The second call says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .dns_resolver(Arc::new(Guarded { allowed: settings.allowed.clone() }));
    if let Some(connect) = settings.connect {
        builder = builder.connect_timeout(connect);
    }
    builder.build().map_err(|error| error.to_string())
}

/// A name may resolve to an address that nobody would have written down.
struct Guarded {
    allowed: Vec<IpAddr>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let safe: Vec<SocketAddr> =
                found.iter().copied().filter(|a| !is_internal(a.ip()) || allowed.contains(&a.ip())).collect();
            if safe.is_empty() && !found.is_empty() {
                let message =
                    "the name leads to a link-local or metadata address, which `allow_addresses` does not name";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message).into());
            }
            Ok(Box::new(safe.into_iter()) as Addrs)
        })
    }
}
