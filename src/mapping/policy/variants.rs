//! What the clients of a route can get: one compiled dialect for each rule by user agent and each choice by header. All of
//! them are made when a set is loaded, and those that are the same once; a request only picks.

use super::resolve::Resolved;
use crate::diagnostics::Span;
use crate::mapping::config::dialect::DialectPlan;
use std::sync::Arc;

/// Of a route. The first group is for clients whom no rule knows, the others are in the order of the rules.
#[derive(Debug, Default)]
pub struct Variants(pub(crate) Vec<Group>);

/// What the clients of one rule can choose from.
#[derive(Debug)]
pub(crate) struct Group {
    /// None: whoever is left.
    pub agent: Option<Agent>,
    pub choices: Vec<Choice>,
    /// By the words that the headers say; see `Group::at`.
    pub variants: Vec<Variant>,
}

/// A word of a rule by user agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub word: String,
    /// The place of the rule in `by_user_agent:`.
    pub rule: usize,
}

/// A header with which a client chooses.
#[derive(Clone, Debug)]
pub struct Choice {
    pub header: String,
    pub policy: String,
    pub words: Vec<String>,
    /// Where the route allows it.
    pub span: Span,
}

/// What one kind of client gets.
#[derive(Debug)]
pub struct Variant {
    /// Who set what for this client; another client may get the same dialect for other reasons.
    pub resolved: Resolved,
    pub plan: Arc<DialectPlan>,
}

/// A header that nobody said, or the place of its word.
pub(crate) type Said = Option<usize>;

/// The header that rules by user agent read.
pub const USER_AGENT: &str = "user-agent";

impl Variants {
    /// For clients that no rule knows and that choose nothing.
    pub fn plain(&self) -> Option<&Variant> {
        self.0.first()?.variants.first()
    }

    /// What they get.
    pub fn base(&self) -> Option<&Arc<DialectPlan>> {
        Some(&self.plain()?.plan)
    }

    /// Each compiled dialect that a client can get, and which client that is.
    pub fn reachable(&self) -> Vec<(&Arc<DialectPlan>, String)> {
        let mut found: Vec<(&Arc<DialectPlan>, String)> = Vec::new();
        for group in &self.0 {
            for (at, variant) in group.variants.iter().enumerate() {
                if !found.iter().any(|(plan, _)| Arc::ptr_eq(plan, &variant.plan)) {
                    found.push((&variant.plan, group.client(at)));
                }
            }
        }
        found
    }
}

/// Is the word in a client's user agent? Upper and lower case are one, and nothing is in nobody's.
pub(crate) fn agent_has(user_agent: &str, word: &str) -> bool {
    let (text, word) = (user_agent.as_bytes(), word.as_bytes());
    !word.is_empty() && text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

impl Group {
    /// How many variants it has: every header may be silent, or say one of its words. None: more than can be counted.
    pub fn count(choices: &[Choice]) -> Option<usize> {
        choices.iter().try_fold(1_usize, |n, choice| n.checked_mul(choice.words.len() + 1))
    }

    /// The other way round.
    pub fn said(choices: &[Choice], mut at: usize) -> Vec<Said> {
        let digit = |choice: &Choice| {
            let base = choice.words.len() + 1;
            let digit = at % base;
            at /= base;
            digit.checked_sub(1)
        };
        choices.iter().map(digit).collect()
    }

    /// ` for a client that sends …`; nothing for one that sends nothing of interest.
    fn client(&self, at: usize) -> String {
        let agent = self.agent.iter().map(|agent| format!("`{USER_AGENT}: {}`", agent.word));
        let said = Group::said(&self.choices, at);
        let headers = self.choices.iter().zip(said).filter_map(|(choice, said)| {
            let word = choice.words.get(said?)?;
            Some(format!("`{}: {word}`", choice.header))
        });
        let sent: Vec<String> = agent.chain(headers).collect();
        if sent.is_empty() { String::new() } else { format!(" for a client that sends {}", sent.join(" and ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(header: &str, words: usize) -> Choice {
        let words = (0..words).map(|n| format!("word{n}")).collect();
        Choice { header: header.into(), policy: "p".into(), words, span: Span::NOWHERE }
    }

    #[test]
    fn every_place_is_what_its_headers_say() {
        let choices = vec![choice("a", 3), choice("b", 2), choice("c", 1)];
        assert_eq!(Group::count(&choices), Some(4 * 3 * 2));
        let group = Group { agent: None, choices: choices.clone(), variants: Vec::new() };
        for at in 0..24 {
            assert_eq!(group.at(&Group::said(&choices, at)), at);
        }
        assert_eq!(Group::said(&choices, 0), [None, None, None]);
    }

    #[test]
    fn the_rule_that_is_told_is_the_one_that_was_taken() {
        let of = |agent: Option<Agent>| Group { agent, choices: Vec::new(), variants: Vec::new() };
        let known = |word: &str, rule| of(Some(Agent { word: word.into(), rule }));
        let variants = Variants(vec![of(None), known("Cottage/2", 0), known("cottage", 1)]);
        let rule = |agent: &str| variants.rule(|_| Some(agent.to_owned()));
        assert_eq!(rule("app cottage/2.1"), Some(0));
        assert_eq!(rule("COTTAGE/1"), Some(1));
        assert_eq!(rule("cott"), None);
        assert_eq!(variants.rule(|_| None), None);
    }

    #[test]
    fn a_client_is_told_by_what_it_sends() {
        let agent = Some(Agent { word: "app".into(), rule: 0 });
        let group = Group { agent, choices: vec![choice("a", 2)], variants: Vec::new() };
        assert_eq!(group.client(2), " for a client that sends `user-agent: app` and `a: word1`");
    }

    #[test]
    fn too_many_to_count_are_not_counted() {
        let choices: Vec<Choice> = (0..64).map(|_| choice("a", 3)).collect();
        assert_eq!(Group::count(&choices), None);
    }
}
