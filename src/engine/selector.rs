//! Evaluates selectors: finds the nodes of a JSON document that a compiled selector names.

use super::unread::{ReadKind, ReadRecord};
use crate::domain::{Text, Tree};
use crate::mapping::language::name_map::name_bit;
use crate::mapping::language::read_paths::RuleReads;
use crate::mapping::language::selector::{Selector, SelectorPath, SelectorStart, SelectorStep};
use jsonpath_rust::parser::model::{JpQuery, Segment, Selector as JpSelector};
use jsonpath_rust::query::js_path_process;
use std::iter::Enumerate;
use std::{slice, vec};

/// The nodes that a selector may start from, innermost last, each with its path in the client's body.
#[derive(Clone, Debug)]
pub struct Cursor<'t> {
    pub root: &'t Tree,
    /// The head of the HTTP message that contains the document.
    head: &'t Tree,
    /// A bit for each member of the document, see [`name_bit`].
    root_names: u64,
    stack: Vec<Level<'t>>,
    /// Records what rules read, if it is wanted.
    record: Option<ReadRecord<'t>>,
}

/// A node that a rule is applied to.
#[derive(Clone, Debug)]
struct Level<'t> {
    node: &'t Tree,
    path: NodePath<'t>,
    /// A bit for each of its members.
    names: u64,
}

/// The path of a node. Only errors and records need its text, so it is built when it is read.
#[derive(Clone, Debug)]
pub enum NodePath<'t> {
    /// From a node of the cursor's stack (0: the document), by these steps.
    Steps {
        from: usize,
        steps: &'t [SelectorStep],
        last: LastStep<'t>,
    },
    Text(Text),
}

/// The step from a list or map to its child.
#[derive(Clone, Copy, Debug)]
pub enum LastStep<'t> {
    None,
    Index(usize),
    Member(&'t str),
}

impl<'t> Cursor<'t> {
    pub fn new(root: &'t Tree) -> Cursor<'t> {
        Cursor { root, head: &Tree::Null, root_names: names_of(root), stack: Vec::new(), record: None }
    }

    pub fn with_head(self, head: &'t Tree) -> Cursor<'t> {
        Cursor { head, ..self }
    }

    /// Rules add what they read to the record.
    pub fn with_record(self, record: ReadRecord<'t>) -> Cursor<'t> {
        Cursor { record: Some(record), ..self }
    }

    pub fn into_record(self) -> ReadRecord<'t> {
        self.record.unwrap_or_default()
    }

    /// Records that a rule, or the conditions of a group, were applied to the current node.
    pub fn record_reads(&mut self, reads: &'t RuleReads, kind: ReadKind) {
        let (root, current, parent) = (self.root, self.at(1).0, self.at(2).0);
        if let Some(record) = &mut self.record {
            record.add(reads, kind, root, current, parent);
        }
    }

    /// Records that a rule dropped the current node.
    pub fn record_dropped(&mut self) {
        let current = self.at(1).0;
        if let Some(record) = &mut self.record {
            record.add_dropped(current);
        }
    }

    /// The path of the current node, if reads are recorded.
    pub fn recorded_path(&self) -> Option<Text> {
        self.record.as_ref().map(|_| self.path())
    }

    pub fn enter(&mut self, node: &'t Tree, path: NodePath<'t>) {
        self.stack.push(Level { node, path, names: names_of(node) });
    }

    pub fn leave(&mut self) {
        self.stack.pop();
    }

    /// The path of the current node in the client's body.
    pub fn path(&self) -> Text {
        self.path_at(self.stack.len())
    }

    /// The path as text. The nodes around the node are still on the stack.
    pub fn text_of(&self, path: &NodePath) -> Text {
        match path {
            NodePath::Text(text) => text.clone(),
            NodePath::Steps { from, steps, last } => {
                let mut text = join(self.path_at(*from), steps);
                match last {
                    LastStep::None => {}
                    LastStep::Index(index) => push_index(&mut text, *index),
                    LastStep::Member(name) => {
                        // Also at the root: a path of names only begins with a point.
                        text.push('.');
                        text.push_str(name);
                    }
                }
                text
            }
        }
    }

    /// Of the node at this height of the stack.
    fn path_at(&self, height: usize) -> Text {
        let level = height.checked_sub(1).and_then(|at| self.stack.get(at));
        level.map_or(Text::default(), |level| self.text_of(&level.path))
    }

    /// The position of the current node in its list.
    pub fn position(&self) -> Option<usize> {
        match &self.stack.last()?.path {
            NodePath::Steps { last: LastStep::Index(index), .. } => Some(*index),
            path => self.text_of(path).strip_suffix(']')?.rsplit('[').next()?.parse().ok(),
        }
    }

    /// The element of the innermost `each`, or the whole document.
    pub fn current(&self) -> &'t Tree {
        self.at(1).0
    }

    /// The node, and its height in the stack.
    fn at(&self, depth: usize) -> (&'t Tree, usize) {
        match self.stack.len().checked_sub(depth).and_then(|at| Some((at, self.stack.get(at)?))) {
            Some((at, level)) => (level.node, at + 1),
            None => (self.root, 0),
        }
    }

    /// The node at these steps from the start of a selector. Most members are absent.
    fn find(&self, from: SelectorStart, steps: &[SelectorStep]) -> Option<&'t Tree> {
        match steps.first() {
            Some(SelectorStep::Name(name)) if !self.may_have(from, name) => None,
            Some(_) | None => walk(self.start(from).0, steps),
        }
    }

    /// Whether the node that a selector starts from may have a member of this name.
    fn may_have(&self, from: SelectorStart, name: &str) -> bool {
        let names = match (from, self.start(from).1) {
            (SelectorStart::Head, _) => return true,
            (_, 0) => self.root_names,
            (_, height) => self.stack.get(height - 1).map_or(u64::MAX, |level| level.names),
        };
        names & name_bit(name) != 0
    }

    fn start(&self, from: SelectorStart) -> (&'t Tree, usize) {
        match from {
            SelectorStart::Root => (self.root, 0),
            SelectorStart::Current => self.at(1),
            SelectorStart::Parent => self.at(2),
            SelectorStart::Outer(around) => self.at(1 + around),
            SelectorStart::Head => (self.head, 0),
        }
    }
}

/// The nodes that a selector found, each with its path for an error message: `messages[2]`.
pub enum Found<'t> {
    /// The elements of the list that the steps lead to.
    Elements(Enumerate<slice::Iter<'t, Tree>>, usize, &'t [SelectorStep]),
    /// The members of the map that the steps lead to.
    Members(slice::Iter<'t, (Text, Tree)>, usize, &'t [SelectorStep]),
    One(Option<(&'t Tree, NodePath<'t>)>),
    Listed(vec::IntoIter<(&'t Tree, NodePath<'t>)>),
}

impl<'t> Iterator for Found<'t> {
    type Item = (&'t Tree, NodePath<'t>);

    fn next(&mut self) -> Option<(&'t Tree, NodePath<'t>)> {
        match self {
            Found::Elements(elements, from, steps) => {
                let (index, node) = elements.next()?;
                Some((node, NodePath::Steps { from: *from, steps, last: LastStep::Index(index) }))
            }
            Found::Members(members, from, steps) => {
                let (name, node) = members.next()?;
                Some((node, NodePath::Steps { from: *from, steps, last: LastStep::Member(name) }))
            }
            Found::One(one) => one.take(),
            Found::Listed(listed) => listed.next(),
        }
    }
}

impl Selector {
    /// The first node that matches.
    pub fn one<'t>(&self, cursor: &Cursor<'t>) -> Option<&'t Tree> {
        match &self.path {
            SelectorPath::Steps(steps) => cursor.find(self.start, steps),
            SelectorPath::Children(steps) => match cursor.find(self.start, steps)? {
                Tree::List(items) => items.first(),
                Tree::Map(entries) => entries.first().map(|(_, node)| node),
                _ => None,
            },
            SelectorPath::Query(query) => {
                let (start, _) = cursor.start(self.start);
                if !self.can_match(query, cursor) {
                    return None;
                }
                js_path_process(query, start).ok()?.into_iter().next().map(|found| found.val())
            }
        }
    }

    /// All nodes that match, each with its path for an error message: `messages[2]`.
    pub fn many<'t>(&'t self, cursor: &Cursor<'t>) -> Found<'t> {
        let (start, from) = cursor.start(self.start);
        match &self.path {
            SelectorPath::Steps(steps) => {
                Found::One(cursor.find(self.start, steps).map(|node| (node, self.node_path(cursor))))
            }
            SelectorPath::Children(steps) => match cursor.find(self.start, steps) {
                Some(Tree::List(items)) => Found::Elements(items.iter().enumerate(), from, steps),
                Some(Tree::Map(entries)) => Found::Members(entries.iter(), from, steps),
                Some(_) | None => Found::One(None),
            },
            SelectorPath::Query(query) if !self.can_match(query, cursor) => Found::One(None),
            SelectorPath::Query(query) => {
                let base = cursor.path_at(from);
                let found = js_path_process(query, start).unwrap_or_default().into_iter().map(|found| {
                    let path = format!("{base}{}", plain_path(&found.clone().path()));
                    (found.val(), NodePath::Text(Text::from(path.trim_start_matches('.'))))
                });
                Found::Listed(found.collect::<Vec<_>>().into_iter())
            }
        }
    }

    /// Whether the names at the start of a query lead to a node. Most optional members are absent, and the library is
    /// slow to find out.
    fn can_match(&self, query: &JpQuery, cursor: &Cursor) -> bool {
        if let Some(Segment::Selector(JpSelector::Name(name))) = query.segments.first()
            && !cursor.may_have(self.start, name)
        {
            return false;
        }
        let mut node = Some(cursor.start(self.start).0);
        for segment in &query.segments {
            let Segment::Selector(JpSelector::Name(name)) = segment else { break };
            node = node.and_then(|node| node.get(name));
        }
        node.is_some()
    }

    /// The path and the type of what is in place of a list, if this goes over the elements of one.
    pub fn in_place_of_list(&self, cursor: &Cursor) -> Option<(Text, &'static str)> {
        let SelectorPath::Children(steps) = &self.path else { return None };
        let (start, base) = cursor.start(self.start);
        match walk(start, steps)? {
            Tree::Null | Tree::List(_) => None,
            other => Some((join(cursor.path_at(base), steps), other.type_name())),
        }
    }

    /// The path as the client wrote it: `stream_options.include_usage`.
    pub fn param(&self, cursor: &Cursor) -> String {
        if self.start == SelectorStart::Head {
            return self.head_parameter().map_or(self.text.as_str(), |(_, name)| name).into();
        }
        cursor.text_of(&self.node_path(cursor)).into_string()
    }

    /// The path of the node, or of the list or map of which it selects the children.
    pub fn node_path<'t>(&'t self, cursor: &Cursor) -> NodePath<'t> {
        let (_, from) = cursor.start(self.start);
        let steps: &[SelectorStep] = match &self.path {
            SelectorPath::Steps(steps) | SelectorPath::Children(steps) => steps,
            SelectorPath::Query(_) => &[],
        };
        NodePath::Steps { from, steps, last: LastStep::None }
    }
}

/// A bit for each member.
fn names_of(node: &Tree) -> u64 {
    node.as_map().into_iter().flatten().fold(0, |names, (name, _)| names | name_bit(name))
}

fn walk<'t>(mut node: &'t Tree, steps: &[SelectorStep]) -> Option<&'t Tree> {
    for step in steps {
        node = match step {
            SelectorStep::Name(name) => node.get(name)?,
            SelectorStep::Index(index) => node.at(*index)?,
        };
    }
    Some(node)
}

fn join(mut path: Text, steps: &[SelectorStep]) -> Text {
    for step in steps {
        match step {
            SelectorStep::Name(name) => push_name(&mut path, name),
            SelectorStep::Index(index) => push_index(&mut path, *index),
        }
    }
    path
}

fn push_name(path: &mut Text, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn push_index(path: &mut Text, index: usize) {
    let mut text = [b'['; 22];
    let mut start = text.len() - 1;
    text[start] = b']';
    let mut rest = index;
    loop {
        start -= 1;
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    path.push_str(std::str::from_utf8(&text[start - 1..]).unwrap_or_default());
}

/// `$['messages'][2]['content']` → `.messages[2].content`
fn plain_path(path: &str) -> String {
    path.trim_start_matches('$').replace("['", ".").replace("']", "")
}
