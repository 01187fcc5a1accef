//! The variants of a route: one compiled dialect for each user-agent rule and each combination of policy headers. All
//! are compiled when a set is loaded, equal ones once; a request only selects one.

use super::resolve::ResolvedPolicies;
use crate::diagnostics::Span;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;
use std::sync::Arc;

/// The variants of a route. The first group is for clients that match no user-agent rule; the others follow the order
/// of the rules.
#[derive(Debug, Default)]
pub struct RouteVariants(pub(crate) Vec<VariantGroup>);

/// The variants for the clients of one user-agent rule.
#[derive(Debug)]
pub(crate) struct VariantGroup {
    /// `None`: clients that match no rule.
    pub agent: Option<AgentMatch>,
    pub choices: Vec<HeaderChoice>,
    /// Indexed by the values of the headers; see `VariantGroup::at`.
    pub variants: Vec<RouteVariant>,
}

/// The text of a user-agent rule.
#[derive(Debug)]
pub(crate) struct AgentMatch {
    pub word: String,
    /// The index of the rule in `by_user_agent:`.
    pub rule: usize,
}

/// A request header that sets a policy.
#[derive(Clone, Debug)]
pub struct HeaderChoice {
    pub header: String,
    pub policy: String,
    pub words: Vec<String>,
    /// Where the route allows it.
    pub span: Span,
}

/// The compiled dialect for one kind of client.
#[derive(Debug)]
pub struct RouteVariant {
    /// The settings for this client. Another client may get the same dialect by other settings.
    pub resolved: ResolvedPolicies,
    pub plan: Arc<DialectPlan>,
}

/// The index of a header's value among its words; `None` if the header is absent.
pub(crate) type ChosenWord = Option<usize>;

/// The header that user-agent rules read.
pub const USER_AGENT: &str = "user-agent";

impl RouteVariants {
    /// For clients that match no user-agent rule and send no policy header.
    pub fn default_variant(&self) -> Option<&RouteVariant> {
        self.0.first()?.variants.first()
    }

    /// The dialect of the default variant.
    pub fn default_dialect(&self) -> Option<&Arc<DialectPlan>> {
        Some(&self.default_variant()?.plan)
    }
}

/// Each compiled dialect that a client of these routes can get, once, with a description of the first such client.
pub fn reachable_dialects<'p>(
    routes: impl IntoIterator<Item = &'p RoutePlan>,
) -> Vec<(&'p RoutePlan, &'p Arc<DialectPlan>, String)> {
    let mut found: Vec<(&RoutePlan, &Arc<DialectPlan>, String)> = Vec::new();
    for route in routes {
        for group in &route.variants.0 {
            for (at, variant) in group.variants.iter().enumerate() {
                if !found.iter().any(|(_, dialect, _)| Arc::ptr_eq(dialect, &variant.plan)) {
                    found.push((route, &variant.plan, group.client(at)));
                }
            }
        }
    }
    found
}

/// Case-insensitive search; an empty word matches nothing.
pub(crate) fn user_agent_contains(user_agent: &str, word: &str) -> bool {
    let (text, word) = (user_agent.as_bytes(), word.as_bytes());
    !word.is_empty() && text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

impl VariantGroup {
    /// The number of variants: every header is absent or has one of its words. `None` on overflow.
    pub fn count(choices: &[HeaderChoice]) -> Option<usize> {
        choices.iter().try_fold(1_usize, |n, choice| n.checked_mul(choice.words.len() + 1))
    }

    /// The inverse of `VariantGroup::at`.
    pub fn chosen_words(choices: &[HeaderChoice], mut at: usize) -> Vec<ChosenWord> {
        let digit = |choice: &HeaderChoice| {
            let base = choice.words.len() + 1;
            let digit = at % base;
            at /= base;
            digit.checked_sub(1)
        };
        choices.iter().map(digit).collect()
    }

    /// ` for a client that sends …`; empty for the default variant.
    fn client(&self, at: usize) -> String {
        let agent = self.agent.iter().map(|agent| format!("`{USER_AGENT}: {}`", agent.word));
        let chosen = VariantGroup::chosen_words(&self.choices, at);
        let headers = self.choices.iter().zip(chosen).filter_map(|(choice, chosen)| {
            let word = choice.words.get(chosen?)?;
            Some(format!("`{}: {word}`", choice.header))
        });
        let sent: Vec<String> = agent.chain(headers).collect();
        if sent.is_empty() { String::new() } else { format!(" for a client that sends {}", sent.join(" and ")) }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_policy_variants.rs"]
mod tests;
