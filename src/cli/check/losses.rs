//! What each backend can say and each route's dialect cannot: no mistake, but worth knowing.

use crate::diag::{Code, Diagnostic, Span};
use crate::mapping::backend::Transport;
use crate::mapping::{Plan, loss};

pub struct Loss {
    pub backend: String,
    pub dialect: String,
    pub profile: Option<String>,
    pub lost: Vec<&'static str>,
    /// The first route that speaks so.
    span: Span,
}

impl Loss {
    /// `codex-app-server × chat@openai: reasoning summaries`
    pub fn sentence(&self) -> String {
        let profile = self.profile.as_ref().map(|p| format!("@{p}")).unwrap_or_default();
        format!("{} × {}{profile}: {}", self.backend, self.dialect, self.lost.join(", "))
    }

    /// For the formats that know nothing but findings.
    pub fn note(&self) -> Diagnostic {
        Diagnostic::new(Code::Loss, self.span, format!("lost between {}", self.sentence()))
    }
}

pub fn of(plan: &Plan) -> Vec<Loss> {
    let mut losses: Vec<Loss> = Vec::new();
    let mut told: Vec<(&str, Option<&str>)> = Vec::new();
    for route in &plan.gateway.routes {
        let pair = (route.dialect.as_str(), route.profile.as_deref());
        let Some(dialect) = plan.dialect(pair.0, pair.1).filter(|_| !told.contains(&pair)) else { continue };
        told.push(pair);
        for backend in plan.backends.iter().filter(|b| b.transport != Transport::Replay) {
            let lost = loss::lost(backend, dialect);
            if !lost.is_empty() {
                let (backend, dialect) = (backend.name.clone(), route.dialect.clone());
                losses.push(Loss { backend, dialect, profile: route.profile.clone(), lost, span: route.span });
            }
        }
    }
    losses
}
