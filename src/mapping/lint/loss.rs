//! A feature that is lost between a backend and a dialect.
//!
//! ## Why
//!
//! It is not a mistake: a dialect may have no frames for reasoning, and a backend may not support a seed. But whoever
//! configures a route should know it before a client does.
//!
//! ## Example
//!
//! ```text
//! note[RF207]: lost between openai-responses × chat@openai: reasoning summaries
//! ```
//!
//! ## Fix
//!
//! No change is required. If the client API can represent the feature, add a frame for the moment (or the member to the
//! backend's `request:`). `unsupported:` of a backend decides whether a field that it does not support is dropped or
//! rejected.

use super::dialect_label;
use super::representable;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::capabilities::{FORMAT_MEMBERS, OPTIONAL_FIELDS, OnUnsupported};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::language::field::FieldMapping;
use crate::mapping::policy::variants::reachable_dialects;

/// The features that are lost between a backend and the dialect of a route.
#[derive(Debug)]
pub struct Loss {
    pub backend: String,
    pub dialect: String,
    pub profile: Option<String>,
    /// ` at …`, ` for a client that …`; empty for the default client of the first route with this dialect.
    pub client: String,
    /// Features of the response that the dialect cannot represent.
    pub lost: Vec<&'static str>,
    /// Request fields that the backend does not support, and how they are handled.
    pub unsupported_fields: Vec<(&'static str, OnUnsupported)>,
    /// The first route with this dialect.
    pub span: Span,
}

impl Loss {
    /// `openai-responses × chat@openai: reasoning summaries; request fields: n (rejected), seed`
    pub fn sentence(&self) -> String {
        let dialect = dialect_label(&self.dialect, self.profile.as_deref());
        let between = format!("{} × {dialect}{}", self.backend, self.client);
        let fields = self.unsupported_fields.iter().map(|(name, handling)| match handling {
            OnUnsupported::Reject => format!("{name} (rejected)"),
            OnUnsupported::Forward | OnUnsupported::Drop | OnUnsupported::AsTool | OnUnsupported::Wrap => {
                (*name).to_owned()
            }
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        let lost = self.lost.join(", ");
        match (lost.is_empty(), fields.is_empty()) {
            (_, true) => format!("{between}: {lost}"),
            (true, false) => format!("{between}: request fields: {fields}"),
            (false, false) => format!("{between}: {lost}; request fields: {fields}"),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.unsupported_fields.is_empty()
    }

    /// The same loss between the same backend and dialect, for any client.
    fn is_same_as(&self, other: &Loss) -> bool {
        let between = |l: &Loss| (l.backend.clone(), l.dialect.clone(), l.profile.clone());
        between(self) == between(other)
            && self.lost == other.lost
            && self.unsupported_fields == other.unsupported_fields
    }

    /// For output formats that have diagnostics only.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::new(Code::Loss, self.span, format!("lost between {}", self.sentence()))
    }
}

/// The losses of every backend with every dialect of the routes. The same loss for another client is listed once.
pub fn check(plan: &Plan) -> Vec<Loss> {
    let routes = &plan.gateway.routes;
    // Default clients first: most other clients have the same losses.
    let defaults = routes.iter().filter_map(|r| Some((r, r.variants.default_dialect()?, String::new())));
    let mut losses: Vec<Loss> = Vec::new();
    let mut seen: Vec<(&RoutePlan, &DialectPlan)> = Vec::new();
    for (route, dialect, client) in defaults.chain(reachable_dialects(routes)) {
        if seen.iter().any(|(_, known)| std::ptr::eq(*known, &**dialect)) {
            continue;
        }
        let same = |d: &DialectPlan| d.name == dialect.name && d.profile == dialect.profile;
        let first = seen.iter().find(|(_, d)| same(d)).map_or(route, |(first, _)| first);
        seen.push((route, dialect));
        let client = match std::ptr::eq(first, route) {
            true => client,
            false => format!(" at {} {}{client}", route.method, route.path),
        };
        for backend in plan.backends.iter().filter(|b| b.transport != Transport::Replay) {
            let found = Loss { client: client.clone(), span: route.span, ..between(backend, dialect) };
            if !found.is_empty() && !losses.iter().any(|known| known.is_same_as(&found)) {
                losses.push(found);
            }
        }
    }
    losses
}

/// The losses of one backend and one dialect.
pub fn between(backend: &BackendPlan, dialect: &DialectPlan) -> Loss {
    Loss {
        backend: backend.name.clone(),
        dialect: dialect.name.clone(),
        profile: dialect.profile.clone(),
        client: String::new(),
        lost: representable::lost(backend, dialect),
        unsupported_fields: unsupported_fields(backend, dialect),
        span: Span::NOWHERE,
    }
}

/// Fields that a client can request and the backend's request template does not read.
fn unsupported_fields(backend: &BackendPlan, dialect: &DialectPlan) -> Vec<(&'static str, OnUnsupported)> {
    let Some((reads, settings)) = backend.sends() else { return Vec::new() };
    let request = &dialect.request;
    let can_request = |name: &str| match name {
        "tools" => !request.tools.groups.is_empty(),
        "tool_choice" => !request.tool_choice.is_empty(),
        "format" => !request.format.is_empty(),
        _ => request.scalars.iter().any(|read| read.field.name == name && read.constant().is_none()),
    };
    let unread = OPTIONAL_FIELDS.iter().filter(|name| can_request(name) && !reads.scalar(name));
    // A format that is sent as a tool is not lost.
    let fields = unread
        .map(|name| (*name, settings.capabilities.on_unsupported_field(name)))
        .filter(|(_, handling)| *handling != OnUnsupported::AsTool);
    let of_format = FORMAT_MEMBERS.iter().filter(|(member, _)| {
        let mut mappings = request.format.iter().filter(|read| read.field.name == *member && reads.scalar("format"));
        let is_unread = |read: &FieldMapping| {
            let mut selectors = read.selectors().iter();
            selectors.any(|selector| !reads.sends_format_member(member, selector))
        };
        mappings.any(is_unread)
    });
    fields.chain(of_format.map(|(_, name)| (*name, OnUnsupported::Drop))).collect()
}
