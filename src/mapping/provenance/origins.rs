//! Where the routes, models, backends and policies of a set come from: the layer, the file and the line.

use crate::diagnostics::{Source, Sources, Span};
use crate::mapping::config::models::ModelMatch;
use crate::mapping::load::Plan;
use crate::mapping::policy::resolve::{SetBy, Setting};
use crate::mapping::source::layout::SetFile;

/// Shown as the layer of what no file defines.
const COMMAND_LINE: &str = "command line";

/// What a set defines, and where.
#[derive(Clone, Debug)]
pub struct Origin {
    pub kind: OriginKind,
    /// `POST /v1/chat/completions`, `demo`, `gpt-*`, `usage`.
    pub name: String,
    /// What it is: the dialect of a route, the backend of a model, the file of a backend, the value of a policy.
    pub value: String,
    /// The route of a policy.
    pub route: Option<String>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    Route,
    Model,
    Backend,
    /// A policy of a route, for clients that match no user-agent rule and send no policy header.
    Policy,
}

impl OriginKind {
    pub const ALL: [OriginKind; 4] = [OriginKind::Route, OriginKind::Model, OriginKind::Backend, OriginKind::Policy];

    pub fn name(self) -> &'static str {
        match self {
            OriginKind::Route => "route",
            OriginKind::Model => "model",
            OriginKind::Backend => "backend",
            OriginKind::Policy => "policy",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            OriginKind::Route => "routes",
            OriginKind::Model => "models",
            OriginKind::Backend => "backends",
            OriginKind::Policy => "policies",
        }
    }
}

impl Origin {
    /// The layer that defines it.
    pub fn layer<'s>(&self, sources: &'s Sources) -> &'s str {
        sources.get(self.span.file).map_or(COMMAND_LINE, Source::layer_name)
    }

    /// `gateway.yaml:10:5`, as the user knows the file; `None` if it is not in a file.
    pub fn place(&self, sources: &Sources) -> Option<String> {
        sources.get(self.span.file).map(|_| sources.show(self.span))
    }
}

/// The folders of a set, the base first.
pub fn layers(sources: &Sources) -> Vec<&str> {
    // The schemas of a set may be next to its folder.
    let mappings = || sources.iter().map(|(_, source)| source).filter(|source| !SetFile::Schema.matches(&source.name));
    let name = |layer| mappings().find(|source| source.layer == layer).map(Source::layer_name);
    (0..=sources.last_layer()).filter_map(name).collect()
}

/// Everything in the order of the files that define it.
pub fn origins(plan: &Plan) -> Vec<Origin> {
    let gateway = &plan.gateway;
    let mut origins = Vec::new();
    for route in &gateway.routes {
        let value = match &route.profile {
            Some(profile) => format!("{} with the profile {profile}", route.dialect),
            None => route.dialect.clone(),
        };
        let name = format!("{} {}", route.method, route.path);
        origins.push(Origin { kind: OriginKind::Route, name, value, route: None, span: route.span });
    }
    for model in &gateway.models {
        let name = match &model.matches {
            ModelMatch::Id(id) => id.clone(),
            ModelMatch::Prefix(prefix) => format!("{prefix}*"),
        };
        let value = gateway.backends.get(model.backend).map(|b| b.name.clone()).unwrap_or_default();
        origins.push(Origin { kind: OriginKind::Model, name, value, route: None, span: model.span });
    }
    for backend in &gateway.backends {
        let file = &backend.plan;
        let extends = file.extends.as_ref().map(|base| format!(", which extends {}", base.value)).unwrap_or_default();
        let value = format!("{}{extends}", file.name);
        origins.push(Origin {
            kind: OriginKind::Backend,
            name: backend.name.clone(),
            value,
            route: None,
            span: backend.span,
        });
    }
    for route in &gateway.routes {
        let settings = route.variants.default_variant().map(|v| v.resolved.settings.as_slice()).unwrap_or_default();
        for setting in effective(settings) {
            origins.push(Origin {
                kind: OriginKind::Policy,
                name: setting.name.clone(),
                value: match &setting.by {
                    SetBy::Environment(variable) => format!("{} (set by {variable})", setting.value),
                    SetBy::Dialect | SetBy::Profile | SetBy::Route => setting.value.clone(),
                    SetBy::UserAgent | SetBy::Choose | SetBy::Header(_) | SetBy::Test => setting.value.clone(),
                },
                route: Some(format!("{} {}", route.method, route.path)),
                span: setting.span,
            });
        }
    }
    origins
}

/// The last setting of each policy.
fn effective(settings: &[Setting]) -> impl Iterator<Item = &Setting> {
    settings
        .iter()
        .enumerate()
        .filter(|(at, s)| !settings[at + 1..].iter().any(|later| later.name == s.name))
        .map(|(_, s)| s)
}
