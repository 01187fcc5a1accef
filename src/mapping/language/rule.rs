//! Rules: `each` / `where` / `emit`, the same for a backend's events and for a client's request.
//!
//! All matching rules fire, in file order, and emit in list order. Adjacent rules with the same `each` form a group and
//! iterate once, element by element, so that the output keeps the order of the input. `drop:` and `fail:` are
//! considered only if no other rule matched, `otherwise: true` only if no earlier rule of its group did.

use super::condition::{Condition, Conditions};
use super::emit_entry::{Emit, EmitEntry, loop_name};
use super::field::FieldContext;
use super::read_paths::{ReadTree, RuleReads};
use super::rule_index::RuleIndex;
use super::selector::{LoopName, Selector};
use super::table::Tables;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::emit::{EmitGrammar, PARTS};
use crate::mapping::grammar::collections::{List, OneOrMore};
use crate::mapping::grammar::notation::{Spanned, exactly_one};
use crate::mapping::grammar::unparsed::AnyNode;
use crate::mapping::grammar::{Section, section};
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Node;
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
    /// What `each` goes over must be a list, if it is there.
    pub requires_list: bool,
    pub rules: Vec<Rule>,
    pub index: RuleIndex,
    /// What the conditions of its rules read.
    pub conditions_read: Arc<RuleReads>,
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
    /// What it reads, apart from its conditions.
    pub reads: Arc<RuleReads>,
}

#[derive(Debug)]
pub(crate) enum RuleAction {
    Emit(Vec<EmitEntry>),
    Drop(String),
    Fail(String),
}

section! {
    /// All matching rules fire, in the order of the file, and emit in the order of the list. Adjacent rules with the
    /// same `each` form a group, which walks the list once, element by element. A rule has exactly one of `emit`,
    /// `drop` and `fail`.
    #[subject = "a rule"]
    #[title = "rule"]
    #[extend("oneOf" = exactly_one(ACTIONS.iter().copied()))]
    #[extend("dependentRequired" = serde_json::json!({ "as": ["each"] }))]
    pub struct RuleEntry<'n> {
        /// One event name or a list of names; needs `event_name:` next to `rules:`.
        event: Option<Spanned<List<String>>>,
        /// A description for readers.
        name: Option<String>,
        /// A selector; the rule is applied to every node that it finds, as `@`.
        each: Option<Selector>,
        /// A name for the element of `each`, which selectors inside can start with: `$NAME.index`.
        element as "as": Option<Spanned<LoopName>>,
        /// Conditions, all of which must match: selector to test.
        conditions as "where": Conditions = Conditions::default(),
        /// Applies only if no earlier rule of its group matched.
        otherwise: bool = false,
        /// What the rule emits. An entry may have its own `each:`, `as:` and `where:`, and an `emit:` inside it.
        emit: Option<OneOrMore<AnyNode<'n>>>,
        /// The reason why the event is ignored: it is known and has no effect.
        drop: Option<String>,
        /// The message of the fault that ends the turn; in a request, of the 400.
        fail: Option<String>,
    }
}

const ACTIONS: &[&str] = &["emit", "drop", "fail"];

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
                _ => groups.push(RuleGroup {
                    each,
                    requires_list: false,
                    rules: vec![rule],
                    index: RuleIndex::default(),
                    conditions_read: Arc::default(),
                }),
            }
        }
        for group in &mut groups {
            group.index = RuleIndex::new(&group.rules);
            group.conditions_read = RuleReads::of_conditions(&group.rules);
        }
        RuleSet { grammar, event_name, groups }
    }

    /// Top-level members of the body that the rules read. All others are `request.extra`.
    pub fn root_members(&self) -> Vec<&str> {
        self.selectors().into_iter().filter_map(Selector::root_member).collect()
    }

    /// All selectors of the rules, without those of rules for content parts.
    pub fn selectors(&self) -> Vec<&Selector> {
        let mut selectors: Vec<&Selector> = Vec::new();
        for group in &self.groups {
            selectors.extend(&group.each);
            for rule in &group.rules {
                selectors.extend(rule.conditions.iter().map(|condition| &condition.selector));
                if let RuleAction::Emit(entries) = &rule.action {
                    entries.iter().for_each(|entry| entry.add_selectors(&mut selectors));
                }
            }
        }
        selectors
    }

    /// Adds what is read of a document whatever it contains: the lists of the groups, and the event's name.
    pub fn add_always_read(&self, root: &mut ReadTree) {
        self.groups.iter().for_each(|group| group.add_list_to(root));
        self.event_name.iter().for_each(|name| root.add_tested(name));
    }

    pub(crate) fn emits(&self) -> impl Iterator<Item = &Emit> {
        self.emits_with_conditions().into_iter().map(|(_, emit)| emit)
    }

    /// What the rules emit, each with the conditions of its rule and of the entries around it.
    pub(crate) fn emits_with_conditions(&self) -> Vec<(Vec<&Condition>, &Emit)> {
        let mut emits = Vec::new();
        for rule in self.groups.iter().flat_map(|group| &group.rules) {
            if let RuleAction::Emit(entries) = &rule.action {
                let conditions: Vec<&Condition> = rule.conditions.iter().collect();
                entries.iter().for_each(|entry| entry.add_emits(&conditions, &mut emits));
            }
        }
        emits
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
        let fields = RuleEntry::open(node, "", cx)?;
        let entry = RuleEntry::read_fields(&fields)?;
        if let Some(event) = entry.event.as_ref().filter(|_| !has_event_name) {
            cx.add(
                Diagnostic::new(
                    Code::UnknownKey,
                    event.key_span,
                    "`event:` needs `event_name:`, the selector of an event's name",
                )
                .help("write `event_name: $.type` (or where the name is) next to `rules:`"),
            );
        }
        let name = loop_name(entry.element, entry.each.is_some(), cx);
        let action = match (entry.emit, entry.drop, entry.fail) {
            (Some(entries), None, None) => {
                let loops: Vec<Option<String>> = entry.each.iter().map(|_| name.clone()).collect();
                RuleAction::Emit(EmitEntry::parse_all(grammar, &entries, &loops, context))
            }
            (None, Some(why), None) => RuleAction::Drop(why),
            (None, None, Some(why)) => RuleAction::Fail(why),
            _ => {
                let message = "a rule must have exactly one of `emit:`, `drop:` (a reason) and `fail:` (a message)";
                fields.not_exactly_one(ACTIONS, Diagnostic::new(Code::MissingKey, node.span, message));
                fields.finish();
                return None;
            }
        };
        fields.finish();
        let event_span = entry.event.as_ref().map_or(node.span, |event| event.key_span);
        let event_names = entry.event.filter(|_| has_event_name).map_or(Vec::new(), |event| event.value.0);
        let (conditions, otherwise) = (entry.conditions.0, entry.otherwise);
        let reads = RuleReads::of_rule(&conditions, &action);
        Some((entry.each, Rule { span: node.span, event_names, event_span, conditions, otherwise, action, reads }))
    }
}

/// Parses rules that emit content parts.
pub fn parse_content_part_rules(nodes: &[Node], tables: &Tables, cx: LoadContext) -> RuleSet {
    RuleSet::parse(&PARTS, None, nodes, tables, &NamedRules::default(), cx)
}
