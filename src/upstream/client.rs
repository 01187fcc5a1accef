//! The HTTP clients of backends, and the child processes and keys that belong to them.

use super::child::{ChildPools, Readiness};
use super::http_client::{BaseUrl, ConnectSettings, HttpClient, TlsSettings};
use super::secrets::Keyring;
use crate::domain::{BackendHealth, Fault};
use crate::mapping::config::backend::Transport;
use crate::mapping::config::backend_address::BackendAddress;
use crate::mapping::config::gateway_backends::Backend;
use crate::mapping::grammar::notation::TimeLimit;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// One client per origin and set of connection settings. Outlives generations, so that a reload closes no connection.
#[derive(Default)]
pub struct ClientPool {
    clients: Mutex<Clients>,
    pub keys: Keyring,
    /// The backends that are child processes.
    pub children: ChildPools,
}

#[derive(Default)]
struct Clients {
    /// By their base URL, with its text.
    backends: Vec<(String, BackendClient)>,
    /// Read for the first backend with https.
    tls: Option<TlsSettings>,
}

/// The client of a backend, and where its paths begin.
#[derive(Clone)]
pub struct BackendClient {
    pub http: Arc<HttpClient>,
    pub base_url: Arc<BaseUrl>,
    settings: Arc<ConnectSettings>,
}

/// Clients of earlier generations are forgotten.
const MAX_CLIENTS: usize = 256;

impl ClientPool {
    pub fn client(&self, address: &BackendAddress) -> Result<BackendClient, String> {
        let connect = TimeLimit::of(address.timeouts.connect);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let has_settings = |own: &ConnectSettings| own.timeout == connect && own.allowed == address.allowed_addresses;
        let known = clients.backends.iter().find(|(url, own)| *url == address.url && has_settings(&own.settings));
        if let Some((_, known)) = known {
            return Ok(known.clone());
        }
        let base_url = BaseUrl::parse(&address.url).ok_or("the URL of the backend is not valid")?;
        let of_origin = clients
            .backends
            .iter()
            .find(|(_, own)| own.base_url.origin == base_url.origin && has_settings(&own.settings));
        let (http, settings) = match of_origin {
            Some((_, own)) => (own.http.clone(), own.settings.clone()),
            None => {
                let settings = ConnectSettings { timeout: connect, allowed: address.allowed_addresses.clone() };
                let tls = clients.tls(base_url.origin.is_https())?;
                (Arc::new(HttpClient::new(base_url.origin.clone(), &settings, tls)), Arc::new(settings))
            }
        };
        let client = BackendClient { http, base_url: Arc::new(base_url), settings };
        if clients.backends.len() >= MAX_CLIENTS {
            clients.backends.clear();
        }
        clients.backends.push((address.url.clone(), client.clone()));
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

impl Clients {
    fn tls(&mut self, is_https: bool) -> Result<Option<TlsSettings>, String> {
        if is_https && self.tls.is_none() {
            self.tls = Some(TlsSettings::read().map_err(|error| error.to_string())?);
        }
        Ok(self.tls.clone().filter(|_| is_https))
    }
}

impl fmt::Debug for ClientPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientPool").finish_non_exhaustive()
    }
}
