//! Selectors: JSONPath over raw JSON. `$` is the whole event or body, `@` the node at hand, `^` the node around it.
//!
//! Parsed at load. A singular path is lowered to direct steps; the engine runs only for a path that can give many.

use super::fields::Cx;
use crate::canon::Tree;
use crate::diag::{Code, Diagnostic, Span};
use jsonpath_rust::parser::model::{JpQuery, Segment, Selector as Pick};
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;

#[derive(Clone, Debug)]
pub struct Selector {
    /// As it was written.
    pub text: String,
    pub(super) from: From,
    way: Way,
}

/// The node that a selector starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Root,
    Here,
    Around,
}

#[derive(Clone, Debug)]
enum Way {
    Steps(Vec<Step>),
    /// Steps, then every child of what stands there: `$.choices[*]`.
    Children(Vec<Step>),
    Engine(JpQuery),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

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
    /// Does this text ask to be read as a selector?
    pub fn looks_like(text: &str) -> bool {
        let mut chars = text.chars();
        matches!(chars.next(), Some('$' | '@' | '^')) && matches!(chars.next(), None | Some('.' | '['))
    }

    pub fn parse(text: &str, span: Span, cx: Cx) -> Option<Selector> {
        let from = match text.chars().next() {
            Some('$') => From::Root,
            Some('@') => From::Here,
            Some('^') => From::Around,
            _ => {
                cx.add(
                    Diagnostic::new(Code::BadSelector, span, format!("`{text}` is not a selector"))
                        .label(format!("did you mean `$.{text}`?"))
                        .help("`$` is the whole, `@` the node at hand, `^` the node around it"),
                );
                return None;
            }
        };
        let path = format!("${}", &text[1..]);
        let (at, why) = match parse_json_path(&path) {
            Ok(query) => match spaced_name(&query, text) {
                None => return Some(Selector { text: text.to_owned(), from, way: lower(query) }),
                Some(name) => (text.find(name).unwrap_or(0), format!("a name with a space stands in `['{name}']`")),
            },
            Err(error) => {
                let at = stopped_at(&error.to_string(), text);
                let why = match &text[at..] {
                    "" => "it breaks off".to_owned(),
                    rest => format!("it cannot go on with `{rest}`"),
                };
                (at, why)
            }
        };
        // The carets stand where the path goes wrong; an escape in the YAML leaves them under all of it.
        let written = cx.sources.within(span, text);
        let span = if (written.end - written.start) as usize == text.len() {
            let start = written.start as usize + at.min(text.len() - 1);
            Span::new(span.file, start, written.end as usize)
        } else {
            span
        };
        cx.add(
            Diagnostic::new(Code::BadSelector, span, format!("`{text}` is not JSONPath: {why}"))
                .help("`$.a.b`, `$['a b']`, `$.list[0]`, `$.list[*]`, `$.list[?@.type == 'x']`"),
        );
        None
    }

    /// The one node that this selector means (the first, where it can give many).
    pub fn one<'t>(&self, cursor: &Cursor<'t>) -> Option<&'t Tree> {
        let (start, _) = cursor.start(self.from);
        match &self.way {
            Way::Steps(steps) => walk(start, steps),
            Way::Children(steps) => children(walk(start, steps)?).next().map(|(_, node)| node),
            Way::Engine(query) => js_path_process(query, start).ok()?.into_iter().next().map(|found| found.val()),
        }
    }

    /// Can it find no more than one node?
    pub fn is_single(&self) -> bool {
        match &self.way {
            Way::Steps(_) => true,
            Way::Children(_) => false,
            Way::Engine(query) => {
                let single = |s: &Segment| matches!(s, Segment::Selector(Pick::Name(_) | Pick::Index(_)));
                query.segments.iter().all(single)
            }
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

    /// Each step as it is written, `.name` or `[0]`; none for a path that is not that simple.
    pub(super) fn steps(&self) -> Option<Vec<String>> {
        match &self.way {
            Way::Steps(steps) => Some(
                steps
                    .iter()
                    .map(|step| match step {
                        Step::Name(name) => format!(".{name}"),
                        Step::Index(index) => format!("[{index}]"),
                    })
                    .collect(),
            ),
            Way::Children(_) | Way::Engine(_) => None,
        }
    }

    /// The member of the body that this selector reads, if it starts at the whole body.
    pub fn first_key(&self) -> Option<&str> {
        if self.from != From::Root {
            return None;
        }
        match &self.way {
            Way::Steps(steps) | Way::Children(steps) => match steps.first()? {
                Step::Name(name) => Some(name),
                Step::Index(_) => None,
            },
            Way::Engine(query) => match query.segments.first()? {
                Segment::Selector(Pick::Name(name)) => Some(name),
                _ => None,
            },
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

fn lower(query: JpQuery) -> Way {
    let mut steps = Vec::new();
    let last = query.segments.len().saturating_sub(1);
    for (i, segment) in query.segments.iter().enumerate() {
        match segment {
            Segment::Selector(Pick::Name(name)) => steps.push(Step::Name(name.clone())),
            Segment::Selector(Pick::Index(index)) if *index >= 0 => steps.push(Step::Index(*index as usize)),
            Segment::Selector(Pick::Wildcard) if i == last => return Way::Children(steps),
            Segment::Selector(_) | Segment::Selectors(_) | Segment::Descendant(_) => return Way::Engine(query),
        }
    }
    Way::Steps(steps)
}

/// Where the parser stopped. It says so in its message only: ` --> 1:7`, counted in characters from 1.
fn stopped_at(message: &str, text: &str) -> usize {
    let column =
        message.split_once("--> 1:").and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<usize>().ok());
    text.chars().take(column.unwrap_or(1).saturating_sub(1)).map(char::len_utf8).sum()
}

/// `$.two words`: the library takes it for one name, which no other reader of JSONPath does.
fn spaced_name<'q>(query: &'q JpQuery, text: &str) -> Option<&'q str> {
    query.segments.iter().find_map(|segment| match segment {
        Segment::Selector(Pick::Name(name)) if name.contains(' ') && text.contains(&format!(".{name}")) => {
            Some(name.as_str())
        }
        _ => None,
    })
}
