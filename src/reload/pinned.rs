//! Settings that are read only at start: sockets and secrets. A reload that changes one of them is applied without
//! that change and reports it under `needs_restart`.

use crate::diagnostics::Span;
use crate::mapping::Plan;
use crate::mapping::config::admin::AdminListener;
use crate::mapping::config::backend_address::SecretSource;
use crate::mapping::config::gateway::{Auth, Backend, ClientKey, GatewayPlan};
use std::fmt;

/// The values of these settings when the process started.
pub struct PinnedSettings {
    listen: Option<String>,
    admin: Option<AdminListener>,
    keys: Vec<ClientKey>,
    auth: Auth,
    backends: Vec<PinnedBackendKey>,
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
        }
    }

    /// Restores the pinned settings in a newly loaded plan and returns those that differed.
    pub fn restore(&self, plan: &mut Plan) -> Vec<NeedsRestart> {
        let (gateway, sources) = (&mut plan.gateway, &plan.sources);
        let at = gateway.pinned_spans;
        let mut needs = Vec::new();
        let mut need = |setting: &str, span: Option<Span>, change: Option<(String, String)>| {
            let Some((running, configured)) = change else { return };
            let location = span.filter(|s| sources.get(s.file).is_some()).map(|s| sources.show(s));
            needs.push(NeedsRestart { setting: setting.to_owned(), location, running, configured });
        };
        let listen = keep(&mut gateway.listen, &self.listen, |listen| {
            listen.clone().unwrap_or_else(|| "the default".to_owned())
        });
        need("listen", at.listen, listen);
        let admin = keep(&mut gateway.admin, &self.admin, |admin| {
            admin.as_ref().map_or("off".to_owned(), |admin| admin.listen.clone())
        });
        let other_token = |(running, configured)| match running == configured {
            true => (running, configured + " with another token"),
            false => (running, configured),
        };
        need("admin", at.admin, admin.map(other_token));
        need("api_keys", at.api_keys, keep(&mut gateway.api_keys, &self.keys, |keys| describe_keys(keys)));
        need("auth", at.auth, keep(&mut gateway.auth, &self.auth, |auth| auth.name().to_owned()));
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
            let setting = format!("backends.{}.api_key", backend.name);
            need(&setting, Some(backend.span), Some((running, describe(&source))));
            if let (Some(address), Some(before)) = (&mut backend.address, before) {
                address.api_key = Some(before);
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

/// Restores a setting. If it differed, describes the value that stays in use and the one in the file.
fn keep<T: Clone + PartialEq>(now: &mut T, pinned: &T, describe: impl Fn(&T) -> String) -> Option<(String, String)> {
    let change = (now != pinned).then(|| (describe(pinned), describe(now)));
    now.clone_from(pinned);
    change
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
