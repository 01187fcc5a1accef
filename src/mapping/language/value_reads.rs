//! Which values of an event change what the rules emit. The text of a delta does not, apart from the delta itself: the
//! engine need not decode events again that differ only in such values.

use super::condition::ConditionTest;
use super::field::{Conversion, FieldMapping, FieldSource};
use super::read_paths::{Extent, ReadTree, RuleRead, RuleReads, visit_reads};
use super::rule::{RuleGroup, RuleSet};
use super::selector::{Selector, SelectorPath};
use crate::domain::EventKind;
use crate::domain::emit::{EmitKind, FieldType};
use reframe_json::ShapeStep;

/// What rules read of an event, by what they use it for. What is in neither can have any value of its type.
#[derive(Debug, Default)]
pub struct ValueReads {
    /// Their value may decide what is emitted.
    pub fixed: ReadTree,
    /// Texts that are emitted as they are, as the delta of an event.
    pub deltas: ReadTree,
    /// What is emitted as it is in `start`, which has no effect once the turn is open.
    pub starts: ReadTree,
}

impl RuleSet {
    pub fn value_reads(&self) -> ValueReads {
        let mut reads = ValueReads::default();
        self.event_name.iter().for_each(|name| reads.fixed.add_whole(name));
        // A filter that compares with a value elsewhere in the document.
        let is_absolute = |selector: &&Selector| {
            matches!(selector.path, SelectorPath::Query(_)) && selector.text.chars().skip(1).any(|char| char == '$')
        };
        reads.fixed.whole = self.selectors().iter().any(is_absolute);
        for group in &self.groups {
            let GroupReads { fixed, deltas, starts } = group.value_reads();
            group.add_to(&mut reads.fixed, &fixed);
            group.add_to(&mut reads.deltas, &deltas);
            group.add_to(&mut reads.starts, &starts);
        }
        reads
    }
}

/// The same of one group.
#[derive(Default)]
struct GroupReads {
    fixed: RuleReads,
    deltas: RuleReads,
    starts: RuleReads,
}

impl RuleGroup {
    fn value_reads(&self) -> GroupReads {
        let GroupReads { mut fixed, mut deltas, mut starts } = GroupReads::default();
        for rule in &self.rules {
            visit_reads(&rule.conditions, &rule.action, &mut |lists, read| match read {
                RuleRead::Test(condition) => match condition.test {
                    ConditionTest::OneOf(_) => fixed.add_inside(lists, &condition.selector, Extent::Tested),
                    // The type of a value does not change.
                    ConditionTest::Exists | ConditionTest::Absent | ConditionTest::Type(_) => {
                        fixed.add_filters(lists, &condition.selector);
                    }
                },
                RuleRead::List(each) => fixed.add_filters(lists, each),
                RuleRead::Field(kind, field, selector) if field.is_delta(kind) => {
                    fixed.add_filters(lists, selector);
                    // With what is in it: an object may be converted to text.
                    deltas.add_inside(lists, selector, Extent::Whole);
                }
                RuleRead::Field(kind, field, selector) if field.is_start(kind) => {
                    fixed.add_filters(lists, selector);
                    starts.add_inside(lists, selector, Extent::Whole);
                }
                RuleRead::Field(_, _, selector) => fixed.add_inside(lists, selector, Extent::Whole),
            });
        }
        GroupReads { fixed, deltas, starts }
    }

    fn add_to(&self, document: &mut ReadTree, reads: &RuleReads) {
        match &self.each {
            Some(each) => document.at(&each.path, &mut |element| element.merge(&reads.current)),
            None => document.merge(&reads.current),
        }
        document.merge(&reads.root);
        document.merge(&reads.parent);
    }
}

impl FieldMapping {
    /// Whether the field is the text of a delta, emitted as it is.
    fn is_delta(&self, kind: &EmitKind) -> bool {
        let is_text = match EventKind::from_name(kind.name) {
            Some(EventKind::Text | EventKind::Refusal | EventKind::Reasoning | EventKind::Tool) => true,
            Some(_) | None => false,
        };
        is_text && self.is_plain() && self.field.name == "delta" && self.field.field_type == FieldType::Text
    }

    /// Whether the field is one of `start`, emitted as it is.
    fn is_start(&self, kind: &EmitKind) -> bool {
        EventKind::from_name(kind.name) == Some(EventKind::Start) && self.is_plain()
    }

    fn is_plain(&self) -> bool {
        match &self.source {
            FieldSource::Select { convert: None | Some(Conversion::JsonText), table: None, .. } => true,
            FieldSource::Select { .. } | FieldSource::Constant(_) | FieldSource::ContentParts { .. } => false,
        }
    }
}

impl RuleReads {
    /// What the filters of a selector compare.
    fn add_filters(&mut self, lists: &[&Selector], selector: &Selector) {
        self.at(lists, selector.start, &selector.path, &mut |_| {});
    }
}

impl ReadTree {
    /// Whether the value at this path is read, or one that contains it.
    pub fn reads(&self, path: &[ShapeStep]) -> bool {
        let is_anywhere = |step: &ShapeStep| matches!(step, ShapeStep::Member(name) if self.anywhere.contains(name));
        if self.whole || path.iter().any(is_anywhere) {
            return true;
        }
        let Some((step, rest)) = path.split_first() else { return self.tested };
        let member = match step {
            ShapeStep::Member(name) => self.members.get(name),
            ShapeStep::Element(_) => None,
        };
        member.is_some_and(|tree| tree.reads(rest)) || self.children.as_ref().is_some_and(|tree| tree.reads(rest))
    }
}
