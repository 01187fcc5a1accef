//! What rules did not read of a document. Rules record which of them matched which node; then one walk compares the
//! document with what they read.

use crate::domain::Tree;
use crate::mapping::language::read_paths::{ReadTree, RuleReads};
use smallvec::SmallVec;
use std::fmt::Write as _;

/// What was read of which node, while rules were applied.
#[derive(Clone, Debug, Default)]
pub struct ReadRecord<'t> {
    /// By the address of the node: nodes do not move while a document is read.
    reads: Vec<(usize, NodeReads<'t>)>,
    /// A bit for each address: most nodes of a document are not in the list.
    addresses: u64,
    /// Elements that a `drop:` rule matched.
    dropped: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct NodeReads<'t> {
    tree: &'t ReadTree,
    kind: ReadKind,
}

/// Who read a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// The conditions of a group.
    Conditions,
    /// A rule that emitted something.
    Emit,
}

/// A member that no rule read.
#[derive(Clone, Debug)]
pub struct UnreadMember {
    pub path: String,
    /// It is, or contains, a text that is not empty.
    pub has_text: bool,
}

fn has_text(node: &Tree) -> bool {
    match node {
        Tree::Str(text) => !text.trim().is_empty(),
        Tree::SurrogateString(_) => true,
        Tree::List(elements) => elements.iter().any(has_text),
        Tree::Map(members) => members.iter().any(|(_, member)| has_text(member)),
        Tree::Null | Tree::Bool(_) | Tree::Num(_) => false,
    }
}

/// A client can send any number of unknown members.
const MAX_UNREAD: usize = 1_000;

/// How many nodes the rules read of a short request.
const USUAL_READS: usize = 32;

impl<'t> ReadRecord<'t> {
    /// The selectors of a rule, or of the conditions of a group, were applied to `current`.
    pub fn add(&mut self, reads: &'t RuleReads, kind: ReadKind, root: &Tree, current: &Tree, parent: &Tree) {
        let places = [(root, &reads.root, false), (current, &reads.current, true), (parent, &reads.parent, false)];
        for (node, tree, is_current) in places {
            // A rule that emits constants reads nothing, and yet nothing of its element is dropped.
            if !tree.is_empty() || (kind == ReadKind::Emit && is_current) {
                let node = address(node);
                self.addresses |= address_bit(node);
                if self.reads.is_empty() {
                    self.reads.reserve(USUAL_READS);
                }
                self.reads.push((node, NodeReads { tree, kind }));
            }
        }
    }

    pub fn add_dropped(&mut self, element: &Tree) {
        self.dropped.push(address(element));
    }

    /// The paths of what was not read, outermost only: `messages[2].cache_control`. Nulls and empty values are left out:
    /// nothing is lost with them.
    pub fn unread(self, document: &Tree, always_read: &ReadTree) -> Vec<String> {
        self.unread_members(document, always_read).into_iter().map(|member| member.path).collect()
    }

    /// The same, with what is known of each.
    pub fn unread_members(mut self, document: &Tree, always_read: &ReadTree) -> Vec<UnreadMember> {
        self.reads.sort_unstable_by_key(|(node, _)| *node);
        self.dropped.sort_unstable();
        let mut walk = Walk {
            record: &self,
            active: SmallVec::from_slice(&[always_read]),
            reads_anywhere: !always_read.anywhere.is_empty(),
            path: SmallVec::new(),
            found: Vec::new(),
        };
        walk.node(document, 0);
        walk.found
    }

    fn of_node(&self, node: usize) -> &[(usize, NodeReads<'t>)] {
        if self.addresses & address_bit(node) == 0 {
            return &[];
        }
        let first = self.reads.partition_point(|(of, _)| *of < node);
        let length = self.reads[first..].iter().take_while(|(of, _)| *of == node).count();
        &self.reads[first..first + length]
    }

    /// Whether a rule dropped the node and no other rule read it.
    fn is_dropped(&self, node: usize) -> bool {
        !self.dropped.is_empty()
            && self.dropped.binary_search(&node).is_ok()
            && self.of_node(node).iter().all(|(_, reads)| reads.kind != ReadKind::Emit)
    }
}

/// `choices[3].delta` → `choices[].delta`
pub fn without_indexes(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|c| {
            match c {
                '[' => inside = true,
                ']' => inside = false,
                _ => {}
            }
            !(inside && c.is_ascii_digit())
        })
        .collect()
}

fn address(node: &Tree) -> usize {
    std::ptr::from_ref(node).addr()
}

/// One of 64 bits. Nodes are several words large.
fn address_bit(address: usize) -> u64 {
    1 << ((address / size_of::<Tree>()) % 64)
}

struct Walk<'r, 'd> {
    record: &'r ReadRecord<'r>,
    /// What may be read at the current node and around it; a node's own begin at its `first`.
    active: SmallVec<[&'r ReadTree; 32]>,
    /// Whether one of them reads names anywhere.
    reads_anywhere: bool,
    /// Of the current node. Its text is made if something is found.
    path: SmallVec<[Step<'d>; 16]>,
    found: Vec<UnreadMember>,
}

#[derive(Clone, Copy)]
enum Step<'d> {
    Member(&'d str),
    Element(usize),
}

impl<'r, 'd> Walk<'r, 'd> {
    /// Walks a node, of which the trees from `first` on are known.
    fn node(&mut self, node: &'d Tree, first: usize) {
        let record = self.record;
        // A content part that one list of rules drops may be a call for another.
        if record.is_dropped(address(node)) && !self.active[first..].iter().any(|tree| tree.reads_content()) {
            return self.report(node);
        }
        for (_, NodeReads { tree, .. }) in record.of_node(address(node)) {
            // Every element of a list records the same rule for the nodes around it.
            if !self.active[first..].iter().any(|known| std::ptr::eq(*known, *tree)) {
                self.activate(tree);
            }
        }
        let last = self.active.len();
        let own = &self.active[first..];
        // What `..name` reads may be deeper.
        if own.is_empty() && !self.reads_anywhere {
            self.report(node);
        } else if !own.iter().any(|tree| tree.whole) {
            match node {
                Tree::Map(members) => {
                    for (name, value) in members {
                        self.child(value, Step::Member(name), first, last);
                    }
                }
                Tree::List(elements) => {
                    for (index, element) in elements.iter().enumerate() {
                        self.child(element, Step::Element(index), first, last);
                    }
                }
                Tree::Null => {}
                Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => {
                    if !own.iter().any(|tree| tree.tested) {
                        self.report(node);
                    }
                }
            }
        }
        self.active.truncate(last);
    }

    /// `first..last`: the trees of the node around it.
    fn child(&mut self, child: &'d Tree, step: Step<'d>, first: usize, last: usize) {
        if child.is_null() || self.found.len() >= MAX_UNREAD {
            return;
        }
        let name = match step {
            Step::Member(name) => Some(name),
            Step::Element(_) => None,
        };
        let is_named = |tree: &&ReadTree| tree.anywhere.iter().any(|known| Some(known.as_str()) == name);
        if self.reads_anywhere && self.active[..last].iter().any(is_named) {
            return;
        }
        // Most values are read by a tree of the node around them. Whether a rule dropped them has to be found out first.
        if self.record.dropped.is_empty() && self.is_read(child, name, first, last) {
            return;
        }
        let reads_anywhere = self.reads_anywhere;
        for at in first..last {
            let tree = self.active[at];
            if let Some(member) = name.and_then(|name| tree.members.get(name)) {
                self.activate(member);
            }
            if let Some(children) = tree.children.as_deref() {
                self.activate(children);
            }
        }
        self.path.push(step);
        self.node(child, last);
        self.path.pop();
        self.active.truncate(last);
        self.reads_anywhere = reads_anywhere;
    }

    /// Whether one of the trees of the node around it reads the whole child.
    fn is_read(&self, child: &Tree, name: Option<&str>, first: usize, last: usize) -> bool {
        let is_scalar = !matches!(child, Tree::List(_) | Tree::Map(_));
        let reads = |tree: &ReadTree| tree.whole || is_scalar && tree.tested;
        self.active[first..last].iter().any(|around| {
            name.and_then(|name| around.members.get(name)).is_some_and(reads)
                || around.children.as_deref().is_some_and(reads)
        })
    }

    fn activate(&mut self, tree: &'r ReadTree) {
        self.reads_anywhere |= !tree.anywhere.is_empty();
        self.active.push(tree);
    }

    /// The path of the current node: `messages[2].content`.
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Element(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }

    fn report(&mut self, node: &Tree) {
        let is_empty = match node {
            Tree::Null => true,
            Tree::List(elements) => elements.is_empty(),
            Tree::Map(members) => members.is_empty(),
            Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => false,
        };
        if !is_empty && self.found.len() < MAX_UNREAD {
            self.found.push(UnreadMember { path: self.path(), has_text: has_text(node) });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/engine_unread.rs"]
mod tests;
