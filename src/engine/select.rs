//! Evaluates selectors: finds the nodes of a JSON document that a compiled selector names.

use crate::domain::Tree;
use crate::mapping::language::selector::{From, Selector, Step, Way};
use jsonpath_rust::query::js_path_process;

/// The nodes that a selector may start from, innermost last, each with its path in the client's body.
#[derive(Clone, Debug)]
pub struct Cursor<'t> {
    pub root: &'t Tree,
    stack: Vec<(&'t Tree, String)>,
}

impl<'t> Cursor<'t> {
    pub fn new(root: &'t Tree) -> Cursor<'t> {
        Cursor { root, stack: Vec::new() }
    }

    pub fn enter(&mut self, node: &'t Tree, path: String) {
        self.stack.push((node, path));
    }

    pub fn leave(&mut self) {
        self.stack.pop();
    }

    /// Which element of its list the node at hand is.
    pub fn position(&self) -> Option<usize> {
        let (_, path) = self.stack.last()?;
        path.strip_suffix(']')?.rsplit('[').next()?.parse().ok()
    }

    fn at(&self, depth: usize) -> (&'t Tree, &str) {
        match self.stack.len().checked_sub(depth).and_then(|i| self.stack.get(i)) {
            Some((node, path)) => (node, path),
            None => (self.root, ""),
        }
    }

    fn start(&self, from: From) -> (&'t Tree, &str) {
        match from {
            From::Root => (self.root, ""),
            From::Here => self.at(1),
            From::Around => self.at(2),
        }
    }
}

impl Selector {
    /// The one node that this selector means (the first, where it can give many).
    pub fn one<'t>(&self, cursor: &Cursor<'t>) -> Option<&'t Tree> {
        let (start, _) = cursor.start(self.from);
        match &self.way {
            Way::Steps(steps) => walk(start, steps),
            Way::Children(steps) => children(walk(start, steps)?).next().map(|(_, node)| node),
            Way::Engine(query) => js_path_process(query, start).ok()?.into_iter().next().map(|found| found.val()),
        }
    }

    /// All nodes, each with its path for an error message: `messages[2]`.
    pub fn many<'t>(&self, cursor: &Cursor<'t>) -> Vec<(&'t Tree, String)> {
        let (start, base) = cursor.start(self.from);
        match &self.way {
            Way::Steps(steps) => walk(start, steps).map(|node| (node, join(base, steps))).into_iter().collect(),
            Way::Children(steps) => {
                let Some(list) = walk(start, steps) else { return Vec::new() };
                let base = join(base, steps);
                children(list).map(|(key, node)| (node, format!("{base}{key}"))).collect()
            }
            Way::Engine(query) => match js_path_process(query, start) {
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

    /// How a person would name this place in their own request: `stream_options.include_usage`.
    pub fn param(&self, cursor: &Cursor) -> String {
        let (_, base) = cursor.start(self.from);
        match &self.way {
            Way::Steps(steps) | Way::Children(steps) => join(base, steps),
            Way::Engine(_) => base.to_owned(),
        }
    }
}

fn walk<'t>(mut node: &'t Tree, steps: &[Step]) -> Option<&'t Tree> {
    for step in steps {
        node = match step {
            Step::Name(name) => node.get(name)?,
            Step::Index(index) => node.at(*index)?,
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

fn join(base: &str, steps: &[Step]) -> String {
    let mut path = base.to_owned();
    for step in steps {
        match step {
            Step::Name(name) if path.is_empty() => path.push_str(name),
            Step::Name(name) => path.push_str(&format!(".{name}")),
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// `$['messages'][2]['content']` → `.messages[2].content`
fn plain_path(path: &str) -> String {
    path.trim_start_matches('$').replace("['", ".").replace("']", "")
}
