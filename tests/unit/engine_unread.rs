//! Unit tests of `engine::unread`.

use super::*;
use crate::diagnostics::{Findings, Sources, Span};
use crate::domain::WorkBudget;
use crate::domain::emit::EVENTS;
use crate::engine::emission_budget::EmissionBudget;
use crate::mapping::language::rule::{NamedRules, RuleSet};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml;

/// What rules do not read of a document.
fn unread(rules: &str, document: &str) -> Vec<String> {
    let mut sources = Sources::default();
    let file = sources.add("rules.yaml", "rules.yaml", rules.into());
    let (findings, budget) = (Findings::default(), WorkBudget::default());
    let cx = LoadContext { sources: &sources, findings: &findings, budget: &budget, selectors: Default::default() };
    let node = yaml::parse(file, rules, &findings).unwrap();
    let rules = RuleSet::parse(&EVENTS, None, node.as_list_or_one(), &Tables::default(), &NamedRules::default(), cx);
    assert_eq!(findings.errors(), 0);
    let document = Tree::parse(document.as_bytes()).unwrap();
    let mut always_read = ReadTree::default();
    rules.add_always_read(&mut always_read);
    let mut record = ReadRecord::default();
    rules.apply_recorded(&document, EmissionBudget::default(), &mut record);
    record.unread(&document, &always_read)
}

#[test]
fn what_no_rule_reads_is_found_with_its_place() {
    let rules = "- { each: '$.l[*]', where: { '@.t': text }, emit: [ text: { delta: '@.v' } ] }";
    let document =
        r#"{ "l": [{ "t": "text", "v": "a", "x": 1 }, { "t": "text", "y": { "z": [] , "w": 2 } }], "m": 3 }"#;
    assert_eq!(unread(rules, document), ["l[0].x", "l[1].y", "m"]);
}

#[test]
fn a_member_is_read_only_where_its_rule_matches() {
    let rules = "
- { each: '$.l[*]', where: { '@.t': a }, emit: [ text: { delta: '@.v' } ] }
- { each: '$.l[*]', where: { '@.t': b }, emit: [ text: { delta: '@.w' } ] }";
    let document = r#"{ "l": [{ "t": "a", "v": "1", "w": "2" }, { "t": "b", "v": "3", "w": "4" }] }"#;
    assert_eq!(unread(rules, document), ["l[0].w", "l[1].v"]);
}

#[test]
fn nulls_and_empty_values_are_no_loss() {
    let rules = "- { emit: [ text: { delta: $.v } ] }";
    assert_eq!(unread(rules, r#"{ "v": "a", "n": null, "e": [], "o": {}, "z": 0 }"#), ["z"]);
}

#[test]
fn inner_lists_and_parents_are_read() {
    let rules = "- { each: '$.l[*]', emit: [ { each: '@.c[*]', text: { delta: '@.v', item: '^.i' } } ] }";
    let document = r#"{ "l": [{ "i": "1", "c": [{ "v": "a", "x": 1 }], "y": 2 }] }"#;
    assert_eq!(unread(rules, document), ["l[0].c[0].x", "l[0].y"]);
}

#[test]
fn an_element_that_is_dropped_as_a_part_may_be_read_as_a_call() {
    let rules = "
- { each: '$.l[*]', emit: [ { each: '@.c[*]', tool: { id: '@.use.id', name: '@.use.name', delta: '@.use.in' } } ] }
- { each: '$.l[*].c[*]', where: { '@.use': object }, drop: read as a call }
- { each: '$.l[*].c[*]', where: { '@.note': string }, drop: a note }";
    let document = r#"{ "l": [{ "c": [{ "use": { "id": "1", "name": "f", "in": "{}", "x": 1 } }] }] }"#;
    assert_eq!(unread(rules, document), ["l[0].c[0].use.x"]);
}

#[test]
fn filters_and_descendants_read_what_they_name() {
    let rules = "- { emit: [ text: { delta: \"$.l[?@.t == 'x'].v\" }, usage: { input: '$..tokens' } ] }";
    let document = r#"{ "l": [{ "t": "x", "v": "a", "w": 1 }], "a": { "b": { "tokens": 3, "c": 4 } } }"#;
    assert_eq!(unread(rules, document), ["l[0].w", "a.b.c"]);
}

#[test]
fn a_dropped_element_is_reported_whole_unless_another_rule_reads_it() {
    let rules = "
- { each: '$.l[*]', where: { '@.t': a }, drop: no use }
- { each: '$.l[*]', otherwise: true, emit: [ text: { delta: '@.v' } ] }
- { each: '$.m[*]', drop: no use }
- { where: { $.v: exists }, emit: [ text: { delta: $.v } ] }
- { each: '$.m[*]', emit: [ text: { delta: '@.v' } ] }";
    let document = r#"{ "l": [{ "t": "a", "v": "1" }, { "t": "b", "v": "2" }], "m": [{ "v": "3" }] }"#;
    assert_eq!(unread(rules, document), ["l[0]"]);
}

#[test]
fn the_number_of_paths_is_limited() {
    let members: Vec<String> = (0..5_000).map(|n| format!("\"m{n}\": 1")).collect();
    let found = unread("- { emit: [ text: { delta: $.v } ] }", &format!("{{ {} }}", members.join(", ")));
    assert_eq!(found.len(), MAX_UNREAD);
}

#[test]
fn ignored_selectors_count_as_read() {
    let (findings, budget, sources) = (Findings::default(), WorkBudget::default(), Sources::default());
    let cx = LoadContext { sources: &sources, findings: &findings, budget: &budget, selectors: Default::default() };
    let mut ignored = ReadTree::default();
    ignored.add_whole(&Selector::parse("$.l[*].x", Span::NOWHERE, cx).unwrap());
    let document = Tree::parse(br#"{ "l": [{ "x": { "deep": 1 }, "y": 2 }] }"#).unwrap();
    assert_eq!(ReadRecord::default().unread(&document, &ignored), ["l[0].y"]);
}
