//! What selectors read of a JSON document, as trees: compiled at load, and compared with a document in one walk. What is
//! in the document and in no tree is lost.

use super::condition::{Condition, ConditionTest};
use super::emit_entry::{EmitContent, EmitEntry};
use super::field::{FieldMapping, FieldSource};
use super::name_map::NameMap;
use super::rule::{Rule, RuleAction, RuleGroup};
use super::selector::{Selector, SelectorPath, SelectorStart, SelectorStep};
use crate::diagnostics::Code;
use crate::domain::emit::EmitKind;
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::source::field_reader::LoadContext;
use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, Segment, Selector as JpSelector, SingularQuery,
    SingularQuerySegment, Test, TestFunction,
};
use std::sync::Arc;

/// What is read of a value.
#[derive(Debug, Default)]
pub struct ReadTree {
    /// The value with everything in it.
    pub whole: bool,
    /// The value itself: its presence, or a scalar. Not what is in it.
    pub tested: bool,
    pub members: NameMap<ReadTree>,
    /// Every element or member.
    pub children: Option<Box<ReadTree>>,
    /// Members of these names, with everything in them, at any depth.
    pub anywhere: Vec<String>,
}

/// What a rule reads, by the node that its selectors start from.
#[derive(Debug, Default)]
pub struct RuleReads {
    pub root: ReadTree,
    pub current: ReadTree,
    pub parent: ReadTree,
}

#[derive(Clone, Copy)]
pub(super) enum Extent {
    Whole,
    Tested,
}

/// One place where a rule uses a selector.
pub(super) enum RuleRead<'r> {
    Test(&'r Condition),
    /// An `each:` inside the rule.
    List(&'r Selector),
    /// Of a kind of emission.
    Field(&'static EmitKind, &'r FieldMapping, &'r Selector),
}

/// Visits every selector of a rule, with the lists inside the rule that it is applied to the elements of.
pub(super) fn visit_reads<'r>(
    conditions: &'r [Condition],
    action: &'r RuleAction,
    visit: &mut dyn FnMut(&[&'r Selector], RuleRead<'r>),
) {
    conditions.iter().for_each(|condition| visit(&[], RuleRead::Test(condition)));
    match action {
        RuleAction::Emit(entries) => entries.iter().for_each(|entry| visit_entry(&mut Vec::new(), entry, visit)),
        RuleAction::Drop(_) | RuleAction::Fail(_) => {}
    }
}

fn visit_entry<'r>(
    lists: &mut Vec<&'r Selector>,
    entry: &'r EmitEntry,
    visit: &mut dyn FnMut(&[&'r Selector], RuleRead<'r>),
) {
    if let Some(each) = &entry.each {
        visit(lists, RuleRead::List(each));
        lists.push(each);
    }
    entry.conditions.iter().for_each(|condition| visit(lists, RuleRead::Test(condition)));
    match &entry.content {
        EmitContent::Inner(entries) => entries.iter().for_each(|entry| visit_entry(lists, entry, visit)),
        EmitContent::One(emit) => {
            for field in &emit.fields {
                for selector in FieldMapping::selectors(field) {
                    visit(lists, RuleRead::Field(emit.kind, field, selector));
                }
            }
        }
    }
    if entry.each.is_some() {
        lists.pop();
    }
}

impl ReadTree {
    pub fn is_empty(&self) -> bool {
        !self.whole && !self.tested && self.members.is_empty() && self.children.is_none() && self.anywhere.is_empty()
    }

    /// Whether a value is read, not only tested.
    pub fn reads_content(&self) -> bool {
        self.whole
            || self.members.values().any(ReadTree::reads_content)
            || self.children.as_deref().is_some_and(ReadTree::reads_content)
    }

    /// Everything that the selector finds in the document is read.
    pub fn add_whole(&mut self, selector: &Selector) {
        if selector.start != SelectorStart::Head {
            self.add(&selector.path, Extent::Whole);
        }
    }

    pub fn add_tested(&mut self, selector: &Selector) {
        if selector.start != SelectorStart::Head {
            self.add(&selector.path, Extent::Tested);
        }
    }

    /// `ignored:`: members that are known and have no effect count as read.
    pub fn add_ignored(&mut self, selectors: &[Spanned<Selector>], cx: LoadContext) {
        for selector in selectors {
            match selector.value.start {
                SelectorStart::Root => self.add_whole(&selector.value),
                SelectorStart::Current | SelectorStart::Parent | SelectorStart::Outer(_) | SelectorStart::Head => {
                    let text = &selector.value.text;
                    let message = format!("`ignored:` has no current node: `{text}` must begin with `$`");
                    cx.error(Code::BadSelector, selector.span, message);
                }
            }
        }
    }

    fn add(&mut self, path: &SelectorPath, extent: Extent) {
        self.at(path, &mut |tree| tree.mark(extent));
    }

    fn mark(&mut self, extent: Extent) {
        match extent {
            Extent::Whole => self.whole = true,
            Extent::Tested => self.tested = true,
        }
    }

    /// Visits the places that a path leads to.
    pub(super) fn at(&mut self, path: &SelectorPath, visit: &mut dyn FnMut(&mut ReadTree)) {
        match path {
            SelectorPath::Steps(steps) => visit(self.after(steps)),
            SelectorPath::Children(steps) => visit(self.after(steps).child()),
            SelectorPath::Query(query) => self.query(&query.segments, visit),
        }
    }

    fn after(&mut self, steps: &[SelectorStep]) -> &mut ReadTree {
        steps.iter().fold(self, |tree, step| match step {
            SelectorStep::Name(name) => tree.member(name),
            SelectorStep::Index(_) => tree.child(),
        })
    }

    fn member(&mut self, name: &str) -> &mut ReadTree {
        self.members.entry(name)
    }

    fn child(&mut self) -> &mut ReadTree {
        self.children.get_or_insert_default()
    }

    fn query(&mut self, segments: &[Segment], visit: &mut dyn FnMut(&mut ReadTree)) {
        let Some((first, rest)) = segments.split_first() else { return visit(self) };
        match first {
            Segment::Selector(selector) => self.select(selector, rest, visit),
            Segment::Selectors(all) => all.iter().for_each(|selector| self.select(selector, rest, visit)),
            // Where it ends is not known, so what it names counts as read wherever it is.
            Segment::Descendant(inner) => {
                self.tested = true;
                match &**inner {
                    Segment::Selector(JpSelector::Name(name)) => self.anywhere.push(name.clone()),
                    Segment::Selector(_) | Segment::Selectors(_) | Segment::Descendant(_) => self.whole = true,
                }
            }
        }
    }

    fn select(&mut self, selector: &JpSelector, rest: &[Segment], visit: &mut dyn FnMut(&mut ReadTree)) {
        match selector {
            JpSelector::Name(name) => self.member(name).query(rest, visit),
            JpSelector::Wildcard | JpSelector::Index(_) | JpSelector::Slice(..) => self.child().query(rest, visit),
            JpSelector::Filter(filter) => {
                self.child().add_filter(filter);
                self.child().query(rest, visit);
            }
        }
    }

    /// What a filter tests in the current element.
    fn add_filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Or(all) | Filter::And(all) => all.iter().for_each(|inner| self.add_filter(inner)),
            Filter::Atom(FilterAtom::Filter { expr, .. }) => self.add_filter(expr),
            Filter::Atom(FilterAtom::Test { expr, .. }) => self.add_test(expr),
            Filter::Atom(FilterAtom::Comparison(comparison)) => {
                let (left, right) = match &**comparison {
                    Comparison::Eq(a, b) | Comparison::Ne(a, b) | Comparison::Gt(a, b) => (a, b),
                    Comparison::Gte(a, b) | Comparison::Lt(a, b) | Comparison::Lte(a, b) => (a, b),
                };
                self.add_comparable(left);
                self.add_comparable(right);
            }
        }
    }

    fn add_comparable(&mut self, side: &Comparable) {
        match side {
            Comparable::SingularQuery(SingularQuery::Current(segments)) => {
                let tree = segments.iter().fold(self, |tree, segment| match segment {
                    SingularQuerySegment::Name(name) => tree.member(name),
                    SingularQuerySegment::Index(_) => tree.child(),
                });
                tree.tested = true;
            }
            Comparable::Function(function) => self.add_function(function),
            Comparable::SingularQuery(SingularQuery::Root(_)) | Comparable::Literal(_) => {}
        }
    }

    fn add_test(&mut self, test: &Test) {
        match test {
            Test::RelQuery(segments) => self.query(segments, &mut |tree| tree.tested = true),
            Test::Function(function) => self.add_function(function),
            Test::AbsQuery(_) => {}
        }
    }

    fn add_function(&mut self, function: &TestFunction) {
        let arguments: Vec<&FnArg> = match function {
            TestFunction::Custom(_, arguments) => arguments.iter().collect(),
            TestFunction::Length(argument) => vec![&**argument],
            TestFunction::Value(argument) | TestFunction::Count(argument) => vec![argument],
            TestFunction::Search(a, b) | TestFunction::Match(a, b) => vec![a, b],
        };
        for argument in arguments {
            match argument {
                FnArg::Test(test) => self.add_test(test),
                FnArg::Filter(filter) => self.add_filter(filter),
                FnArg::Literal(_) => {}
            }
        }
    }
}

impl RuleReads {
    /// What a rule reads of an element that it matches.
    pub(super) fn of_rule(conditions: &[Condition], action: &RuleAction) -> Arc<RuleReads> {
        let mut reads = RuleReads::default();
        visit_reads(conditions, action, &mut |lists, read| match read {
            RuleRead::Test(Condition { selector, .. }) | RuleRead::List(selector) => {
                reads.add_inside(lists, selector, Extent::Tested);
            }
            RuleRead::Field(_, field, selector) => {
                // The rules for content parts record what they read themselves.
                let extent = match &field.source {
                    FieldSource::ContentParts { .. } => Extent::Tested,
                    FieldSource::Constant(_) | FieldSource::Select { .. } => Extent::Whole,
                };
                reads.add_inside(lists, selector, extent);
            }
        });
        Arc::new(reads)
    }

    /// The members that select the rule for each element of a group, such as its role or type. That a rule which did
    /// not match tests whether a member is there does not use the member.
    pub(super) fn of_conditions(rules: &[Rule]) -> Arc<RuleReads> {
        let mut reads = RuleReads::default();
        for Condition { selector, test, .. } in rules.iter().flat_map(|rule| &rule.conditions) {
            if matches!(test, ConditionTest::OneOf(_)) {
                reads.add_inside(&[], selector, Extent::Tested);
            }
        }
        Arc::new(reads)
    }

    pub(super) fn add_inside(&mut self, lists: &[&Selector], selector: &Selector, extent: Extent) {
        self.at(lists, selector.start, &selector.path, &mut |tree| tree.mark(extent));
    }

    /// Visits what a selector finds inside these lists. The node of the rule is around the outermost list.
    pub(super) fn at(
        &mut self,
        lists: &[&Selector],
        start: SelectorStart,
        path: &SelectorPath,
        visit: &mut dyn FnMut(&mut ReadTree),
    ) {
        let around = match start {
            SelectorStart::Root => return self.root.at(path, visit),
            // The head of an HTTP message is no part of the document.
            SelectorStart::Head => return,
            SelectorStart::Current => 0,
            SelectorStart::Parent => 1,
            SelectorStart::Outer(around) => around,
        };
        match lists.len().checked_sub(around) {
            None => self.parent.at(path, visit),
            Some(0) => self.current.at(path, visit),
            Some(level) => {
                let (outer, list) = (&lists[..level - 1], lists[level - 1]);
                self.at(outer, list.start, &list.path, &mut |element| element.at(path, visit));
            }
        }
    }
}

impl RuleGroup {
    /// What the group reads of the whole document, whatever matches: its list.
    pub(super) fn add_list_to(&self, root: &mut ReadTree) {
        if let Some(each) = self.each.as_ref().filter(|each| each.start == SelectorStart::Root) {
            root.at(&each.path, &mut |_| {});
        }
    }
}
