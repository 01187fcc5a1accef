//! Unit tests of `engine::event_cache`.

use super::*;
use crate::diagnostics::{Findings, Sources};
use crate::domain::WorkBudget;
use crate::domain::emit::EVENTS;
use crate::engine::rules::RuleOutput;
use crate::mapping::language::rule::{NamedRules, RuleSet};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{self, YamlKind};
use proptest::prelude::*;

fn rule_set(text: &str) -> RuleSet {
    let mut sources = Sources::default();
    let file = sources.add("rules", "rules", text.into());
    let findings = Findings::default();
    let node = yaml::parse(file, text, &findings).unwrap();
    let YamlKind::List(nodes) = &node.kind else { panic!("not a list") };
    let cx = LoadContext {
        sources: &sources,
        findings: &findings,
        budget: &WorkBudget::default(),
        selectors: Default::default(),
    };
    let event_name = Selector::parse("$.type", node.span, cx);
    RuleSet::parse(&EVENTS, event_name, nodes, &Tables::default(), &NamedRules::default(), cx)
}

/// Selectors over few names, so that many of them meet.
fn selector() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "$.a",
        "$.a.b",
        "$.c",
        "$.l[0].b",
        "@.b",
        "@.c",
        "@.a.b",
        "^.c",
        "$.l[?@.c == 'x'].b",
        "$..b",
        "$.l[-1].c",
    ])
}

fn emission() -> impl Strategy<Value = String> {
    let field = selector().prop_map(|selector| format!("{selector:?}"));
    let fields = prop::collection::vec(field, 4);
    (0..6_usize, fields).prop_map(|(kind, fields)| match kind {
        0 => format!("text: {{ delta: {} }}", fields[0]),
        1 => format!("text: {{ delta: {{ from: [{}, {}] }}, item: {} }}", fields[0], fields[1], fields[2]),
        2 => format!(
            "tool: {{ key: {}, name: {}, delta: {{ from: {}, as: json_text }} }}",
            fields[0], fields[1], fields[2]
        ),
        3 => format!("reasoning: {{ whole: {} }}", fields[0]),
        4 => format!("start: {{ id: {}, model: {} }}", fields[0], fields[1]),
        _ => format!("text: {{ delta: {{ from: {}, as: lower }} }}", fields[0]),
    })
}

fn rules() -> impl Strategy<Value = String> {
    let test = prop::sample::select(vec!["exists", "absent", "string", "number", "x", "[x, y]", "1"]);
    let rule = (selector(), test, any::<bool>(), any::<bool>(), prop::collection::vec(emission(), 1..3));
    prop::collection::vec(rule, 1..5).prop_map(|rules| {
        let mut text = String::new();
        for (selector, test, each, event, emissions) in rules {
            let each = if each { ", each: \"$.l[*]\"" } else { "" };
            let event = if event { ", event: x" } else { "" };
            text += &format!("- {{ where: {{ {selector:?}: {test} }}{each}{event}, emit: [");
            text += &emissions.iter().map(|emission| format!(" {{ {emission} }}")).collect::<Vec<_>>().join(",");
            text += " ] }\n";
        }
        text
    })
}

fn document() -> impl Strategy<Value = Tree> {
    let leaf = prop::sample::select(vec!["\"x\"", "\"y\"", "\"z\"", "null", "1", "2"]).prop_map(str::to_owned);
    let map = |leaf| {
        prop::collection::btree_map("[abc]", leaf, 0..4).prop_map(|members| {
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        })
    };
    let inner = prop_oneof![leaf.clone(), map(leaf.clone().boxed())].boxed();
    let elements = prop::collection::vec(map(inner.clone()), 0..3);
    (leaf, inner.clone(), inner, elements).prop_map(|(name, a, c, elements)| {
        let text = format!(r#"{{"type":{name},"a":{a},"c":{c},"l":[{}],"o":[1,"x"]}}"#, elements.join(","));
        Tree::parse(text.as_bytes()).unwrap()
    })
}

/// The paths of all strings and numbers.
fn scalars(tree: &Tree, path: &mut Vec<ShapeStep>, found: &mut Vec<Vec<ShapeStep>>) {
    match tree {
        Tree::Map(members) => members.iter().for_each(|(name, member)| {
            path.push(ShapeStep::Member(name.to_string()));
            scalars(member, path, found);
            path.pop();
        }),
        Tree::List(elements) => elements.iter().enumerate().for_each(|(at, element)| {
            path.push(ShapeStep::Element(at));
            scalars(element, path, found);
            path.pop();
        }),
        Tree::Str(_) | Tree::Num(_) => found.push(path.clone()),
        Tree::Null | Tree::Bool(_) | Tree::SurrogateString(_) => {}
    }
}

/// What was emitted, without the texts of deltas, or what starts a turn, if they may differ.
fn shown(output: &RuleOutput, with_deltas: bool, with_starts: bool) -> String {
    let emissions = output.emissions.iter().filter(|emission| with_starts || emission.name != "start");
    let emissions = emissions.map(|emission| {
        let kept = |(name, _): &&(&'static str, Tree)| with_deltas || *name != "delta";
        format!("{} {:?}", emission.name, emission.fields.iter().filter(kept).collect::<Vec<_>>())
    });
    let unread: Vec<_> = output.unread.iter().map(|unread| (unread.name, unread.is_lost)).collect();
    let emissions: Vec<String> = emissions.collect();
    format!("{emissions:?} {} {:?} {:?} {unread:?}", output.matched, output.unknown, output.dropped)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// Another value in a gap changes nothing but the text of a delta, or what starts a turn.
    #[test]
    fn values_that_are_not_read_change_nothing(text in rules(), document in document()) {
        let set = rule_set(&text);
        let reads = set.value_reads();
        let mut paths = Vec::new();
        scalars(&document, &mut Vec::new(), &mut paths);
        let before = set.apply(&document);
        for path in paths.iter().filter(|path| !reads.fixed.reads(path)) {
            for other in ["x", "other"].map(Tree::from).into_iter().chain([1, 77].map(|n: i64| Tree::from(n))) {
                let mut varied = document.clone();
                let node = node_at(&mut varied, path).unwrap();
                if node.type_name() != other.type_name() {
                    continue;
                }
                *node = other;
                let (is_delta, is_start) = (reads.deltas.reads(path), reads.starts.reads(path));
                let shown = |output: &RuleOutput| shown(output, !is_delta, !is_start);
                prop_assert_eq!(shown(&before), shown(&set.apply(&varied)), "{:?}", path);
            }
        }
    }
}

fn reads(rules: &str, path: &[&str]) -> (bool, bool) {
    let reads = rule_set(rules).value_reads();
    let step = |step: &&str| step.parse().map_or_else(|_| ShapeStep::Member((*step).to_owned()), ShapeStep::Element);
    let path: Vec<ShapeStep> = path.iter().map(step).collect();
    (reads.fixed.reads(&path), reads.deltas.reads(&path))
}

#[test]
fn the_text_of_a_delta_is_not_fixed_and_what_selects_it_is() {
    let rules = r#"
- { each: "$.l[*]", where: { "@.d": object, "@.role": [ a, b ] }, emit: [ { text: { choice: "@.index", delta: "@.d.text" } } ] }
"#;
    assert_eq!(reads(rules, &["l", "0", "d", "text"]), (false, true));
    assert_eq!(reads(rules, &["l", "3", "index"]), (true, false));
    assert_eq!(reads(rules, &["l", "0", "role"]), (true, false));
    assert_eq!(reads(rules, &["l", "0", "other"]), (false, false));
    assert_eq!(reads(rules, &["type"]), (true, false));
    assert_eq!(reads(rules, &["seq"]), (false, false));
}

#[test]
fn a_filter_that_looks_elsewhere_fixes_everything() {
    let rules = r#"- { each: "$.l[?@.a == $.b]", emit: [ { text: { delta: "@.text" } } ] }"#;
    assert_eq!(reads(rules, &["o"]), (true, false));
}

#[test]
fn what_starts_a_turn_is_a_use_of_its_own() {
    let rules =
        r#"- { emit: [ { start: { id: $.id, model: $.m } }, { text: { delta: $.id } }, { text: { delta: $.t } } ] }"#;
    let reads = rule_set(rules).value_reads();
    let path = |name: &str| [ShapeStep::Member(name.to_owned())];
    let uses = |name: &str| {
        let path = path(name);
        (reads.fixed.reads(&path), reads.starts.reads(&path), reads.deltas.reads(&path))
    };
    assert_eq!(uses("m"), (false, true, false));
    // In a shape it stays constant: whether it has a text decides what is emitted.
    assert_eq!(uses("id"), (false, true, true));
    assert_eq!(uses("t"), (false, false, true));
}
