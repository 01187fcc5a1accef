//! What is read at the start only: sockets and secrets. A reload that changes one of these is applied without it, and
//! says so.

use crate::mapping::Plan;
use crate::mapping::config::admin::Admin;
use crate::mapping::config::backend_address::KeySource;
use crate::mapping::config::gateway::{Auth, Backend, ClientKey, GatewayPlan};
use std::fmt;

/// As it was when the process began.
pub struct AtStart {
    listen: Option<String>,
    admin: Option<Admin>,
    keys: Vec<ClientKey>,
    auth: Auth,
    backends: Vec<KeptKey>,
}

/// The key of a backend, and whom it was shown to.
struct KeptKey {
    backend: String,
    host: String,
    key: Option<KeySource>,
}

/// A change that takes a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsRestart {
    /// The key in gateway.yaml.
    pub what: String,
    /// File, line and column, where it stands in one.
    pub place: Option<String>,
    pub running: String,
    pub wanted: String,
}

impl fmt::Display for NeedsRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NeedsRestart { what, place, running, wanted } = self;
        let place = place.as_ref().map_or(String::new(), |p| format!(" at {p}"));
        write!(f, "`{what}`{place} is {wanted} in the file and stays {running} until a restart")
    }
}

impl AtStart {
    pub fn of(gateway: &GatewayPlan) -> AtStart {
        AtStart {
            listen: gateway.listen.clone(),
            admin: gateway.admin.clone(),
            keys: gateway.keys.clone(),
            auth: gateway.auth,
            backends: gateway.backends.iter().filter_map(KeptKey::of).collect(),
        }
    }

    /// Puts back what cannot change while the process runs, and says what that was.
    pub fn hold(&self, plan: &mut Plan) -> Vec<NeedsRestart> {
        let (gateway, sources) = (&mut plan.gateway, &plan.sources);
        let at = gateway.at;
        let mut needs = Vec::new();
        let mut need = |what: &str, span: Option<crate::diagnostics::Span>, running: String, wanted: String| {
            let place = span.filter(|s| sources.get(s.file).is_some()).map(|s| sources.show(s));
            needs.push(NeedsRestart { what: what.to_owned(), place, running, wanted });
        };
        if gateway.listen != self.listen {
            let shown = |listen: &Option<String>| listen.clone().unwrap_or_else(|| "the default".to_owned());
            need("listen", at.listen, shown(&self.listen), shown(&gateway.listen));
            gateway.listen = self.listen.clone();
        }
        if gateway.admin != self.admin {
            let shown = |admin: &Option<Admin>| admin.as_ref().map_or("off".to_owned(), |a| a.listen.clone());
            let (running, mut wanted) = (shown(&self.admin), shown(&gateway.admin));
            if running == wanted {
                wanted.push_str(" with another token");
            }
            need("admin", at.admin, running, wanted);
            gateway.admin = self.admin.clone();
        }
        if gateway.keys != self.keys {
            need("keys", at.keys, names(&self.keys), names(&gateway.keys));
            gateway.keys = self.keys.clone();
        }
        if gateway.auth != self.auth {
            need("auth", at.auth, self.auth.word().to_owned(), gateway.auth.word().to_owned());
            gateway.auth = self.auth;
        }
        for backend in &mut gateway.backends {
            let Some(source) = backend.reach.as_ref().and_then(|r| r.key.clone()) else { continue };
            if self.has_read(&source) {
                continue;
            }
            let same = KeptKey::of(backend);
            let kept = self.backends.iter().find(|k| {
                let same = same.as_ref().map(|s| (&s.backend, &s.host));
                Some((&k.backend, &k.host)) == same
            });
            // The key of one host is not shown to another: there the backend has none until the restart.
            let before = kept.and_then(|k| k.key.clone());
            let running = before.as_ref().map_or("without a key".to_owned(), shown);
            need(&format!("backends.{}.key", backend.name), Some(backend.span), running, shown(&source));
            if let (Some(reach), Some(before)) = (&mut backend.reach, before) {
                reach.key = Some(before);
            }
        }
        needs
    }

    /// A secret of another name that was there from the start may be used by whoever names it.
    fn has_read(&self, source: &KeySource) -> bool {
        let clients = self.keys.iter().map(|k| &k.secret);
        self.backends.iter().filter_map(|b| b.key.as_ref()).chain(clients).any(|known| known == source)
    }
}

impl KeptKey {
    fn of(backend: &Backend) -> Option<KeptKey> {
        let reach = backend.reach.as_ref()?;
        let host: String = reach.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        Some(KeptKey { backend: backend.name.clone(), host, key: reach.key.clone() })
    }
}

fn names(keys: &[ClientKey]) -> String {
    match keys {
        [] => "none".to_owned(),
        some => some.iter().map(|k| format!("{} ({})", k.name, shown(&k.secret))).collect::<Vec<_>>().join(", "),
    }
}

/// Where it is, never what it is.
fn shown(source: &KeySource) -> String {
    match source {
        KeySource::Env(name) => format!("the variable {name}"),
        KeySource::File(path) => format!("the file {path}"),
    }
}
