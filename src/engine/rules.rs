//! Applies rules to a JSON document: which rules match, and what they emit.

pub use super::rule_output::{Emission, RuleOutput, UNMATCHED_ELEMENT};

use super::emission_budget::EmissionBudget;
use super::emit_entries::{report_lost, run_entries};
use super::selector::{Cursor, NodePath};
use super::unread::{ReadKind, ReadRecord};
use crate::domain::Tree;
use crate::domain::emit::EmitGrammar;
use crate::mapping::language::condition::{Condition, ConditionTest};
use crate::mapping::language::field::{scalar_str, scalar_text};
use crate::mapping::language::rule::{Rule, RuleAction, RuleGroup, RuleSet};
use crate::mapping::language::selector::Selector;
use std::collections::HashSet;

impl RuleSet {
    /// The name of a raw event, if the rules select by name.
    pub fn event_name(&self, raw: &Tree) -> Option<String> {
        self.event_name.as_ref()?.one(&Cursor::new(raw)).and_then(scalar_text)
    }

    pub fn apply(&self, raw: &Tree) -> RuleOutput {
        self.apply_to_message(raw, &Tree::Null)
    }

    /// `head`: of the HTTP message that contains the document.
    pub fn apply_to_message(&self, raw: &Tree, head: &Tree) -> RuleOutput {
        let mut output = RuleOutput::default();
        self.run(&mut Cursor::new(raw).with_head(head), &mut output);
        output
    }

    /// Applies the rules with a limit, and records what they read.
    pub fn apply_recorded<'t>(
        &'t self,
        raw: &'t Tree,
        budget: EmissionBudget,
        record: &mut ReadRecord<'t>,
    ) -> RuleOutput {
        let mut output = RuleOutput { budget, ..RuleOutput::default() };
        let mut cursor = Cursor::new(raw).with_record(std::mem::take(record));
        self.run(&mut cursor, &mut output);
        *record = cursor.into_record();
        output
    }

    pub fn run<'t>(&'t self, cursor: &mut Cursor<'t>, output: &mut RuleOutput) {
        let key = self.event_name.as_ref().map(|k| k.one(cursor).and_then(scalar_str).unwrap_or_default());
        let mut unknown: Vec<(usize, &Tree, NodePath)> = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            match &group.each {
                None => {
                    group.run(self.grammar, key.as_deref(), cursor, output);
                }
                Some(each) => {
                    let emitted = output.emissions.len();
                    for (node, path) in each.many(cursor) {
                        if output.budget.is_stopped() {
                            return;
                        }
                        cursor.enter(node, path.clone());
                        if !group.run(self.grammar, key.as_deref(), cursor, output) {
                            unknown.push((at, node, path));
                        }
                        cursor.leave();
                    }
                    if group.requires_list && output.emissions.len() == emitted {
                        group.report_missing_list(each, key.as_deref(), cursor, output);
                    }
                }
            }
        }
        if !unknown.is_empty() {
            self.remove_known(&mut unknown, key.as_deref(), cursor);
            output.unknown.extend(unknown.iter().map(|(_, _, path)| cursor.text_of(path).into_string()));
        }
        if !output.matched {
            self.run_fallback_rules(key.as_deref(), cursor, output);
        }
    }

    /// Removes the elements that another group knows: several groups may go over one list, and each may know other
    /// elements of it.
    fn remove_known<'t>(
        &'t self,
        unknown: &mut Vec<(usize, &'t Tree, NodePath<'t>)>,
        key: Option<&str>,
        cursor: &mut Cursor<'t>,
    ) {
        for (at, group) in self.groups.iter().enumerate() {
            let Some(each) = group.each.as_ref().filter(|_| unknown.iter().any(|(of, ..)| *of != at)) else { continue };
            let mut known: HashSet<*const Tree> = HashSet::new();
            for (node, path) in each.many(cursor) {
                cursor.enter(node, path);
                if group.knows(key, cursor) {
                    known.insert(std::ptr::from_ref(node));
                }
                cursor.leave();
            }
            unknown.retain(|(of, node, _)| *of == at || !known.contains(&std::ptr::from_ref(*node)));
        }
    }

    /// `drop:` and `fail:` rules, which apply only if no other rule matched.
    fn run_fallback_rules(&self, key: Option<&str>, cursor: &mut Cursor, output: &mut RuleOutput) {
        let mut groups = self.groups.iter().filter(|g| g.each.is_none());
        groups.any(|group| {
            let candidates = group.index.of_event(key).of_node(cursor);
            let mut rules = candidates.iter().map(|position| &group.rules[*position]);
            rules.any(|rule| rule.matches(cursor) && rule.fall_back(cursor, output))
        });
    }
}

impl RuleGroup {
    /// Whether a rule for events of this name matches the current node.
    fn knows(&self, key: Option<&str>, cursor: &Cursor) -> bool {
        self.index.of_event(key).of_node(cursor).iter().any(|position| self.rules[*position].matches(cursor))
    }

    /// Reports something else in place of the list, for each word that the rules for its elements would emit.
    fn report_missing_list(&self, each: &Selector, key: Option<&str>, cursor: &Cursor, output: &mut RuleOutput) {
        let Some((path, found)) = each.in_place_of_list(cursor) else { return };
        for position in &self.index.of_event(key).rules {
            let rule = &self.rules[*position];
            if let RuleAction::Emit(entries) = &rule.action {
                report_lost(entries, rule.span, &path, found, output);
            }
        }
    }

    /// True if a rule matched the current node.
    fn run<'t>(
        &'t self,
        grammar: &EmitGrammar,
        key: Option<&str>,
        cursor: &mut Cursor<'t>,
        output: &mut RuleOutput,
    ) -> bool {
        let candidates = self.index.of_event(key);
        // No rule of the group is for events of this name: the elements are not unknown.
        let mut matched = candidates.rules.is_empty();
        let (mut is_read, mut is_empty) = (false, false);
        cursor.record_reads(&self.conditions_read, ReadKind::Conditions);
        for position in candidates.of_node(cursor).iter() {
            let rule = &self.rules[*position];
            if (rule.otherwise && matched) || !rule.matches(cursor) {
                continue;
            }
            match &rule.action {
                RuleAction::Emit(entries) => {
                    matched = true;
                    output.matched = true;
                    cursor.record_reads(&rule.reads, ReadKind::Emit);
                    let before = (output.emissions.len(), output.mismatches.len());
                    run_entries(entries, grammar, rule.span, cursor, output);
                    match before == (output.emissions.len(), output.mismatches.len()) {
                        true => is_empty = true,
                        false => is_read = true,
                    }
                }
                // For a single event these are the fallback of the whole set; inside a list, of the element.
                RuleAction::Drop(_) | RuleAction::Fail(_) => {
                    if !matched && self.each.is_some() && rule.fall_back(cursor, output) {
                        matched = true;
                        cursor.record_dropped();
                    }
                }
            }
        }
        if is_empty && !is_read && self.each.is_some() {
            output.without_content.push(cursor.path());
        }
        matched
    }
}

impl Rule {
    fn matches(&self, cursor: &Cursor) -> bool {
        self.conditions.iter().all(|c| c.is_met(cursor))
    }

    /// `drop:` or `fail:`; false if the rule emits.
    fn fall_back(&self, cursor: &Cursor, output: &mut RuleOutput) -> bool {
        match &self.action {
            RuleAction::Emit(_) => return false,
            RuleAction::Drop(why) => output.dropped = Some((why.clone(), self.span)),
            RuleAction::Fail(why) => {
                output.failed = Some((why.clone(), self.span));
                output.failed_at = cursor.path().into_string();
            }
        }
        output.matched = true;
        true
    }
}

impl Condition {
    pub fn is_met(&self, cursor: &Cursor) -> bool {
        let found = self.selector.one(cursor);
        match &self.test {
            ConditionTest::Exists => found.is_some_and(|n| !n.is_null()),
            ConditionTest::Absent => found.is_none_or(Tree::is_null),
            ConditionTest::Type(name) => found.is_some_and(|n| n.type_name() == *name),
            ConditionTest::OneOf(values) => found.is_some_and(|n| values.contains(n)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/engine_rules.rs"]
mod tests;
