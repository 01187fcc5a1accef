//! Which lists of rules must be lists. Where a backend sends something else in place of a list of calls, the calls are
//! lost, and the turn must not succeed as if there were none. A member that another rule reads as a whole may be anything:
//! text in one response, and a list of parts in the next.

use super::emit_entry::{EmitContent, EmitEntry};
use super::field::FieldMapping;
use super::rule::{RuleAction, RuleSet};
use std::collections::HashSet;

impl RuleSet {
    /// Marks the lists that no field reads as a whole.
    pub fn require_lists(&mut self) {
        let fields = self.emits().flat_map(|emit| emit.fields.iter().flat_map(FieldMapping::selectors));
        let whole: HashSet<String> = fields.map(|selector| selector.text.clone()).collect();
        let is_list = |each: &str| each.strip_suffix("[*]").is_some_and(|list| !whole.contains(list));
        for group in &mut self.groups {
            group.requires_list = group.each.as_ref().is_some_and(|each| is_list(&each.text));
            for rule in &mut group.rules {
                if let RuleAction::Emit(entries) = &mut rule.action {
                    entries.iter_mut().for_each(|entry| entry.require_lists(&is_list));
                }
            }
        }
    }
}

impl EmitEntry {
    fn require_lists(&mut self, is_list: &impl Fn(&str) -> bool) {
        self.requires_list = self.each.as_ref().is_some_and(|each| is_list(&each.text));
        if let EmitContent::Inner(entries) = &mut self.content {
            entries.iter_mut().for_each(|entry| entry.require_lists(is_list));
        }
    }

    /// The words that it emits.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        match &self.content {
            EmitContent::One(emit) => vec![emit.kind.name],
            EmitContent::Inner(entries) => entries.iter().flat_map(EmitEntry::names).collect(),
        }
    }
}
