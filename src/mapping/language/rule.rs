//! Rules: `each` / `where` / `emit`, the same for a backend's events and for a client's request.
//!
//! All matching rules fire, in file order, and emit in list order. Adjacent rules with the same `each` form a group and
//! iterate once, element by element, so that the output keeps the order of the input. `drop:` and `fail:` are
//! considered only if no other rule matched, `otherwise: true` only if no earlier rule of its group did.

use super::condition;
use super::condition::Condition;
use super::field::{FieldContext, FieldMapping};
use super::selector::Selector;
use super::table::Tables;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::emit::{EmitGrammar, EmitKind, PARTS};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;

#[derive(Debug)]
pub struct RuleSet {
    pub(crate) grammar: &'static EmitGrammar,
    /// Selects the name of an event, for rules with `event:`.
    pub(crate) event_name: Option<Selector>,
    pub(crate) groups: Vec<RuleGroup>,
}

#[derive(Debug)]
pub(crate) struct RuleGroup {
    pub each: Option<Selector>,
    pub rules: Vec<Rule>,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub span: Span,
    pub event_names: Vec<String>,
    /// Span of `event:`.
    pub event_span: Span,
    pub conditions: Vec<Condition>,
    pub otherwise: bool,
    pub action: RuleAction,
}

#[derive(Debug)]
pub(crate) enum RuleAction {
    Emit(Vec<Emit>),
    Drop(String),
    Fail(String),
}

#[derive(Debug)]
pub(crate) struct Emit {
    pub each: Option<Selector>,
    pub conditions: Vec<Condition>,
    pub kind: &'static EmitKind,
    pub fields: Vec<FieldMapping>,
}

/// Rules with a name, for `use:`.
#[derive(Debug, Default)]
pub struct NamedRules(Vec<(String, Arc<RuleSet>)>);

impl NamedRules {
    pub fn get(&self, name: &str) -> Option<Arc<RuleSet>> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, rules)| rules.clone())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(n, _)| n.as_str())
    }

    pub fn add(&mut self, name: &str, rules: RuleSet) {
        self.0.push((name.to_owned(), Arc::new(rules)));
    }
}

impl RuleSet {
    pub fn parse(
        grammar: &'static EmitGrammar,
        event_name: Option<Selector>,
        nodes: &[Node],
        tables: &Tables,
        named_rules: &NamedRules,
        cx: LoadContext,
    ) -> RuleSet {
        let context = FieldContext { cx, tables, named_rules, lenient: grammar.skip_empty };
        let mut groups: Vec<RuleGroup> = Vec::new();
        for node in nodes {
            let Some((each, rule)) = Rule::parse(grammar, event_name.is_some(), node, &context) else { continue };
            let same = |group: &RuleGroup| match (&group.each, &each) {
                (Some(a), Some(b)) => a.text == b.text,
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            match groups.last_mut() {
                Some(group) if same(group) => group.rules.push(rule),
                _ => groups.push(RuleGroup { each, rules: vec![rule] }),
            }
        }
        RuleSet { grammar, event_name, groups }
    }

    /// Top-level members of the body that the rules read. All others are `request.extra`.
    pub fn root_members(&self) -> Vec<&str> {
        let mut members = Vec::new();
        for group in &self.groups {
            members.extend(group.each.iter().filter_map(Selector::root_member));
            for rule in &group.rules {
                members.extend(rule.conditions.iter().filter_map(|c| c.selector.root_member()));
                if let RuleAction::Emit(emits) = &rule.action {
                    for emit in emits {
                        members.extend(emit.each.iter().filter_map(Selector::root_member));
                        members.extend(emit.conditions.iter().filter_map(|c| c.selector.root_member()));
                        members.extend(
                            emit.fields.iter().flat_map(FieldMapping::selectors).filter_map(Selector::root_member),
                        );
                    }
                }
            }
        }
        members
    }

    pub(crate) fn emits(&self) -> impl Iterator<Item = &Emit> {
        self.groups.iter().flat_map(|g| &g.rules).flat_map(|rule| match &rule.action {
            RuleAction::Emit(emits) => emits.as_slice(),
            RuleAction::Drop(_) | RuleAction::Fail(_) => &[],
        })
    }
}

impl Rule {
    fn parse(
        grammar: &'static EmitGrammar,
        has_event_name: bool,
        node: &Node,
        context: &FieldContext,
    ) -> Option<(Option<Selector>, Rule)> {
        let cx = context.cx;
        let fields = FieldReader::of(node, "a rule", cx)?;
        fields.text("name");
        let each = parse_each(&fields, cx);
        let mut event_names = Vec::new();
        if has_event_name {
            event_names.extend(fields.list("event").iter().filter_map(|n| text_of(n, cx)).map(str::to_owned));
        } else if let Some(entry) = fields.entry("event") {
            cx.add(
                Diagnostic::new(
                    Code::UnknownKey,
                    entry.key_span,
                    "`event:` needs `event_name:`, the selector of an event's name",
                )
                .help("write `event_name: $.type` (or where the name is) next to `rules:`"),
            );
        }
        let event_span = fields.entry("event").map_or(node.span, |entry| entry.key_span);
        let conditions = condition::parse(&fields, cx);
        let otherwise = fields.bool("otherwise").unwrap_or(false);
        let emit = fields.get("emit");
        let drop = fields.text("drop");
        let fail = fields.text("fail");
        let action = match (emit, drop, fail) {
            (Some(list), None, None) => {
                let nodes = match &list.kind {
                    YamlKind::List(nodes) => nodes.as_slice(),
                    _ => std::slice::from_ref(list),
                };
                RuleAction::Emit(nodes.iter().filter_map(|n| Emit::parse(grammar, n, context)).collect())
            }
            (None, Some(why), None) => RuleAction::Drop(why.to_owned()),
            (None, None, Some(why)) => RuleAction::Fail(why.to_owned()),
            _ => {
                let message = "a rule must have exactly one of `emit:`, `drop:` (a reason) and `fail:` (a message)";
                let keys = ["emit", "drop", "fail"];
                fields.not_exactly_one(&keys, Diagnostic::new(Code::MissingKey, node.span, message));
                fields.finish();
                return None;
            }
        };
        fields.finish();
        Some((each, Rule { span: node.span, event_names, event_span, conditions, otherwise, action }))
    }
}

impl Emit {
    fn parse(grammar: &'static EmitGrammar, node: &Node, context: &FieldContext) -> Option<Emit> {
        let cx = context.cx;
        let fields = FieldReader::of(node, format!("an emitted {}", grammar.noun), cx)?;
        let each = parse_each(&fields, cx);
        let conditions = condition::parse(&fields, cx);
        let mut kinds = fields.unread();
        // `ech` next to a valid kind is not a second kind but a typo in `each`.
        let is_kind = |e: &&Entry| grammar.find(&e.key).is_some();
        if kinds.len() > 1 && kinds.iter().filter(|e| is_kind(e)).count() == 1 {
            for typo in kinds.iter().filter(|e| !is_kind(e)) {
                let message = format!("unknown key `{}` in an emitted {}", typo.key, grammar.noun);
                cx.unknown(Code::UnknownKey, typo.key_span, message, &typo.key, ["each", "where"]);
            }
            kinds.retain(is_kind);
        }
        let [entry] = kinds.as_slice() else {
            let noun = grammar.noun;
            let (span, message) = match kinds.get(1) {
                Some(second) => (second.key_span, format!("a second {noun} in one entry of `emit:`")),
                None => (node.span, format!("this entry of `emit:` has no {noun}")),
            };
            cx.add(
                Diagnostic::new(Code::UnknownEmit, span, message)
                    .help(format!("`emit:` is a list with one {noun} per entry: `- {}: {{ … }}`", example(grammar))),
            );
            return None;
        };
        let Some(kind) = grammar.find(&entry.key) else {
            let message = format!("unknown {} `{}`", grammar.noun, entry.key);
            cx.unknown(Code::UnknownEmit, entry.key_span, message, &entry.key, grammar.names());
            return None;
        };
        let mut fields = Vec::new();
        let given: &[Entry] = match &entry.value.kind {
            YamlKind::Map(entries) => entries,
            YamlKind::Null => &[],
            _ => {
                cx.wrong_type(&entry.value, &format!("the fields of `{}`", kind.name));
                return None;
            }
        };
        for given in given {
            match kind.fields.iter().find(|f| f.name == given.key) {
                Some(field) => fields.extend(FieldMapping::parse(field, &given.value, context)),
                None => {
                    let message = format!("`{}` has no field `{}`", kind.name, given.key);
                    let known = kind.fields.iter().map(|f| f.name);
                    cx.unknown(Code::UnknownField, given.key_span, message, &given.key, known);
                }
            }
        }
        Some(Emit { each, conditions, kind, fields })
    }
}

fn parse_each(fields: &FieldReader, cx: LoadContext) -> Option<Selector> {
    let node = fields.get("each")?;
    Selector::parse(text_of(node, cx)?, node.span, cx)
}

fn example(grammar: &EmitGrammar) -> &'static str {
    grammar.names().next().unwrap_or("word")
}

/// Parses rules that emit content parts.
pub fn parse_content_part_rules(nodes: &[Node], tables: &Tables, cx: LoadContext) -> RuleSet {
    RuleSet::parse(&PARTS, None, nodes, tables, &NamedRules::default(), cx)
}
