//! What rules did not read of a document. Rules record which of them matched which node; then one walk compares the
//! document with what they read.

use crate::domain::Tree;
use crate::mapping::language::read_paths::{ReadTree, RuleReads};
use std::fmt::Write as _;
use std::sync::Arc;

/// What was read of which node, while rules were applied.
#[derive(Clone, Debug, Default)]
pub struct ReadRecord {
    /// By the address of the node: nodes do not move while a document is read.
    reads: Vec<(usize, NodeReads)>,
    /// Elements that a `drop:` rule matched.
    dropped: Vec<usize>,
}

#[derive(Clone, Debug)]
struct NodeReads {
    reads: Arc<RuleReads>,
    from: ReadFrom,
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

#[derive(Clone, Copy, Debug)]
enum ReadFrom {
    Root,
    Current,
    Parent,
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

impl ReadRecord {
    /// The selectors of a rule, or of the conditions of a group, were applied to `current`.
    pub fn add(&mut self, reads: &Arc<RuleReads>, kind: ReadKind, root: &Tree, current: &Tree, parent: &Tree) {
        let places = [
            (root, &reads.root, ReadFrom::Root),
            (current, &reads.current, ReadFrom::Current),
            (parent, &reads.parent, ReadFrom::Parent),
        ];
        for (node, tree, from) in places {
            // A rule that emits constants reads nothing, and yet nothing of its element is dropped.
            if !tree.is_empty() || (kind == ReadKind::Emit && matches!(from, ReadFrom::Current)) {
                self.reads.push((address(node), NodeReads { reads: reads.clone(), from, kind }));
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
        let mut walk = Walk { record: &self, active: vec![always_read], path: String::new(), found: Vec::new() };
        walk.node(document, 0);
        walk.found
    }

    fn of_node(&self, node: usize) -> impl Iterator<Item = &NodeReads> {
        let first = self.reads.partition_point(|(of, _)| *of < node);
        self.reads[first..].iter().take_while(move |(of, _)| *of == node).map(|(_, reads)| reads)
    }

    /// Whether a rule dropped the node and no other rule read it.
    fn is_dropped(&self, node: usize) -> bool {
        self.dropped.binary_search(&node).is_ok() && self.of_node(node).all(|reads| reads.kind != ReadKind::Emit)
    }
}

impl NodeReads {
    fn tree(&self) -> &ReadTree {
        match self.from {
            ReadFrom::Root => &self.reads.root,
            ReadFrom::Current => &self.reads.current,
            ReadFrom::Parent => &self.reads.parent,
        }
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

struct Walk<'r> {
    record: &'r ReadRecord,
    /// What may be read at the current node and around it; a node's own begin at its `first`.
    active: Vec<&'r ReadTree>,
    path: String,
    found: Vec<UnreadMember>,
}

impl<'r> Walk<'r> {
    /// Walks a node, of which the trees from `first` on are known.
    fn node(&mut self, node: &Tree, first: usize) {
        let record = self.record;
        // A content part that one list of rules drops may be a call for another.
        if record.is_dropped(address(node)) && !self.active[first..].iter().any(|tree| tree.reads_content()) {
            return self.report(node);
        }
        for tree in record.of_node(address(node)).map(NodeReads::tree) {
            // Every element of a list records the same rule for the nodes around it.
            if !self.active[first..].iter().any(|known| std::ptr::eq(*known, tree)) {
                self.active.push(tree);
            }
        }
        let last = self.active.len();
        let own = &self.active[first..];
        // What `..name` reads may be deeper.
        if own.is_empty() && self.active.iter().all(|tree| tree.anywhere.is_empty()) {
            self.report(node);
        } else if !own.iter().any(|tree| tree.whole) {
            match node {
                Tree::Map(members) => {
                    for (name, value) in members {
                        let length = self.path.len();
                        if length > 0 {
                            self.path.push('.');
                        }
                        self.path.push_str(name);
                        self.child(value, Some(name), first, last);
                        self.path.truncate(length);
                    }
                }
                Tree::List(elements) => {
                    for (index, element) in elements.iter().enumerate() {
                        let length = self.path.len();
                        let _ = write!(self.path, "[{index}]");
                        self.child(element, None, first, last);
                        self.path.truncate(length);
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
    fn child(&mut self, child: &Tree, name: Option<&str>, first: usize, last: usize) {
        if child.is_null() || self.found.len() >= MAX_UNREAD {
            return;
        }
        if name.is_some_and(|name| self.active[..last].iter().any(|tree| tree.anywhere.iter().any(|n| n == name))) {
            return;
        }
        for at in first..last {
            let tree = self.active[at];
            self.active.extend(name.and_then(|name| tree.members.get(name)));
            self.active.extend(tree.children.as_deref());
        }
        self.node(child, last);
        self.active.truncate(last);
    }

    fn report(&mut self, node: &Tree) {
        let is_empty = match node {
            Tree::Null => true,
            Tree::List(elements) => elements.is_empty(),
            Tree::Map(members) => members.is_empty(),
            Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => false,
        };
        if !is_empty && self.found.len() < MAX_UNREAD {
            self.found.push(UnreadMember { path: self.path.clone(), has_text: has_text(node) });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/engine_unread.rs"]
mod tests;
