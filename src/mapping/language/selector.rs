//! Selectors: JSONPath over raw JSON. `$` is the whole event or body, `@` the current node, `^` its parent.
//!
//! Parsed at load. A singular path is lowered to direct steps; the JSONPath library runs only for other paths.

use super::selector_limits;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::RequestHead;
use crate::mapping::grammar::collections::entries;
use crate::mapping::grammar::notation::{is_token, notation_schema};
use crate::mapping::grammar::{At, FromNode};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node};
use jsonpath_rust::parser::model::{JpQuery, Segment, Selector as JpSelector};
use jsonpath_rust::parser::parse_json_path;
use schemars::{JsonSchema, json_schema};

#[derive(Clone, Debug)]
pub struct Selector {
    /// The selector as written.
    pub text: String,
    pub(crate) start: SelectorStart,
    pub(crate) path: SelectorPath,
}

/// The node at which a selector starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectorStart {
    Root,
    Current,
    Parent,
    /// The client's HTTP request: `path.model`, `query.key`, `headers.x-name`.
    Head,
}

#[derive(Clone, Debug)]
pub(crate) enum SelectorPath {
    Steps(Vec<SelectorStep>),
    /// Steps, then every child of the node found: `$.choices[*]`.
    Children(Vec<SelectorStep>),
    Query(JpQuery),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SelectorStep {
    Name(String),
    Index(usize),
}

impl<'n> FromNode<'n> for Selector {
    fn from_node(node: &'n Node, at: At) -> Option<Selector> {
        Selector::parse(text_of(node, at.cx)?, node.span, at.cx)
    }
}

/// A map with selectors as keys; null counts as an empty map.
#[derive(Clone, Debug)]
pub struct BySelector<T>(pub Vec<(Selector, T)>);

impl<T> Default for BySelector<T> {
    fn default() -> Self {
        BySelector(Vec::new())
    }
}

impl<T> IntoIterator for BySelector<T> {
    type Item = (Selector, T);
    type IntoIter = std::vec::IntoIter<(Selector, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'n, T: FromNode<'n>> FromNode<'n> for BySelector<T> {
    fn from_node(node: &'n Node, at: At) -> Option<Self> {
        let read = |e: &'n Entry| {
            let value = T::from_node(&e.value, at);
            Some((Selector::parse(&e.key, e.key_span, at.cx)?, value?))
        };
        Some(BySelector(entries(node, at)?.iter().filter_map(read).collect()))
    }
}

notation_schema!([T: JsonSchema] BySelector<T>, |generator| {
    json_schema!({
        "type": ["null", "object"],
        "propertyNames": { "pattern": "^[$@^]" },
        "additionalProperties": generator.subschema_for::<T>(),
    })
});

notation_schema! {
    /// JSONPath (RFC 9535) that begins with `$` (the whole event or body), `@` (the current node: the element of the
    /// innermost `each`) or `^` (the node around the current node).
    Selector, "selector", { "type": "string", "pattern": "^[$@^]" }
}

/// A selector, or what is read of the client's HTTP request.
#[derive(Clone, Debug)]
pub struct FieldSelector(pub Selector);

impl<'n> FromNode<'n> for FieldSelector {
    fn from_node(node: &'n Node, at: At) -> Option<FieldSelector> {
        let head = node.as_text().and_then(Selector::parse_head);
        head.or_else(|| Selector::from_node(node, at)).map(FieldSelector)
    }
}

notation_schema! {
    /// JSONPath (RFC 9535) that begins with `$` (the whole event or body), `@` (the current node: the element of the
    /// innermost `each`) or `^` (the node around the current node). For request scalars also `path.NAME`, `query.NAME`
    /// and `headers.NAME` of the client's HTTP request.
    FieldSelector, "selector", { "type": "string", "pattern": "^([$@^]|(path|query|headers)\\.)" }
}

impl Selector {
    /// Whether a text is meant as a selector.
    pub fn looks_like(text: &str) -> bool {
        let mut chars = text.chars();
        matches!(chars.next(), Some('$' | '@' | '^')) && matches!(chars.next(), None | Some('.' | '['))
    }

    /// The selector of a parameter or a header of the client's HTTP request.
    pub fn parse_head(text: &str) -> Option<Selector> {
        let (part, name) = text.split_once('.')?;
        if !RequestHead::PARTS.contains(&part) || !is_token(name) {
            return None;
        }
        let name = if part == "headers" { name.to_ascii_lowercase() } else { name.to_owned() };
        let steps = vec![SelectorStep::Name(part.to_owned()), SelectorStep::Name(name)];
        Some(Selector { text: text.to_owned(), start: SelectorStart::Head, path: SelectorPath::Steps(steps) })
    }

    /// What it reads of the client's HTTP request: `path` and `model` for `path.model`.
    pub fn head_parameter(&self) -> Option<(&str, &str)> {
        match (&self.path, self.start) {
            (SelectorPath::Steps(steps), SelectorStart::Head) => match &steps[..] {
                [SelectorStep::Name(part), SelectorStep::Name(name)] => Some((part, name)),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn parse(text: &str, span: Span, cx: LoadContext) -> Option<Selector> {
        let start = match text.chars().next() {
            Some('$') => SelectorStart::Root,
            Some('@') => SelectorStart::Current,
            Some('^') => SelectorStart::Parent,
            _ => {
                cx.add(
                    Diagnostic::new(Code::BadSelector, span, format!("`{text}` is not a selector"))
                        .label(format!("did you mean `$.{text}`?"))
                        .help("`$` is the whole document, `@` the current node, `^` its parent"),
                );
                return None;
            }
        };
        if let Some(message) = selector_limits::text_error(text) {
            cx.error(Code::BadSelector, span, message);
            return None;
        }
        let path = format!("${}", &text[1..]);
        let (at, why) = match parse_json_path(&path) {
            Ok(query) => match name_with_space(&query, text) {
                None => {
                    if let Some(message) = selector_limits::query_error(&query) {
                        cx.error(Code::BadSelector, span, message);
                        return None;
                    }
                    return Some(Selector { text: text.to_owned(), start, path: lower(query) });
                }
                Some(name) => (text.find(name).unwrap_or(0), format!("write a name with a space as `['{name}']`")),
            },
            Err(error) => {
                let at = parse_error_offset(&error.to_string(), text);
                let why = match &text[at..] {
                    "" => "unexpected end".to_owned(),
                    rest => format!("unexpected `{rest}`"),
                };
                (at, why)
            }
        };
        // Point at the error inside the path. With YAML escapes the offsets differ, so point at the whole scalar.
        let written = cx.sources.within(span, text);
        let span = if (written.end - written.start) as usize == text.len() {
            let start = written.start as usize + at.min(text.len() - 1);
            Span::new(span.file, start, written.end as usize)
        } else {
            span
        };
        cx.add(
            Diagnostic::new(Code::BadSelector, span, format!("`{text}` is not valid JSONPath: {why}"))
                .help("`$.a.b`, `$['a b']`, `$.list[0]`, `$.list[*]`, `$.list[?@.type == 'x']`"),
        );
        None
    }

    /// Whether it finds at most one node.
    pub fn is_singular(&self) -> bool {
        match &self.path {
            SelectorPath::Steps(_) => true,
            SelectorPath::Children(_) => false,
            SelectorPath::Query(query) => {
                let single = |s: &Segment| matches!(s, Segment::Selector(JpSelector::Name(_) | JpSelector::Index(_)));
                query.segments.iter().all(single)
            }
        }
    }

    /// The steps in notation, `.name` or `[0]`. `None` for a path with other steps.
    pub(crate) fn steps(&self) -> Option<Vec<String>> {
        match &self.path {
            SelectorPath::Steps(steps) => Some(
                steps
                    .iter()
                    .map(|step| match step {
                        SelectorStep::Name(name) => format!(".{name}"),
                        SelectorStep::Index(index) => format!("[{index}]"),
                    })
                    .collect(),
            ),
            SelectorPath::Children(_) | SelectorPath::Query(_) => None,
        }
    }

    /// The names of the members on the way from the root. `None` for a path with other steps.
    pub(crate) fn members(&self) -> Option<Vec<String>> {
        let SelectorPath::Steps(steps) = &self.path else { return None };
        let name = |step: &SelectorStep| match step {
            SelectorStep::Name(name) => Some(name.clone()),
            SelectorStep::Index(_) => None,
        };
        let names: Option<Vec<String>> = steps.iter().map(name).collect();
        names.filter(|names| self.start == SelectorStart::Root && !names.is_empty())
    }

    /// The top-level member that this selector reads, if it starts at the root.
    pub fn root_member(&self) -> Option<&str> {
        if self.start != SelectorStart::Root {
            return None;
        }
        match &self.path {
            SelectorPath::Steps(steps) | SelectorPath::Children(steps) => match steps.first()? {
                SelectorStep::Name(name) => Some(name),
                SelectorStep::Index(_) => None,
            },
            SelectorPath::Query(query) => match query.segments.first()? {
                Segment::Selector(JpSelector::Name(name)) => Some(name),
                _ => None,
            },
        }
    }
}

fn lower(query: JpQuery) -> SelectorPath {
    let mut steps = Vec::new();
    let last = query.segments.len().saturating_sub(1);
    for (i, segment) in query.segments.iter().enumerate() {
        match segment {
            Segment::Selector(JpSelector::Name(name)) => steps.push(SelectorStep::Name(name.clone())),
            Segment::Selector(JpSelector::Index(index)) if *index >= 0 => {
                steps.push(SelectorStep::Index(*index as usize))
            }
            Segment::Selector(JpSelector::Wildcard) if i == last => return SelectorPath::Children(steps),
            Segment::Selector(_) | Segment::Selectors(_) | Segment::Descendant(_) => return SelectorPath::Query(query),
        }
    }
    SelectorPath::Steps(steps)
}

/// Where the parser stopped. Only its message contains the position: ` --> 1:7`, counted in characters from 1.
fn parse_error_offset(message: &str, text: &str) -> usize {
    let column =
        message.split_once("--> 1:").and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<usize>().ok());
    text.chars().take(column.unwrap_or(1).saturating_sub(1)).map(char::len_utf8).sum()
}

/// `$.two words`: the library accepts this as one name, unlike other JSONPath implementations.
fn name_with_space<'q>(query: &'q JpQuery, text: &str) -> Option<&'q str> {
    query.segments.iter().find_map(|segment| match segment {
        Segment::Selector(JpSelector::Name(name)) if name.contains(' ') && text.contains(&format!(".{name}")) => {
            Some(name.as_str())
        }
        _ => None,
    })
}
