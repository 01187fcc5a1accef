//! Backends that are child processes, which speak JSON-RPC over their standard streams. The processes are started with the
//! gateway and outlive generations; the calls are data of the mapping (`conversation:`).

mod call_writer;
mod closing;
mod inquiries;
mod pool;
mod process;
mod readiness;
mod source;
mod stderr;
mod supervisor;
mod turn_entry;
mod turn_queue;
mod worker;
mod worker_task;

pub use process::{LAUNCH, launch};
pub use readiness::Readiness;
pub use source::ChildSource;
pub use stderr::StderrReader;

use crate::domain::{Redactor, Tree};
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::gateway_backends::Backend;
use crate::mapping::config::secret::SecretSource;
use pool::ChildPool;
use process::{ProcessSettings, Spawner};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The child processes of the gateway, by backend. Started once; a reload changes only what is called.
#[derive(Default)]
pub struct ChildPools {
    pools: Mutex<BTreeMap<String, Arc<ChildPool>>>,
}

impl std::fmt::Debug for ChildPools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.pools().keys()).finish()
    }
}

/// Parts of the names of variables with values that are redacted in the log and in messages to clients.
const SECRET_NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD"];
/// Shorter values are no secrets.
const SHORTEST_SECRET: usize = 8;

impl ChildPools {
    /// Starts the processes of all backends in the background. Call inside the runtime.
    /// `stderr_reader` receives the lines of their standard error.
    pub fn start(&self, gateway: &GatewayPlan, stderr_reader: Option<StderrReader>) -> Result<(), String> {
        let backends: Vec<&Backend> = gateway.backends.iter().filter(|backend| backend.child.is_some()).collect();
        if backends.is_empty() {
            return Ok(());
        }
        let spawner = Spawner::start().map_err(|error| format!("cannot start a thread: {error}"))?;
        let spawner = Arc::new(spawner);
        let variables: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let is_secret = |name: &str| SECRET_NAMES.iter().any(|word| name.to_ascii_uppercase().contains(word));
        let secrets = variables.iter().filter(|(name, value)| is_secret(name) && value.len() >= SHORTEST_SECRET);
        let redactor = Redactor::of(secrets.map(|(_, value)| value.as_str()));
        let env = Arc::new(Tree::map(variables.into_iter().map(|(name, value)| (name, Tree::from(value)))));
        let removed = own_secrets(gateway);
        for backend in backends {
            let Some(child) = &backend.child else { continue };
            let settings = ProcessSettings::render(child, &env, &removed)
                .map_err(|why| format!("the process of the backend `{}`: {why}", backend.name))?;
            let (name, plan) = (backend.name.clone(), backend.plan.clone());
            let (spawner, reader) = (spawner.clone(), stderr_reader.clone());
            let pool = ChildPool::start(name.clone(), settings, spawner, plan, env.clone(), redactor.clone(), reader);
            self.pools().insert(name, pool);
        }
        Ok(())
    }

    pub fn pool(&self, backend: &str) -> Option<Arc<ChildPool>> {
        self.pools().get(backend).cloned()
    }

    /// The readiness of each backend that is a child process, by name.
    pub fn readiness(&self) -> Vec<(String, Readiness)> {
        self.pools().iter().map(|(name, pool)| (name.clone(), pool.readiness())).collect()
    }

    /// Stops all processes.
    pub async fn stop(&self) {
        let pools: Vec<Arc<ChildPool>> = self.pools().values().cloned().collect();
        let stops: Vec<_> = pools.iter().map(|pool| pool.stop()).collect();
        futures_util::future::join_all(stops).await;
    }

    fn pools(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ChildPool>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The variables with the keys that clients of this gateway send: no process needs them.
fn own_secrets(gateway: &GatewayPlan) -> Vec<String> {
    let admin = gateway.admin.as_ref().map(|admin| &admin.token);
    let sources = gateway.api_keys.iter().map(|key| &key.secret).chain(admin);
    let names = sources.filter_map(|source| match source {
        SecretSource::Env(name) => Some(name.clone()),
        SecretSource::File(_) => None,
    });
    names.collect()
}
