//! What is said from outside of the set: one backend for every model and one profile for every route by the command line,
//! policies by the environment.

use super::admin::{ADMIN_TOKEN, Admin};
use super::backend_address;
use super::backend_address::{KeySource, Reach};
use super::gateway::{Backend, GatewayPlan, Known, Match, Model};
use super::timeouts::Timeouts;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::policy::environment::Environment;
use crate::mapping::source::field_reader::Cx;

#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub backend: Option<BackendAt>,
    pub profile: Option<String>,
    /// For the variables that profiles name.
    pub environment: Environment,
    /// `--listen`, or `PORT`.
    pub listen: Option<String>,
    /// `--admin`: its token is in the environment.
    pub admin: Option<String>,
}

/// `--backend NAME=URL`
#[derive(Clone, Debug)]
pub struct BackendAt {
    /// Of the backend file.
    pub name: String,
    pub url: String,
    pub key: Option<KeySource>,
}

impl Overrides {
    pub fn apply(&self, gateway: &mut GatewayPlan, known: &Known, cx: Cx) {
        if let Some(listen) = &self.listen {
            gateway.listen = Some(listen.clone());
        }
        if let Some(listen) = &self.admin {
            let token = KeySource::Env(ADMIN_TOKEN.to_owned());
            gateway.admin = Some(Admin { listen: listen.clone(), token });
        }
        if let Some(at) = &self.backend
            && let Some(backend) = at.resolve(gateway.timeouts, known, cx)
        {
            gateway.backends = vec![backend];
            gateway.models = vec![Model { matches: Match::Prefix(String::new()), backend: 0, span: Span::NOWHERE }];
            gateway.example = None;
        }
        if let Some(profile) = &self.profile {
            if !known.profiles.contains(&profile.as_str()) {
                let message = format!("--profile: no profile is called `{profile}`");
                cx.unknown(Code::UnknownReference, Span::NOWHERE, message, profile, known.profiles.iter().copied());
            }
            for route in &mut gateway.routes {
                route.profile = Some(profile.clone());
                route.profile_span = None;
            }
        }
    }
}

impl BackendAt {
    fn resolve(&self, timeouts: Timeouts, known: &Known, cx: Cx) -> Option<Backend> {
        let fault = |message: String, help: &str| {
            cx.add(Diagnostic::new(Code::UnknownValue, Span::NOWHERE, format!("--backend: {message}")).help(help));
        };
        let dialled: Vec<&str> = known.backends.iter().filter(|b| b.ask.is_some()).map(|b| b.name.as_str()).collect();
        let Some(plan) = known.backends.iter().find(|b| b.name == self.name && b.ask.is_some()) else {
            let message = format!("--backend: no backend file that is asked over HTTP says `backend: {}`", self.name);
            cx.unknown(Code::UnknownReference, Span::NOWHERE, message, &self.name, dialled);
            return None;
        };
        let url = match backend_address::base(&self.url, &[]) {
            Ok(url) => url,
            Err(why) => {
                fault(why.message, why.help);
                return None;
            }
        };
        let manners = plan.ask.as_ref().map(|a| a.manners.clone()).unwrap_or_default();
        let reach = Reach { url, key: self.key.clone(), manners, timeouts, allowed: Vec::new() };
        let span = Span::NOWHERE;
        Some(Backend { name: self.name.clone(), plan: plan.clone(), script: None, reach: Some(reach), span })
    }
}
