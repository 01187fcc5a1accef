//! Unit tests of `mapping::policy::variants`.

use super::*;

fn choice(header: &str, words: usize) -> HeaderChoice {
    let words = (0..words).map(|n| format!("word{n}")).collect();
    let (aliases, unknown) = (Vec::new(), UnknownHeaderValue::Reject);
    HeaderChoice { header: header.into(), policy: "p".into(), words, aliases, unknown, span: Span::NOWHERE }
}

#[test]
fn index_and_chosen_words_are_inverse() {
    let choices = vec![choice("a", 3), choice("b", 2), choice("c", 1)];
    assert_eq!(VariantGroup::count(&choices), Some(4 * 3 * 2));
    let group = VariantGroup { choices: choices.clone(), ..VariantGroup::default() };
    for at in 0..24 {
        assert_eq!(group.index_of(&VariantGroup::chosen_words(&choices, at)), at);
    }
    assert_eq!(VariantGroup::chosen_words(&choices, 0), [None, None, None]);
}

#[test]
fn the_first_matching_user_agent_rule_is_used() {
    let of = |agent: Option<AgentMatch>| VariantGroup { agent, ..VariantGroup::default() };
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
    let group = VariantGroup { agent, choices: vec![choice("a", 2)], ..VariantGroup::default() };
    assert_eq!(group.client(2), " for a client that sends `user-agent: app` and `a: word1`");
}

#[test]
fn an_overflowing_count_is_none() {
    let choices: Vec<HeaderChoice> = (0..64).map(|_| choice("a", 3)).collect();
    assert_eq!(VariantGroup::count(&choices), None);
}
