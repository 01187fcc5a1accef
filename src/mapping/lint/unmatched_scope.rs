//! A scope of an API key that matches nothing.
//!
//! ## Why
//!
//! `models` and `routes` of an API key list what it allows. A name that no model has, or a path that nothing serves,
//! allows nothing: the clients of the key get errors for requests that were meant to be allowed.
//!
//! ## Example
//!
//! ```yaml
//! models: [ { id: demo, backend: demo } ]
//! api_keys:
//!   - { name: team, secret: { env: TEAM_KEY }, models: [ demmo ] }
//! ```
//!
//! ```text
//! warning[RF212]: the API key allows the model `demmo`, which no model of the gateway matches
//! ```
//!
//! ## Fix
//!
//! Correct the name or the path, or remove it from the list.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic, or_list};
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::gateway_paths::DOCS_PATHS;
use crate::mapping::config::models::ModelMatch;
use crate::mapping::source::yaml::Node;

/// Names in a help line.
const MAX_NAMES: usize = 5;

pub(super) fn check(context: &LintContext) {
    let Some(keys) = context.files.gateway().and_then(|gateway| gateway.get("api_keys")) else { return };
    let gateway = &context.plan.gateway;
    let models: Vec<Allowed> = gateway.models.iter().map(|model| Allowed::model(&model.matches)).collect();
    let routes = paths(gateway);
    for key in keys.as_list_or_one() {
        report(context, key.get("models"), &models, "model", "which no model of the gateway matches");
        report(context, key.get("routes"), &routes, "route", "which the gateway does not serve");
    }
}

fn report(context: &LintContext, scope: Option<&Node>, known: &[Allowed], what: &str, why: &str) {
    let patterns = scope.map_or(&[][..], Node::as_list_or_one).iter();
    for (node, pattern) in patterns.filter_map(|node| Some((node, node.as_text()?))) {
        let asked = Allowed::of(pattern, '*');
        if known.is_empty() || known.iter().any(|known| known.overlaps(&asked)) {
            continue;
        }
        let message = format!("the API key allows the {what} `{pattern}`, {why}");
        let names: Vec<String> = known.iter().take(MAX_NAMES).map(Allowed::text).collect();
        let help = format!("for example {}", or_list(names.iter().map(String::as_str)));
        context.cx.add(Diagnostic::new(Code::UnmatchedScope, node.span, message).help(help));
    }
}

/// A name, or the names with a prefix.
struct Allowed {
    text: String,
    is_prefix: bool,
}

impl Allowed {
    /// A text, or the prefix before a character in it.
    fn of(text: &str, end: char) -> Allowed {
        let (prefix, is_prefix) = text.split_once(end).map_or((text, false), |(prefix, _)| (prefix, true));
        Allowed { text: prefix.to_owned(), is_prefix }
    }

    fn model(matches: &ModelMatch) -> Allowed {
        match matches {
            ModelMatch::Id(id) => Allowed { text: id.clone(), is_prefix: false },
            ModelMatch::Prefix(prefix) => Allowed { text: prefix.clone(), is_prefix: true },
        }
    }

    fn overlaps(&self, other: &Allowed) -> bool {
        match (self.is_prefix, other.is_prefix) {
            (false, false) => self.text == other.text,
            (true, false) => other.text.starts_with(&self.text),
            (false, true) => self.text.starts_with(&other.text),
            (true, true) => self.text.starts_with(&other.text) || other.text.starts_with(&self.text),
        }
    }

    fn text(&self) -> String {
        format!("`{}{}`", self.text, if self.is_prefix { "*" } else { "" })
    }
}

/// The paths that the gateway serves, up to their first parameter.
fn paths(gateway: &GatewayPlan) -> Vec<Allowed> {
    let routes = gateway.routes.iter().map(|route| route.path.as_str());
    let static_routes = gateway.static_routes.iter().map(|route| route.path.as_str());
    let own = gateway.metrics.as_deref().into_iter().chain(gateway.status_path()).chain(DOCS_PATHS);
    routes.chain(static_routes).chain(own).map(|path| Allowed::of(path, '{')).collect()
}
