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

use super::shown;
use crate::diag::{Code, Diagnostic, Span};
use crate::mapping::Plan;
use crate::mapping::backend::{BackendPlan, Transport};
use crate::mapping::dialect::DialectPlan;
use crate::mapping::loss;
use crate::mapping::manners::{Fate, OPTIONAL};

/// What is lost between a backend and what a route speaks.
#[derive(Debug)]
pub struct Loss {
    pub backend: String,
    pub dialect: String,
    pub profile: Option<String>,
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
        let between = format!("{} × {}", self.backend, shown(&self.dialect, self.profile.as_deref()));
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

    /// For whoever knows nothing but findings.
    pub fn note(&self) -> Diagnostic {
        Diagnostic::new(Code::Loss, self.span, format!("lost between {}", self.sentence()))
    }
}

/// Every backend with all that routes speak.
pub fn check(plan: &Plan) -> Vec<Loss> {
    let mut losses: Vec<Loss> = Vec::new();
    let mut told: Vec<(&str, Option<&str>)> = Vec::new();
    for route in &plan.gateway.routes {
        let pair = (route.dialect.as_str(), route.profile.as_deref());
        let Some(dialect) = plan.dialect(pair.0, pair.1).filter(|_| !told.contains(&pair)) else { continue };
        told.push(pair);
        for backend in plan.backends.iter().filter(|b| b.transport != Transport::Replay) {
            let (lost, unasked) = (loss::lost(backend, dialect), unasked(backend, dialect));
            if !(lost.is_empty() && unasked.is_empty()) {
                let (backend, dialect) = (backend.name.clone(), dialect.name.clone());
                let (profile, span) = (route.profile.clone(), route.span);
                losses.push(Loss { backend, dialect, profile, lost, unasked, span });
            }
        }
    }
    losses
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
