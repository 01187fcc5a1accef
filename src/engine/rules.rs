//! Applies rules to a JSON document: which rules match, and what they emit.

use super::emission_budget::EmissionBudget;
use super::fields::Mismatch;
use super::selector::Cursor;
use super::unread::{ReadKind, ReadRecord};
use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::domain::emit::{EmitGrammar, EmittedFields};
use crate::domain::request_item::ContentPart;
use crate::mapping::language::condition::{Condition, ConditionTest};
use crate::mapping::language::field::{FieldSource, scalar_text};
use crate::mapping::language::rule::{Emit, Rule, RuleAction, RuleGroup, RuleSet};
use crate::mapping::language::rule_index::{Candidates, MemberTree};
use crate::mapping::language::selector::Selector;
use std::borrow::Cow;
use std::collections::HashSet;

/// An event or request item that a rule emitted, with its fields; absent fields are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    pub name: &'static str,
    pub fields: EmittedFields,
    /// The content parts of a request item, if it has them.
    pub parts: Option<Vec<ContentPart>>,
    /// The rule that emitted it.
    pub rule: Span,
    /// The node that it was read from, if reads are recorded.
    pub path: Option<String>,
}

/// Fields of an emission that could not be read.
#[derive(Debug)]
pub struct Unread {
    /// The name of the emission.
    pub name: &'static str,
    /// Nothing was emitted: the fields that carry the content are among them.
    pub is_lost: bool,
    pub rule: Span,
    /// The first of them, in [`RuleOutput::mismatches`].
    pub mismatch: usize,
}

/// For clients: the end of the message about a list element that no rule of its group matches.
pub const UNMATCHED_ELEMENT: &str = "is not supported: check its role or type, and its required fields";

/// The result of the rules for one raw event or request body.
#[derive(Debug, Default)]
pub struct RuleOutput {
    pub emissions: Vec<Emission>,
    /// At least one rule matched, including `drop:` and `fail:` rules.
    pub matched: bool,
    /// The reason, and the rule.
    pub dropped: Option<(String, Span)>,
    pub failed: Option<(String, Span)>,
    /// The path of the element that the rule failed for; empty for the whole document.
    pub failed_at: String,
    /// Fields with a value that does not fit.
    pub mismatches: Vec<Mismatch>,
    /// The same, by emission.
    pub unread: Vec<Unread>,
    /// Paths of list elements that no rule of their group matched.
    pub unknown: Vec<String>,
    pub budget: EmissionBudget,
}

impl RuleSet {
    /// The name of a raw event, if the rules select by name.
    pub fn event_name(&self, raw: &Tree) -> Option<String> {
        self.event_name.as_ref()?.one(&Cursor::new(raw)).and_then(scalar_text)
    }

    pub fn apply(&self, raw: &Tree) -> RuleOutput {
        let mut output = RuleOutput::default();
        self.run(&mut Cursor::new(raw), &mut output);
        output
    }

    /// Applies the rules with a limit, and records what they read.
    pub fn apply_recorded(&self, raw: &Tree, budget: EmissionBudget, record: &mut ReadRecord) -> RuleOutput {
        let mut output = RuleOutput { budget, ..RuleOutput::default() };
        let mut cursor = Cursor::new(raw).with_record(std::mem::take(record));
        self.run(&mut cursor, &mut output);
        *record = cursor.into_record();
        output
    }

    pub fn run(&self, cursor: &mut Cursor, output: &mut RuleOutput) {
        let key = self.event_name.as_ref().map(|k| k.one(cursor).and_then(scalar_text).unwrap_or_default());
        let mut unknown: Vec<(usize, &Tree, String)> = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            match &group.each {
                None => {
                    group.run(self.grammar, key.as_deref(), cursor, output);
                }
                Some(each) => {
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
                }
            }
        }
        if !unknown.is_empty() {
            self.remove_known(&mut unknown, key.as_deref(), cursor);
            output.unknown.extend(unknown.into_iter().map(|(_, _, path)| path));
        }
        if !output.matched {
            self.run_fallback_rules(key.as_deref(), cursor, output);
        }
    }

    /// Removes the elements that another group knows: several groups may go over one list, and each may know other
    /// elements of it.
    fn remove_known<'t>(
        &self,
        unknown: &mut Vec<(usize, &'t Tree, String)>,
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

    /// The content parts of the selected node; `None` if it is absent, or a list of nothing but elements that are
    /// ignored: a user's message with nothing but results of tools is no message.
    fn parts(
        &self,
        from: &Selector,
        cursor: &mut Cursor,
        whole: &mut RuleOutput,
    ) -> Result<Option<Vec<ContentPart>>, Mismatch> {
        let Some(node) = from.one(cursor).filter(|n| !n.is_null()) else { return Ok(None) };
        let path = from.param(cursor);
        let mut output = RuleOutput { budget: std::mem::take(&mut whole.budget), ..RuleOutput::default() };
        cursor.enter(node, path.clone());
        self.run(cursor, &mut output);
        cursor.leave();
        whole.budget = output.budget;
        if let Some(mismatch) = output.mismatches.into_iter().next() {
            return Err(mismatch);
        }
        if output.failed.is_some() {
            (whole.failed, whole.failed_at) = (output.failed, output.failed_at);
            return Ok(None);
        }
        if let Some(unknown) = output.unknown.into_iter().next() {
            return Err(Mismatch { param: unknown, message: UNMATCHED_ELEMENT.into() });
        }
        if !output.matched && node.as_list().is_none_or(|l| !l.is_empty()) {
            let found = node.type_name();
            return Err(Mismatch { param: path, message: format!("is not supported: no rule matches this {found}") });
        }
        let parts = output.emissions.into_iter();
        let parts: Vec<_> = parts.filter_map(|part| ContentPart::from_emission(part.name, part.fields)).collect();
        let is_ignored = parts.is_empty() && node.as_list().is_some_and(|elements| !elements.is_empty());
        Ok((!is_ignored).then_some(parts))
    }
}

impl RuleGroup {
    /// Whether a rule for events of this name matches the current node.
    fn knows(&self, key: Option<&str>, cursor: &Cursor) -> bool {
        self.index.of_event(key).of_node(cursor).iter().any(|position| self.rules[*position].matches(cursor))
    }

    /// True if a rule matched the current node.
    fn run(&self, grammar: &EmitGrammar, key: Option<&str>, cursor: &mut Cursor, output: &mut RuleOutput) -> bool {
        let candidates = self.index.of_event(key);
        // No rule of the group is for events of this name: the elements are not unknown.
        let mut matched = candidates.rules.is_empty();
        cursor.record_reads(&self.conditions_read, ReadKind::Conditions);
        for position in candidates.of_node(cursor).iter() {
            let rule = &self.rules[*position];
            if (rule.otherwise && matched) || !rule.matches(cursor) {
                continue;
            }
            match &rule.action {
                RuleAction::Emit(emits) => {
                    matched = true;
                    output.matched = true;
                    cursor.record_reads(&rule.reads, ReadKind::Emit);
                    let same_list = |a: &Emit, b: &Emit| {
                        a.each.as_ref().map(|each| &each.text) == b.each.as_ref().map(|each| &each.text)
                    };
                    for emits in emits.chunk_by(same_list) {
                        run_emits(emits, grammar, rule.span, cursor, output);
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
        matched
    }
}

impl Candidates {
    /// The rules to try for the current node, in file order.
    fn of_node(&self, cursor: &Cursor) -> Cow<'_, [usize]> {
        let Some(index) = &self.by_member else { return Cow::Borrowed(&self.rules) };
        let mut found = Vec::with_capacity(index.always.len() + 8);
        found.extend_from_slice(&index.always);
        index.current.collect(cursor.current(), &mut found);
        index.root.collect(cursor.root, &mut found);
        found.sort_unstable();
        // A text may be listed twice in a condition.
        found.dedup();
        Cow::Owned(found)
    }
}

impl MemberTree {
    fn collect(&self, node: &Tree, found: &mut Vec<usize>) {
        if node.is_null() {
            return;
        }
        found.extend_from_slice(&self.rules);
        if let Some(rules) = node.as_str().and_then(|text| self.by_text.get(text)) {
            found.extend_from_slice(rules);
        }
        if self.members.is_empty() {
            return;
        }
        for (name, member) in node.as_map().into_iter().flatten() {
            if let Some(tree) = self.members.get(&**name) {
                tree.collect(member, found);
            }
        }
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
                output.failed_at = cursor.path();
            }
        }
        output.matched = true;
        true
    }
}

/// Runs entries of `emit:` with the same `each`, or without one. Their list is walked once, element by element, so that
/// the output keeps the order of the input.
fn run_emits(emits: &[Emit], grammar: &EmitGrammar, rule: Span, cursor: &mut Cursor, output: &mut RuleOutput) {
    let Some(each) = emits.first().and_then(|emit| emit.each.as_ref()) else {
        return emits.iter().for_each(|emit| emit.emit(grammar, rule, cursor, output));
    };
    for (node, path) in each.many(cursor) {
        if output.budget.is_stopped() {
            return;
        }
        cursor.enter(node, path);
        emits.iter().for_each(|emit| emit.emit(grammar, rule, cursor, output));
        cursor.leave();
    }
}

impl Emit {
    fn emit(&self, grammar: &EmitGrammar, rule: Span, cursor: &mut Cursor, output: &mut RuleOutput) {
        if !self.conditions.iter().all(|c| c.is_met(cursor)) {
            return;
        }
        let mismatch = output.mismatches.len();
        let mut fields = Vec::with_capacity(self.fields.len());
        let mut parts = None;
        for read in &self.fields {
            if let FieldSource::ContentParts { from, rules } = &read.source {
                match rules.parts(from, cursor, output) {
                    Ok(found) => parts = found,
                    Err(mismatch) => output.mismatches.push(mismatch),
                }
                continue;
            }
            match read.value(cursor) {
                Ok(Tree::Null) => {}
                Ok(value) => fields.push((read.field.name, value)),
                Err(mismatch) => output.mismatches.push(mismatch),
            }
        }
        let has_payload = |name: &&str| {
            *name == "parts" && parts.is_some()
                || fields
                    .iter()
                    .any(|(n, v)| n == name && !(grammar.skip_empty && v.as_str().is_some_and(str::is_empty)))
        };
        let has_effect = self.kind.payload.is_empty() || self.kind.payload.iter().any(has_payload);
        if output.mismatches.len() > mismatch {
            output.unread.push(Unread { name: self.kind.name, is_lost: !has_effect, rule, mismatch });
        }
        if has_effect && output.budget.take_one(|| cursor.path()) {
            let path = cursor.recorded_path();
            output.emissions.push(Emission { name: self.kind.name, fields, parts, rule, path });
        }
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
