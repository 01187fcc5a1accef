//! Settings from outside the set. The command line can set one backend for every model, one profile for every route and
//! listen addresses; the environment can set policies.

use super::admin::{ADMIN_TOKEN_VAR, AdminListener, LocalAddress};
use super::backend_address;
use super::backend_address::BackendAddress;
use super::gateway::{Backend, GatewayPlan, KnownNames};
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
    /// `--listen`, or `PORT`.
    pub listen: Option<String>,
    /// `--admin`. The token is read from the environment.
    pub admin: Option<String>,
}

/// `--backend NAME=URL`
#[derive(Clone, Debug)]
pub struct BackendOverride {
    /// Name of the backend file.
    pub name: String,
    pub url: String,
    pub api_key: Option<SecretSource>,
}

impl Overrides {
    pub fn apply(&self, gateway: &mut GatewayPlan, known: &KnownNames, cx: LoadContext) {
        if let Some(listen) = &self.listen {
            gateway.listen = Some(listen.clone());
        }
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
        let http_backends: Vec<&str> =
            known.backends.iter().filter(|b| b.request_template.is_some()).map(|b| b.name.as_str()).collect();
        let Some(plan) = known.backends.iter().find(|b| b.name == self.name && b.request_template.is_some()) else {
            let message = format!("--backend: no HTTP backend file defines `backend: {}`", self.name);
            cx.unknown(Code::UnknownReference, Span::NOWHERE, message, &self.name, http_backends);
            return None;
        };
        let url = match backend_address::parse_base_url(&self.url, &[]) {
            Ok(url) => url,
            Err(why) => {
                report(why.message, why.help);
                return None;
            }
        };
        let settings = plan.request_template.as_ref().map(|template| template.settings.clone()).unwrap_or_default();
        let api_key = self.api_key.clone();
        let address = BackendAddress { url, api_key, settings, timeouts, allowed_addresses: Vec::new() };
        let span = Span::NOWHERE;
        Some(Backend { name: self.name.clone(), plan: plan.clone(), script: None, address: Some(address), span })
    }
}
