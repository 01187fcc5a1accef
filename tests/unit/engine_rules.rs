//! Unit tests of `engine::rules`.

use super::*;
use crate::diagnostics::{Findings, Sources};
use crate::domain::emit::EVENTS;
use crate::mapping::language::rule::NamedRules;
use crate::mapping::language::rule_index::Candidates;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{self, YamlKind};
use proptest::prelude::*;

/// Selectors and tests over few names, so that many of them match.
fn condition() -> impl Strategy<Value = String> {
    let selector = prop::sample::select(vec!["$.a", "$.a.b", "$.c", "$.a[0].b", "$.l[*].b", "@.b", "@.a.b", "^.c"]);
    let test =
        prop::sample::select(vec!["exists", "absent", "string", "object", "\"null\"", "x", "[x, y]", "[x, null]", "1"]);
    (selector, test).prop_map(|(selector, test)| format!("{selector:?}: {test}"))
}

/// A group of rules, with or without `each` and event names.
fn rules() -> impl Strategy<Value = String> {
    let event = prop::sample::select(vec!["", "event: e", "event: [e, f]", "event: g"]);
    let rule = (event, prop::collection::vec(condition(), 0..3));
    (any::<bool>(), prop::collection::vec(rule, 1..12)).prop_map(|(each, rules)| {
        let mut text = String::new();
        for (event, conditions) in rules {
            text += "- { emit: [ text: { delta: $.d } ]";
            text += if each { ", each: \"$.l[*]\"" } else { "" };
            text += &if event.is_empty() { String::new() } else { format!(", {event}") };
            let mut unique: Vec<String> = Vec::new();
            for condition in conditions {
                let selector = condition.split(": ").next().unwrap_or_default().to_owned();
                if !unique.iter().any(|other| other.starts_with(&selector)) {
                    unique.push(condition);
                }
            }
            text += &format!(", where: {{ {} }} }}\n", unique.join(", "));
        }
        text
    })
}

fn document() -> impl Strategy<Value = Tree> {
    let leaf = prop::sample::select(vec!["\"x\"", "\"y\"", "null", "1", "{}", "[]"]).prop_map(str::to_owned);
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map("[abcl]", inner, 0..4).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    value.prop_map(|text| Tree::parse(text.as_bytes()).unwrap())
}

/// The rules that match, tried one by one.
fn tried(group: &RuleGroup, name: Option<&str>, cursor: &Cursor) -> Vec<usize> {
    let matches = |position: &usize| {
        let rule = &group.rules[*position];
        let named = rule.event_names.is_empty() || name.is_some_and(|n| rule.event_names.iter().any(|e| e == n));
        named && rule.matches(cursor)
    };
    (0..group.rules.len()).filter(matches).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn an_index_finds_every_rule_that_matches(
        text in rules(),
        document in document(),
        name in prop::sample::select(vec![None, Some("e"), Some("f"), Some("g"), Some("h")]),
    ) {
        let mut sources = Sources::default();
        let file = sources.add("rules", "rules", text.as_str().into());
        let findings = Findings::default();
        let node = yaml::parse(file, &text, &findings).unwrap();
        let YamlKind::List(nodes) = &node.kind else { panic!("not a list") };
        let cx = LoadContext { sources: &sources, findings: &findings, budget: &crate::domain::WorkBudget::default(), selectors: Default::default() };
        let event_name = Selector::parse("$.type", node.span, cx);
        let set = RuleSet::parse(&EVENTS, event_name, nodes, &Tables::default(), &NamedRules::default(), cx);
        prop_assert_eq!(set.groups.iter().map(|group| group.rules.len()).sum::<usize>(), nodes.len());

        for group in &set.groups {
            let applies = |rule: &Rule| {
                rule.event_names.is_empty() || name.is_some_and(|n| rule.event_names.iter().any(|e| e == n))
            };
            let indexed = Candidates::new(&group.rules, applies, 0);
            let mut cursor = Cursor::new(&document);
            let elements = group.each.as_ref().map_or_else(Vec::new, |each| each.many(&cursor).collect());
            let depth = elements.len().max(1);
            for element in 0..depth {
                if let Some((node, path)) = elements.get(element) {
                    cursor.enter(node, path.clone());
                }
                let found = indexed.of_node(&cursor);
                let matching: Vec<usize> =
                    found.iter().copied().filter(|position| group.rules[*position].matches(&cursor)).collect();
                prop_assert_eq!(matching, tried(group, name, &cursor));
                prop_assert_eq!(&group.index.of_event(name).rules, &indexed.rules);
                if !elements.is_empty() {
                    cursor.leave();
                }
            }
        }
    }
}
