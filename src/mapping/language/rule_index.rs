//! Which rules of a group can match an event: found by the event's name and by the members of the node, so that the
//! cost of an event does not grow with the number of rules. An index may contain rules that do not match in the end,
//! but never misses one.

use super::condition::{Condition, ConditionTest};
use super::rule::Rule;
use super::selector::{SelectorPath, SelectorStart, SelectorStep};
use crate::domain::Tree;
use fnv::FnvHashMap;

/// Up to this many rules are tried one by one, which is faster than finding them.
const FEW: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    by_event: FnvHashMap<String, Candidates>,
    /// For events of other names, or without one.
    other: Candidates,
}

/// Rules by their position in the group, in file order.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub rules: Vec<usize>,
    /// For many rules: the ones that need a member which the node has.
    pub by_member: Option<MemberIndex>,
}

#[derive(Debug, Default)]
pub(crate) struct MemberIndex {
    /// Rules without a condition that the index understands.
    pub always: Vec<usize>,
    /// By a member of the current node.
    pub current: MemberTree,
    /// By a member of the whole document.
    pub root: MemberTree,
}

/// The rules that need a value other than null here, those that need a certain text, and members below. The hash
/// function is fast for short names, and only the mapping chooses the keys.
#[derive(Debug, Default)]
pub(crate) struct MemberTree {
    pub rules: Vec<usize>,
    pub by_text: FnvHashMap<String, Vec<usize>>,
    members: FnvHashMap<String, MemberTree>,
    /// A bit for each name in `members`, see [`bit`].
    names: u64,
}

/// One of 64 bits for a name, by its length and its first byte. Most members of an event are in no condition, and have
/// a bit that is not set, which is much faster to find out than by a hash of the name.
fn bit(name: &str) -> u64 {
    let first = name.as_bytes().first().copied().unwrap_or_default();
    1 << ((name.len() * 7 + usize::from(first)) % 64)
}

impl RuleIndex {
    pub fn new(rules: &[Rule]) -> RuleIndex {
        let mut index = RuleIndex::default();
        for name in rules.iter().flat_map(|rule| &rule.event_names) {
            if !index.by_event.contains_key(name) {
                let applies = |rule: &Rule| rule.event_names.is_empty() || rule.event_names.contains(name);
                index.by_event.insert(name.clone(), Candidates::new(rules, applies, FEW));
            }
        }
        index.other = Candidates::new(rules, |rule| rule.event_names.is_empty(), FEW);
        index
    }

    pub fn of_event(&self, name: Option<&str>) -> &Candidates {
        name.and_then(|name| self.by_event.get(name)).unwrap_or(&self.other)
    }
}

impl Candidates {
    pub(crate) fn new(rules: &[Rule], applies: impl Fn(&Rule) -> bool, few: usize) -> Candidates {
        let positions: Vec<usize> = (0..rules.len()).filter(|position| applies(&rules[*position])).collect();
        let by_member = (positions.len() > few).then(|| MemberIndex::new(rules, &positions));
        Candidates { rules: positions, by_member }
    }
}

impl MemberIndex {
    fn new(rules: &[Rule], positions: &[usize]) -> MemberIndex {
        let mut index = MemberIndex::default();
        for &position in positions {
            // A text separates rules better than the presence of a member.
            let conditions = &rules[position].conditions;
            let indexed = |condition: &&Condition| requires_member(condition);
            let best = conditions.iter().filter(indexed).max_by_key(|condition| texts(condition).is_some());
            match best {
                Some(condition) => index.tree(condition).add(condition, position),
                None => index.always.push(position),
            }
        }
        index
    }

    fn tree(&mut self, condition: &Condition) -> &mut MemberTree {
        match condition.selector.start {
            SelectorStart::Root => &mut self.root,
            // Only conditions on the document are indexed.
            SelectorStart::Current | SelectorStart::Parent | SelectorStart::Outer(_) | SelectorStart::Head => {
                &mut self.current
            }
        }
    }
}

impl MemberTree {
    pub fn has_members(&self) -> bool {
        self.names != 0
    }

    pub fn member(&self, name: &str) -> Option<&MemberTree> {
        if self.names & bit(name) == 0 { None } else { self.members.get(name) }
    }

    fn add(&mut self, condition: &Condition, position: usize) {
        let SelectorPath::Steps(steps) = &condition.selector.path else { return self.rules.push(position) };
        let mut tree = self;
        for step in steps {
            match step {
                SelectorStep::Name(name) => {
                    tree.names |= bit(name);
                    tree = tree.members.entry(name.clone()).or_default();
                }
                // What is around the element must exist, too.
                SelectorStep::Index(_) => return tree.rules.push(position),
            }
        }
        match texts(condition) {
            Some(texts) => texts.for_each(|text| tree.by_text.entry(text.to_owned()).or_default().push(position)),
            None => tree.rules.push(position),
        }
    }
}

/// Whether the condition can only be met by a value other than null at a path that is known.
fn requires_member(condition: &Condition) -> bool {
    let known = matches!(condition.selector.start, SelectorStart::Root | SelectorStart::Current);
    known
        && matches!(condition.selector.path, SelectorPath::Steps(_))
        && match &condition.test {
            ConditionTest::Exists => true,
            ConditionTest::Absent => false,
            ConditionTest::Type(name) => *name != "null",
            ConditionTest::OneOf(values) => !values.contains(&Tree::Null),
        }
}

/// The texts that the condition compares with, if it compares with nothing else.
fn texts(condition: &Condition) -> Option<impl Iterator<Item = &str>> {
    match &condition.test {
        ConditionTest::OneOf(values) if values.iter().all(|value| value.as_str().is_some()) => {
            Some(values.iter().filter_map(Tree::as_str))
        }
        _ => None,
    }
}
