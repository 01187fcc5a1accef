//! What a backend can say and a dialect cannot, or a dialect's request can ask and a backend does not take.
//!
//! ## Why
//!
//! It is no mistake: a dialect may have no words for thoughts, and a backend none for a seed. But whoever opens a route should
//! know it before a client finds out.
//!
//! ## Example
//!
//! ```text
//! note[RF207]: lost between openai-responses × chat@openai: reasoning summaries
//! ```
//!
//! ## Mend
//!
//! Nothing has to be mended. If the client has a word for it, add a frame for the moment (or the member to the backend's
//! `request:`); `unsupported:` of a backend says whether what it does not take is dropped or refused.

use super::representable;
use super::shown;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::capabilities::{Fate, OPTIONAL};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;

/// What is lost between a backend and what a route speaks.
#[derive(Debug)]
pub struct Loss {
    pub backend: String,
    pub dialect: String,
    pub profile: Option<String>,
    /// ` at …`, ` for a client that …`; empty for those that the first route speaks so to, if nothing else is said.
    pub whose: String,
    /// Of the answer, in words that a person understands.
    pub lost: Vec<&'static str>,
    /// Of the request: our name of what is asked, and what becomes of it.
    pub unasked: Vec<(&'static str, Fate)>,
    /// The first route that speaks so.
    pub span: Span,
}

impl Loss {
    /// `openai-responses × chat@openai: reasoning summaries; of a request: n (refused), seed`
    pub fn sentence(&self) -> String {
        let spoken = shown(&self.dialect, self.profile.as_deref());
        let between = format!("{} × {spoken}{}", self.backend, self.whose);
        let asked = self.unasked.iter().map(|(name, fate)| match fate {
            Fate::Reject => format!("{name} (refused)"),
            Fate::Forward | Fate::Drop | Fate::AsTool | Fate::Wrap => (*name).to_owned(),
        });
        let asked = asked.collect::<Vec<_>>().join(", ");
        let lost = self.lost.join(", ");
        match (lost.is_empty(), asked.is_empty()) {
            (_, true) => format!("{between}: {lost}"),
            (true, false) => format!("{between}: of a request: {asked}"),
            (false, false) => format!("{between}: {lost}; of a request: {asked}"),
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.lost.is_empty() && self.unasked.is_empty()
    }

    /// Is it the same between the same two?
    fn holds(&self, other: &Loss) -> bool {
        let between = |l: &Loss| (l.backend.clone(), l.dialect.clone(), l.profile.clone());
        between(self) == between(other) && self.lost == other.lost && self.unasked == other.unasked
    }

    /// For whoever knows nothing but findings.
    pub fn note(&self) -> Diagnostic {
        Diagnostic::new(Code::Loss, self.span, format!("lost between {}", self.sentence()))
    }
}

/// Every backend with all that routes speak. What is the same for another client is said once.
pub fn check(plan: &Plan) -> Vec<Loss> {
    let routes = &plan.gateway.routes;
    // First what clients get that send nothing of interest: most of the others lose the same.
    let plain = routes.iter().filter_map(|r| Some((r, r.variants.base()?, String::new())));
    let chosen = routes.iter().flat_map(|r| r.variants.reachable().into_iter().map(move |(d, client)| (r, d, client)));
    let mut losses: Vec<Loss> = Vec::new();
    let mut seen: Vec<(&RoutePlan, &DialectPlan)> = Vec::new();
    for (route, dialect, client) in plain.chain(chosen) {
        if seen.iter().any(|(_, known)| std::ptr::eq(*known, &**dialect)) {
            continue;
        }
        let same = |d: &DialectPlan| d.name == dialect.name && d.profile == dialect.profile;
        let first = seen.iter().find(|(_, d)| same(d)).map_or(route, |(first, _)| first);
        seen.push((route, dialect));
        let whose = match std::ptr::eq(first, route) {
            true => client,
            false => format!(" at {} {}{client}", route.method, route.path),
        };
        for backend in plan.backends.iter().filter(|b| b.transport != Transport::Replay) {
            let found = Loss { whose: whose.clone(), span: route.span, ..between(backend, dialect) };
            if !found.is_nothing() && !losses.iter().any(|known| known.holds(&found)) {
                losses.push(found);
            }
        }
    }
    losses
}

/// One backend and one dialect, whoever speaks it.
pub fn between(backend: &BackendPlan, dialect: &DialectPlan) -> Loss {
    Loss {
        backend: backend.name.clone(),
        dialect: dialect.name.clone(),
        profile: dialect.profile.clone(),
        whose: String::new(),
        lost: representable::lost(backend, dialect),
        unasked: unasked(backend, dialect),
        span: Span::NOWHERE,
    }
}

/// What the client may ask for and the body of the backend's request does not read.
fn unasked(backend: &BackendPlan, dialect: &DialectPlan) -> Vec<(&'static str, Fate)> {
    let Some(ask) = &backend.ask else { return Vec::new() };
    let request = &dialect.request;
    let asks = |name: &str| match name {
        "tools" => !request.tools.groups.is_empty(),
        "tool_choice" => !request.tool_choice.is_empty(),
        "format" => !request.format.is_empty(),
        _ => request.scalars.iter().any(|read| read.field.name == name && read.constant().is_none()),
    };
    let left = OPTIONAL.iter().filter(|name| asks(name) && !ask.reads.scalar(name));
    // A format that travels as a tool arrives.
    left.map(|name| (*name, ask.manners.unsupported(name))).filter(|(_, fate)| *fate != Fate::AsTool).collect()
}
