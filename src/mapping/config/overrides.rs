//! Settings from outside the set. The command line can set one backend for every model, one profile for every route and
//! listen addresses; the environment can set policies.

use super::admin::{ADMIN_TOKEN_VAR, AdminListener, LocalAddress};
use super::backend_address;
use super::backend_address::BackendAddress;
use super::child_process::ChildEntry;
use super::gateway::{GatewayPlan, KnownNames};
use super::gateway_backends::Backend;
use super::models::Model;
use super::secret::SecretSource;
use super::timeouts::Timeouts;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::policy::environment::Environment;
use crate::mapping::source::field_reader::LoadContext;

#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub backend: Option<BackendOverride>,
    pub profile: Option<String>,
    /// Values of the environment variables that profiles name.
    pub environment: Environment,
    /// `--listen`.
    pub listen: Option<String>,
    /// `PORT`.
    pub port: Option<String>,
    /// `--admin`. The token is read from the environment.
    pub admin: Option<String>,
}

/// `--backend NAME=URL`, or `--backend NAME` for a child process.
#[derive(Clone, Debug)]
pub struct BackendOverride {
    /// Name of the backend file.
    pub name: String,
    pub url: Option<String>,
    pub api_key: Option<SecretSource>,
}

/// The host with `PORT`.
const LOCAL_HOST: &str = "127.0.0.1";

impl Overrides {
    pub fn apply(&self, gateway: &mut GatewayPlan, known: &KnownNames, cx: LoadContext) {
        let host = gateway.listen_host.take();
        gateway.listen = match (&self.listen, &self.port, gateway.listen.take()) {
            (Some(listen), _, _) => Some(listen.clone()),
            (None, Some(port), _) => Some(format!("{}:{port}", host.as_deref().unwrap_or(LOCAL_HOST))),
            (None, None, listen) => match (host, listen) {
                (Some(host), Some(listen)) => {
                    let port = listen.rsplit_once(':').map_or(listen.as_str(), |(_, port)| port);
                    Some(format!("{host}:{port}"))
                }
                (_, listen) => listen,
            },
        };
        if let Some(listen) = &self.admin {
            let token = SecretSource::Env(ADMIN_TOKEN_VAR.to_owned());
            gateway.admin = Some(AdminListener { listen: LocalAddress(listen.clone()), token });
        }
        if let Some(at) = &self.backend
            && let Some(backend) = at.resolve(gateway.timeouts, known, cx)
        {
            gateway.backends = vec![backend];
            gateway.models = vec![Model::any(0)];
            gateway.example = None;
        }
        if let Some(profile) = &self.profile {
            if !known.profiles.contains(&profile.as_str()) {
                let message = format!("--profile: unknown profile `{profile}`");
                cx.unknown(Code::UnknownReference, Span::NOWHERE, message, profile, known.profiles.iter().copied());
            }
            for route in &mut gateway.routes {
                route.profile = Some(profile.clone());
                route.profile_span = None;
            }
        }
    }
}

impl BackendOverride {
    fn resolve(&self, timeouts: Timeouts, known: &KnownNames, cx: LoadContext) -> Option<Backend> {
        let report = |message: String, help: &str| {
            cx.add(Diagnostic::new(Code::UnknownValue, Span::NOWHERE, format!("--backend: {message}")).help(help));
        };
        let plan = known.backends.iter().find(|b| b.name == self.name && b.sends().is_some());
        let Some(plan) = plan else {
            let message = format!("--backend: no backend file with a request defines `backend: {}`", self.name);
            let sending = known.backends.iter().filter(|b| b.sends().is_some()).map(|b| b.name.as_str());
            cx.unknown(Code::UnknownReference, Span::NOWHERE, message, &self.name, sending);
            return None;
        };
        let (name, span) = (self.name.clone(), Span::NOWHERE);
        let url = match (&self.url, &plan.conversation) {
            (None, Some(conversation)) => {
                let process = plan.process.iter().cloned().collect();
                let child = Some(ChildEntry { process, settings: conversation.settings.clone(), timeouts });
                return Some(Backend { name, plan: plan.clone(), script: None, address: None, child, span });
            }
            (None, None) => {
                report(format!("`{name}` needs a URL"), "write NAME=URL, such as openai-chat=http://127.0.0.1:9000/v1");
                return None;
            }
            (Some(_), Some(_)) => {
                report(format!("`{name}` is a child process and has no URL"), "write only its name");
                return None;
            }
            (Some(url), None) => url,
        };
        let url = match backend_address::parse_base_url(url, &[]) {
            Ok(url) => url,
            Err(why) => {
                report(why.message, why.help);
                return None;
            }
        };
        let settings = plan.request_template.as_ref().map(|template| template.settings.clone()).unwrap_or_default();
        let api_key = self.api_key.clone();
        let address = BackendAddress { url, api_key, settings, timeouts, allowed_addresses: Vec::new() };
        Some(Backend { name, plan: plan.clone(), script: None, address: Some(address), child: None, span })
    }
}
