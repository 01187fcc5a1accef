//! Settings that are read only at start: sockets, secrets and child processes. A reload that changes one of them is applied without
//! that change and reports it under `needs_restart`.

use crate::mapping::Plan;
use crate::mapping::config::admin::AdminListener;
use crate::mapping::config::child_process::ChildEntry;
use crate::mapping::config::client_keys::{Auth, ClientKey};
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::gateway_backends::Backend;
use crate::mapping::config::secret::SecretSource;
use std::fmt;

/// The values of these settings when the process started.
pub struct PinnedSettings {
    listen: Option<String>,
    admin: Option<AdminListener>,
    keys: Vec<ClientKey>,
    auth: Auth,
    backends: Vec<PinnedBackendKey>,
    /// The processes of backends, by name.
    processes: Vec<(String, ChildEntry)>,
}

/// The API key of a backend and the host it was sent to.
struct PinnedBackendKey {
    backend: String,
    host: String,
    key: Option<SecretSource>,
}

/// A changed setting that takes effect only after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsRestart {
    /// The key in gateway.yaml.
    pub setting: String,
    /// `file:line:column`, if the setting is in a file.
    pub location: Option<String>,
    pub running: String,
    pub configured: String,
}

impl fmt::Display for NeedsRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NeedsRestart { setting, location, running, configured } = self;
        let at = location.as_ref().map_or(String::new(), |l| format!(" at {l}"));
        write!(f, "`{setting}`{at} is {configured} in the file and remains {running} until a restart")
    }
}

impl PinnedSettings {
    pub fn of(gateway: &GatewayPlan) -> PinnedSettings {
        PinnedSettings {
            listen: gateway.listen.clone(),
            admin: gateway.admin.clone(),
            keys: gateway.api_keys.clone(),
            auth: gateway.auth,
            backends: gateway.backends.iter().filter_map(PinnedBackendKey::of).collect(),
            processes: gateway
                .backends
                .iter()
                .filter_map(|backend| Some((backend.name.clone(), backend.child.clone()?)))
                .collect(),
        }
    }

    /// Restores the pinned settings in a newly loaded plan and returns those that differed.
    pub fn restore(&self, plan: &mut Plan) -> Vec<NeedsRestart> {
        let (gateway, sources) = (&mut plan.gateway, &plan.sources);
        let at = gateway.pinned_spans;
        let mut needs = Vec::new();
        let mut need = |setting: &str, span: Option<crate::diagnostics::Span>, running: String, configured: String| {
            let location = span.filter(|s| sources.get(s.file).is_some()).map(|s| sources.show(s));
            needs.push(NeedsRestart { setting: setting.to_owned(), location, running, configured });
        };
        if gateway.listen != self.listen {
            let describe = |listen: &Option<String>| listen.clone().unwrap_or_else(|| "the default".to_owned());
            need("listen", at.listen, describe(&self.listen), describe(&gateway.listen));
            gateway.listen = self.listen.clone();
        }
        if gateway.admin != self.admin {
            let describe =
                |admin: &Option<AdminListener>| admin.as_ref().map_or("off".to_owned(), |a| a.listen.0.clone());
            let (running, mut configured) = (describe(&self.admin), describe(&gateway.admin));
            if running == configured {
                configured.push_str(" with another token");
            }
            need("admin", at.admin, running, configured);
            gateway.admin = self.admin.clone();
        }
        if gateway.api_keys != self.keys {
            need("api_keys", at.api_keys, describe_keys(&self.keys), describe_keys(&gateway.api_keys));
            gateway.api_keys = self.keys.clone();
        }
        if gateway.auth != self.auth {
            need("auth", at.auth, self.auth.name().to_owned(), gateway.auth.name().to_owned());
            gateway.auth = self.auth;
        }
        for backend in &mut gateway.backends {
            let Some(source) = backend.address.as_ref().and_then(|r| r.api_key.clone()) else { continue };
            if self.has_loaded(&source) {
                continue;
            }
            let wanted = PinnedBackendKey::of(backend);
            let pinned = self.backends.iter().find(|k| {
                let wanted = wanted.as_ref().map(|w| (&w.backend, &w.host));
                Some((&k.backend, &k.host)) == wanted
            });
            // A key is never sent to another host than before: such a backend has no key until the restart.
            let before = pinned.and_then(|k| k.key.clone());
            let running = before.as_ref().map_or("without a key".to_owned(), describe);
            need(&format!("backends.{}.api_key", backend.name), Some(backend.span), running, describe(&source));
            if let (Some(address), Some(before)) = (&mut backend.address, before) {
                address.api_key = Some(before);
            }
        }
        for backend in &mut gateway.backends {
            let Some(child) = &mut backend.child else { continue };
            let started = self.processes.iter().find(|(name, _)| *name == backend.name).map(|(_, started)| started);
            if started.is_some_and(|started| started.source() == child.source()) {
                continue;
            }
            let running = if started.is_some() { "as it was started" } else { "not started" };
            let setting = format!("backends.{}.process", backend.name);
            need(&setting, Some(backend.span), running.to_owned(), "changed".to_owned());
            if let Some(started) = started {
                child.process.clone_from(&started.process);
            }
        }
        needs
    }

    /// Whether this secret was loaded at start, under whatever name. Such a secret may be used by any backend.
    fn has_loaded(&self, source: &SecretSource) -> bool {
        let clients = self.keys.iter().map(|k| &k.secret);
        self.backends.iter().filter_map(|b| b.key.as_ref()).chain(clients).any(|known| known == source)
    }
}

impl PinnedBackendKey {
    fn of(backend: &Backend) -> Option<PinnedBackendKey> {
        let address = backend.address.as_ref()?;
        let host: String = address.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        Some(PinnedBackendKey { backend: backend.name.clone(), host, key: address.api_key.clone() })
    }
}

fn describe_keys(keys: &[ClientKey]) -> String {
    match keys {
        [] => "none".to_owned(),
        some => some.iter().map(|k| format!("{} ({})", k.name, describe(&k.secret))).collect::<Vec<_>>().join(", "),
    }
}

/// Describes where a secret comes from, never its value.
fn describe(source: &SecretSource) -> String {
    match source {
        SecretSource::Env(name) => format!("the variable {name}"),
        SecretSource::File(path) => format!("the file {path}"),
    }
}
