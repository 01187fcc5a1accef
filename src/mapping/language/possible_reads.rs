//! What rules can read of a document: of all rules together, whichever of them match. Known at load, for lints.

use super::emit_entry::{EmitContent, EmitEntry};
use super::field::FieldSource;
use super::read_paths::ReadTree;
use super::rule::{RuleAction, RuleGroup, RuleSet};
use super::selector::SelectorStart;

impl RuleSet {
    /// Adds what the rules can read to what is read of a document.
    pub fn add_possible_reads(&self, document: &mut ReadTree) {
        let mut of_document = ReadTree::default();
        for group in &self.groups {
            match &group.each {
                Some(each) => document.at(&each.path, &mut |element| group.add_reads(element, &mut of_document)),
                None => group.add_reads(document, &mut of_document),
            }
        }
        document.merge(&of_document);
    }
}

impl RuleGroup {
    /// What its rules read of an element, and of the document around it.
    fn add_reads(&self, element: &mut ReadTree, document: &mut ReadTree) {
        element.merge(&self.conditions_read.current);
        for rule in &self.rules {
            element.merge(&rule.reads.current);
            document.merge(&rule.reads.root);
            document.merge(&rule.reads.parent);
            match &rule.action {
                RuleAction::Emit(entries) => entries.iter().for_each(|entry| entry.add_content(element, document)),
                RuleAction::Drop(_) | RuleAction::Fail(_) => {}
            }
        }
    }
}

impl EmitEntry {
    /// What the rules for content parts read.
    fn add_content(&self, element: &mut ReadTree, document: &mut ReadTree) {
        match self.each.as_ref().filter(|each| each.start == SelectorStart::Current) {
            Some(each) => element.at(&each.path, &mut |inner| self.add_content_of(inner, document)),
            None => self.add_content_of(element, document),
        }
    }

    fn add_content_of(&self, element: &mut ReadTree, document: &mut ReadTree) {
        let emit = match &self.content {
            EmitContent::Inner(entries) => {
                return entries.iter().for_each(|entry| entry.add_content(element, document));
            }
            EmitContent::One(emit) => emit,
        };
        for field in &emit.fields {
            let FieldSource::ContentParts { from, rules } = &field.source else { continue };
            element.at(&from.path, &mut |content| {
                for group in &rules.groups {
                    match &group.each {
                        Some(each) => content.at(&each.path, &mut |part| group.add_reads(part, document)),
                        None => group.add_reads(content, document),
                    }
                }
            });
        }
    }
}

impl ReadTree {
    pub fn merge(&mut self, other: &ReadTree) {
        self.whole |= other.whole;
        self.tested |= other.tested;
        for (name, member) in other.members.iter() {
            self.members.entry(name).merge(member);
        }
        if let Some(children) = &other.children {
            self.children.get_or_insert_default().merge(children);
        }
        self.anywhere.extend_from_slice(&other.anywhere);
    }
}
