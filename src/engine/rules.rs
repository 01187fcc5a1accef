//! Applies rules to a JSON document: which rules match, and what they emit.

use super::fields::Mismatch;
use super::select::Cursor;
use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::domain::emit::Vocabulary;
use crate::mapping::language::condition::{Condition, Test};
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::rule::{Action, Emit, Group, Rule, RuleSet};
use crate::mapping::language::selector::Selector;
use std::sync::Arc;

/// One word that a rule said, with its fields; absent ones are not listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    pub word: &'static str,
    pub fields: Vec<(&'static str, Tree)>,
    /// The rule that said it.
    pub rule: Span,
}

impl Emission {
    pub fn take(&mut self, name: &str) -> Option<Tree> {
        let at = self.fields.iter().position(|(n, _)| *n == name)?;
        Some(self.fields.swap_remove(at).1)
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).and_then(|t| scalar_text(&t))
    }
}

/// What became of one raw event (or of one element of a request).
#[derive(Debug, Default)]
pub struct Said {
    pub emissions: Vec<Emission>,
    /// At least one rule held, be it to drop.
    pub matched: bool,
    /// Why, and the rule that says so.
    pub dropped: Option<(String, Span)>,
    pub failed: Option<(String, Span)>,
    /// Fields that could not be filled.
    pub mismatches: Vec<Mismatch>,
    /// Elements of a list that no rule of their group knew.
    pub unknown: Vec<String>,
}

impl RuleSet {
    /// The name of an event, where the rules go by one.
    pub fn key_of(&self, raw: &Tree) -> Option<String> {
        self.key.as_ref()?.one(&Cursor::new(raw)).and_then(scalar_text)
    }

    pub fn apply(&self, raw: &Tree) -> Said {
        let mut said = Said::default();
        self.run(&mut Cursor::new(raw), &mut said);
        said
    }

    pub fn run(&self, cursor: &mut Cursor, said: &mut Said) {
        let key = self.key.as_ref().map(|k| k.one(cursor).and_then(scalar_text).unwrap_or_default());
        for group in &self.groups {
            match &group.each {
                None => {
                    group.run(self.vocabulary, key.as_deref(), cursor, said);
                }
                Some(each) => {
                    for (node, path) in each.many(cursor) {
                        cursor.enter(node, path.clone());
                        if !group.run(self.vocabulary, key.as_deref(), cursor, said) {
                            said.unknown.push(path);
                        }
                        cursor.leave();
                    }
                }
            }
        }
        if !said.matched {
            self.last_resort(key.as_deref(), cursor, said);
        }
    }

    /// `drop:` and `fail:` rules, looked at only when no other rule held.
    fn last_resort(&self, key: Option<&str>, cursor: &mut Cursor, said: &mut Said) {
        for rule in self.groups.iter().filter(|g| g.each.is_none()).flat_map(|g| &g.rules) {
            if !rule.holds(key, cursor) {
                continue;
            }
            match &rule.action {
                Action::Emit(_) => continue,
                Action::Drop(why) => said.dropped = Some((why.clone(), rule.span)),
                Action::Fail(why) => said.failed = Some((why.clone(), rule.span)),
            }
            said.matched = true;
            return;
        }
    }

    /// Content parts, as a list of `{ type, … }`.
    pub fn parts(&self, from: &Selector, cursor: &mut Cursor) -> Result<Tree, Mismatch> {
        let Some(node) = from.one(cursor).filter(|n| !n.is_null()) else { return Ok(Tree::Null) };
        let path = from.param(cursor);
        let mut said = Said::default();
        cursor.enter(node, path.clone());
        self.run(cursor, &mut said);
        cursor.leave();
        if let Some(mismatch) = said.mismatches.into_iter().next() {
            return Err(mismatch);
        }
        if let Some((message, _)) = said.failed {
            return Err(Mismatch { param: path, message });
        }
        if let Some(unknown) = said.unknown.into_iter().next() {
            return Err(Mismatch { param: unknown, message: "is of a kind that is not supported here".into() });
        }
        if !said.matched && node.as_list().is_none_or(|l| !l.is_empty()) {
            let found = node.type_name();
            return Err(Mismatch { param: path, message: format!("cannot be read: no rule takes this {found}") });
        }
        let parts = said.emissions.into_iter().map(|e| {
            let fields = e.fields.into_iter().map(|(k, v)| (Arc::from(k), v));
            Tree::Map([(Arc::from("type"), Tree::from(e.word))].into_iter().chain(fields).collect())
        });
        Ok(Tree::from(parts.collect::<Vec<_>>()))
    }
}

impl Group {
    /// True when some rule knew the node at hand.
    fn run(&self, vocabulary: &Vocabulary, key: Option<&str>, cursor: &mut Cursor, said: &mut Said) -> bool {
        // A list that no rule reads in events of this name is not this group's business.
        let mut held = !self.rules.iter().any(|r| r.is_about(key));
        for rule in &self.rules {
            if (rule.otherwise && held) || !rule.holds(key, cursor) {
                continue;
            }
            match &rule.action {
                Action::Emit(emits) => {
                    held = true;
                    said.matched = true;
                    for emit in emits {
                        emit.run(vocabulary, rule.span, cursor, said);
                    }
                }
                // For a single event these are the last resort of the whole set; inside a list, of the element.
                Action::Drop(why) if self.each.is_some() && !held => {
                    held = true;
                    said.matched = true;
                    said.dropped = Some((why.clone(), rule.span));
                }
                Action::Fail(why) if self.each.is_some() && !held => {
                    held = true;
                    said.matched = true;
                    said.failed = Some((why.clone(), rule.span));
                }
                Action::Drop(_) | Action::Fail(_) => {}
            }
        }
        held
    }
}

impl Rule {
    fn is_about(&self, key: Option<&str>) -> bool {
        self.keys.is_empty() || key.is_some_and(|k| self.keys.iter().any(|n| n == k))
    }

    fn holds(&self, key: Option<&str>, cursor: &Cursor) -> bool {
        self.is_about(key) && self.conditions.iter().all(|c| c.holds(cursor))
    }
}

impl Emit {
    fn run(&self, vocabulary: &Vocabulary, rule: Span, cursor: &mut Cursor, said: &mut Said) {
        match &self.each {
            None => self.say(vocabulary, rule, cursor, said),
            Some(each) => {
                for (node, path) in each.many(cursor) {
                    cursor.enter(node, path);
                    self.say(vocabulary, rule, cursor, said);
                    cursor.leave();
                }
            }
        }
    }

    fn say(&self, vocabulary: &Vocabulary, rule: Span, cursor: &mut Cursor, said: &mut Said) {
        if !self.conditions.iter().all(|c| c.holds(cursor)) {
            return;
        }
        let mut fields = Vec::with_capacity(self.reads.len());
        for read in &self.reads {
            match read.value(cursor) {
                Ok(Tree::Null) => {}
                Ok(value) => fields.push((read.field.name, value)),
                Err(mismatch) => said.mismatches.push(mismatch),
            }
        }
        let says = |name: &&str| {
            fields
                .iter()
                .any(|(n, v)| n == name && !(vocabulary.empty_is_nothing && v.as_str().is_some_and(str::is_empty)))
        };
        if self.word.payload.is_empty() || self.word.payload.iter().any(says) {
            said.emissions.push(Emission { word: self.word.name, fields, rule });
        }
    }
}

impl Condition {
    pub fn holds(&self, cursor: &Cursor) -> bool {
        let found = self.at.one(cursor);
        match &self.test {
            Test::Exists => found.is_some_and(|n| !n.is_null()),
            Test::Absent => found.is_none_or(Tree::is_null),
            Test::Type(name) => found.is_some_and(|n| n.type_name() == *name),
            Test::OneOf(values) => found.is_some_and(|n| values.contains(n)),
        }
    }
}
