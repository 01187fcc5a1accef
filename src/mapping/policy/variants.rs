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
mod tests {
    use super::*;

    fn choice(header: &str, words: usize) -> HeaderChoice {
        let words = (0..words).map(|n| format!("word{n}")).collect();
        HeaderChoice { header: header.into(), policy: "p".into(), words, span: Span::NOWHERE }
    }

    #[test]
    fn index_and_chosen_words_are_inverse() {
        let choices = vec![choice("a", 3), choice("b", 2), choice("c", 1)];
        assert_eq!(VariantGroup::count(&choices), Some(4 * 3 * 2));
        let group = VariantGroup { agent: None, choices: choices.clone(), variants: Vec::new() };
        for at in 0..24 {
            assert_eq!(group.index_of(&VariantGroup::chosen_words(&choices, at)), at);
        }
        assert_eq!(VariantGroup::chosen_words(&choices, 0), [None, None, None]);
    }

    #[test]
    fn the_first_matching_user_agent_rule_is_used() {
        let of = |agent: Option<AgentMatch>| VariantGroup { agent, choices: Vec::new(), variants: Vec::new() };
        let known = |word: &str, rule| of(Some(AgentMatch { word: word.into(), rule }));
        let variants = RouteVariants(vec![of(None), known("Cottage/2", 0), known("cottage", 1)]);
        let rule = |agent: &str| variants.rule(|_| Some(agent.to_owned()));
        assert_eq!(rule("app cottage/2.1"), Some(0));
        assert_eq!(rule("COTTAGE/1"), Some(1));
        assert_eq!(rule("cott"), None);
        assert_eq!(variants.rule(|_| None), None);
    }

    #[test]
    fn a_client_is_described_by_its_headers() {
        let agent = Some(AgentMatch { word: "app".into(), rule: 0 });
        let group = VariantGroup { agent, choices: vec![choice("a", 2)], variants: Vec::new() };
        assert_eq!(group.client(2), " for a client that sends `user-agent: app` and `a: word1`");
    }

    #[test]
    fn an_overflowing_count_is_none() {
        let choices: Vec<HeaderChoice> = (0..64).map(|_| choice("a", 3)).collect();
        assert_eq!(VariantGroup::count(&choices), None);
    }
}
