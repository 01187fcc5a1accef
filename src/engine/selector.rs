//! Evaluates selectors: finds the nodes of a JSON document that a compiled selector names.

use super::unread::{ReadKind, ReadRecord};
use crate::domain::Tree;
use crate::mapping::language::read_paths::RuleReads;
use crate::mapping::language::selector::{Selector, SelectorPath, SelectorStart, SelectorStep};
use jsonpath_rust::query::js_path_process;
use std::sync::Arc;

/// The nodes that a selector may start from, innermost last, each with its path in the client's body.
#[derive(Clone, Debug)]
pub struct Cursor<'t> {
    pub root: &'t Tree,
    /// The client's HTTP request.
    head: &'t Tree,
    stack: Vec<(&'t Tree, String)>,
    /// Records what rules read, if it is wanted.
    record: Option<ReadRecord>,
}

impl<'t> Cursor<'t> {
    pub fn new(root: &'t Tree) -> Cursor<'t> {
        Cursor { root, head: &Tree::Null, stack: Vec::new(), record: None }
    }

    pub fn with_head(self, head: &'t Tree) -> Cursor<'t> {
        Cursor { head, ..self }
    }

    /// Rules add what they read to the record.
    pub fn with_record(self, record: ReadRecord) -> Cursor<'t> {
        Cursor { record: Some(record), ..self }
    }

    pub fn into_record(self) -> ReadRecord {
        self.record.unwrap_or_default()
    }

    /// Records that a rule, or the conditions of a group, were applied to the current node.
    pub fn record_reads(&mut self, reads: &Arc<RuleReads>, kind: ReadKind) {
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
    pub fn recorded_path(&self) -> Option<String> {
        self.record.as_ref().map(|_| self.path())
    }

    pub fn enter(&mut self, node: &'t Tree, path: String) {
        self.stack.push((node, path));
    }

    pub fn leave(&mut self) {
        self.stack.pop();
    }

    /// The path of the current node in the client's body.
    pub fn path(&self) -> String {
        self.stack.last().map_or(String::new(), |(_, path)| path.clone())
    }

    /// The position of the current node in its list.
    pub fn position(&self) -> Option<usize> {
        let (_, path) = self.stack.last()?;
        path.strip_suffix(']')?.rsplit('[').next()?.parse().ok()
    }

    /// The element of the innermost `each`, or the whole document.
    pub fn current(&self) -> &'t Tree {
        self.at(1).0
    }

    fn at(&self, depth: usize) -> (&'t Tree, &str) {
        match self.stack.len().checked_sub(depth).and_then(|i| self.stack.get(i)) {
            Some((node, path)) => (node, path),
            None => (self.root, ""),
        }
    }

    fn start(&self, from: SelectorStart) -> (&'t Tree, &str) {
        match from {
            SelectorStart::Root => (self.root, ""),
            SelectorStart::Current => self.at(1),
            SelectorStart::Parent => self.at(2),
            SelectorStart::Head => (self.head, ""),
        }
    }
}

impl Selector {
    /// The first node that matches.
    pub fn one<'t>(&self, cursor: &Cursor<'t>) -> Option<&'t Tree> {
        let (start, _) = cursor.start(self.start);
        match &self.path {
            SelectorPath::Steps(steps) => walk(start, steps),
            SelectorPath::Children(steps) => children(walk(start, steps)?).next().map(|(_, node)| node),
            SelectorPath::Query(query) => {
                js_path_process(query, start).ok()?.into_iter().next().map(|found| found.val())
            }
        }
    }

    /// All nodes that match, each with its path for an error message: `messages[2]`.
    pub fn many<'t>(&self, cursor: &Cursor<'t>) -> Vec<(&'t Tree, String)> {
        let (start, base) = cursor.start(self.start);
        match &self.path {
            SelectorPath::Steps(steps) => {
                walk(start, steps).map(|node| (node, join(base, steps))).into_iter().collect()
            }
            SelectorPath::Children(steps) => {
                let Some(list) = walk(start, steps) else { return Vec::new() };
                let base = join(base, steps);
                children(list).map(|(key, node)| (node, format!("{base}{key}"))).collect()
            }
            SelectorPath::Query(query) => match js_path_process(query, start) {
                Ok(found) => found
                    .into_iter()
                    .map(|f| {
                        let path = plain_path(&f.clone().path());
                        (f.val(), format!("{base}{path}").trim_start_matches('.').to_owned())
                    })
                    .collect(),
                Err(_) => Vec::new(),
            },
        }
    }

    /// The path as the client wrote it: `stream_options.include_usage`.
    pub fn param(&self, cursor: &Cursor) -> String {
        if let Some((_, name)) = self.head_parameter() {
            return name.to_owned();
        }
        let (_, base) = cursor.start(self.start);
        match &self.path {
            SelectorPath::Steps(steps) | SelectorPath::Children(steps) => join(base, steps),
            SelectorPath::Query(_) => base.to_owned(),
        }
    }
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

fn children(node: &Tree) -> Box<dyn Iterator<Item = (String, &Tree)> + '_> {
    match (node.as_list(), node.as_map()) {
        (Some(items), _) => Box::new(items.iter().enumerate().map(|(i, n)| (format!("[{i}]"), n))),
        (_, Some(entries)) => Box::new(entries.iter().map(|(k, n)| (format!(".{k}"), n))),
        (None, None) => Box::new(std::iter::empty()),
    }
}

fn join(base: &str, steps: &[SelectorStep]) -> String {
    let mut path = base.to_owned();
    for step in steps {
        match step {
            SelectorStep::Name(name) if path.is_empty() => path.push_str(name),
            SelectorStep::Name(name) => path.push_str(&format!(".{name}")),
            SelectorStep::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// `$['messages'][2]['content']` → `.messages[2].content`
fn plain_path(path: &str) -> String {
    path.trim_start_matches('$').replace("['", ".").replace("']", "")
}
