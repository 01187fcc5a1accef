//! The variants of a route: the policies for each user-agent rule or profile header, each combination of policy headers
//! and each rule of `choose:`, with their compiled dialect. All are compiled when a set is loaded, equal ones once;
//! variants that differ only in policies that expressions read share one. A request only selects one.

use super::resolve::ResolvedPolicies;
use crate::diagnostics::Span;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::config::route_choose::ChooseConditions;
use crate::mapping::config::route_headers::UnknownHeaderValue;
use std::sync::Arc;

/// The variants of a route. The first group is for clients that match no user-agent rule; the others follow the order
/// of the rules, then of the profiles that a header selects.
#[derive(Debug, Default)]
pub struct RouteVariants(pub(crate) Vec<VariantGroup>);

/// The variants for the clients of one user-agent rule, or of one profile.
#[derive(Debug, Default)]
pub(crate) struct VariantGroup {
    /// `None`: clients that match no rule.
    pub agent: Option<AgentMatch>,
    /// The profile that the client named in a header.
    pub profile: Option<ProfileMatch>,
    pub choices: Vec<HeaderChoice>,
    /// The conditions of `choose:`.
    pub choose: Option<ChooseConditions>,
    /// Indexed by the rule of `choose:` and the values of the headers; see `VariantGroup::index_of`.
    pub variants: Vec<RouteVariant>,
}

/// The value of a header that selects a profile.
#[derive(Clone, Debug)]
pub(crate) struct ProfileMatch {
    pub header: String,
    pub profile: String,
    pub unknown: UnknownHeaderValue,
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
    /// Other words for values: word and value.
    pub aliases: Vec<(String, String)>,
    pub unknown: UnknownHeaderValue,
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

/// A dialect that a client can get: the route, the dialect, and a description of the first such client.
pub type ReachableDialect<'p> = (&'p RoutePlan, &'p Arc<DialectPlan>, String);

/// Each compiled dialect that a client of these routes can get, once.
pub fn reachable_dialects<'p>(routes: impl IntoIterator<Item = &'p RoutePlan>) -> Vec<ReachableDialect<'p>> {
    reachable(routes, |dialect, found| found.iter().any(|other| other.shares_compiled(dialect)))
}

/// The same, and further ones until each value of each open policy occurs.
pub fn reachable_values<'p>(routes: impl IntoIterator<Item = &'p RoutePlan>) -> Vec<ReachableDialect<'p>> {
    reachable(routes, |dialect, found| {
        let same: Vec<_> = found.iter().filter(|other| other.shares_compiled(dialect)).collect();
        let is_known = |name: &String| {
            let value = |dialect: &DialectPlan| dialect.resolved.policies.text(name);
            same.iter().any(|other| value(other) == value(dialect))
        };
        !same.is_empty() && dialect.open_policies.iter().all(is_known)
    })
}

fn reachable<'p>(
    routes: impl IntoIterator<Item = &'p RoutePlan>,
    is_covered: impl Fn(&DialectPlan, &[&'p Arc<DialectPlan>]) -> bool,
) -> Vec<ReachableDialect<'p>> {
    let mut found: Vec<ReachableDialect> = Vec::new();
    let mut dialects: Vec<&Arc<DialectPlan>> = Vec::new();
    for route in routes {
        for group in &route.variants.0 {
            for (at, variant) in group.variants.iter().enumerate() {
                if !is_covered(&variant.plan, &dialects) {
                    dialects.push(&variant.plan);
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
        let profile = self.profile.iter().map(|p| format!("`{}: {}`", p.header, p.profile));
        let chosen = VariantGroup::chosen_words(&self.choices, at);
        let headers = self.choices.iter().zip(chosen).filter_map(|(choice, chosen)| {
            let word = choice.words.get(chosen?)?;
            Some(format!("`{}: {word}`", choice.header))
        });
        let headers_count = VariantGroup::count(&self.choices).unwrap_or(1);
        let rule =
            (at / headers_count).checked_sub(1).map(|rule| format!("what rule {} of `choose:` matches", rule + 1));
        let sent: Vec<String> = agent.chain(profile).chain(headers).chain(rule).collect();
        if sent.is_empty() { String::new() } else { format!(" for a client that sends {}", sent.join(" and ")) }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_policy_variants.rs"]
mod tests;
