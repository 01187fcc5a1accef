//! Which rules of a group are tried for a node: those that its members, by the index of the group, can match.

use super::selector::Cursor;
use crate::domain::Tree;
use crate::mapping::language::rule_index::{Candidates, MemberTree};
use smallvec::SmallVec;
use std::ops::Deref;

/// The positions of rules in their group. An event has a few of them, which need no allocation.
type Positions = SmallVec<[usize; 16]>;

/// The rules to try for one node, in file order.
pub(super) enum NodeCandidates<'c> {
    All(&'c [usize]),
    Found(Positions),
}

impl Deref for NodeCandidates<'_> {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        match self {
            NodeCandidates::All(rules) => rules,
            NodeCandidates::Found(rules) => rules,
        }
    }
}

impl Candidates {
    /// The rules to try for the current node.
    pub(super) fn of_node(&self, cursor: &Cursor) -> NodeCandidates<'_> {
        let Some(index) = &self.by_member else { return NodeCandidates::All(&self.rules) };
        let mut found = Positions::from_slice(&index.always);
        index.current.collect(cursor.current(), &mut found);
        index.root.collect(cursor.root, &mut found);
        found.sort_unstable();
        // A text may be listed twice in a condition.
        found.dedup();
        NodeCandidates::Found(found)
    }
}

impl MemberTree {
    fn collect(&self, node: &Tree, found: &mut Positions) {
        if node.is_null() {
            return;
        }
        found.extend_from_slice(&self.rules);
        if !self.by_text.is_empty()
            && let Some(rules) = node.as_str().and_then(|text| self.by_text.get(text))
        {
            found.extend_from_slice(rules);
        }
        if !self.has_members() {
            return;
        }
        for (name, member) in node.as_map().into_iter().flatten() {
            if let Some(tree) = self.member(name) {
                tree.collect(member, found);
            }
        }
    }
}
