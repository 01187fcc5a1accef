//! Selectors: JSONPath over raw JSON. `$` is the whole event or body, `@` the current node, `^` its parent.
//!
//! Parsed at load. A singular path consists of direct steps; the JSONPath library runs only for other paths.

use super::selector_limits;
use super::selector_path;
use super::selector_path::PathError;
pub(crate) use super::selector_path::SelectorPath;
pub use super::selector_path::SelectorStep;
use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean};
use crate::domain::RequestHead;
use crate::mapping::grammar::collections::entries;
use crate::mapping::grammar::notation::{is_token, notation_schema};
use crate::mapping::grammar::{At, FromNode};
use crate::mapping::source::field_reader::{LoadContext, MessageHead, text_of};
use crate::mapping::source::yaml::{Entry, Node};
use jsonpath_rust::parser::model::{Segment, Selector as JpSelector};
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
    /// A node further out: how many nodes around the current one.
    Outer(usize),
    /// The head of an HTTP message: `path.model` of a client's request, `response.status` of a backend.
    Head,
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
    /// innermost `each`) or `^` (the node around the current node), or `$NAME` (the element of an `each` with `as: NAME`).
    Selector, "selector", { "type": "string", "pattern": "^[$@^]" }
}

/// A selector, or what is read of the client's HTTP request.
#[derive(Clone, Debug)]
pub struct FieldSelector(pub Selector);

impl<'n> FromNode<'n> for FieldSelector {
    fn from_node(node: &'n Node, at: At) -> Option<FieldSelector> {
        let head = |text| [MessageHead::Request, MessageHead::Response].map(|head| Selector::parse_head(text, head));
        let head = node.as_text().and_then(|text| head(text).into_iter().flatten().next());
        head.or_else(|| Selector::from_node(node, at)).map(FieldSelector)
    }
}

notation_schema! {
    /// JSONPath (RFC 9535) that begins with `$` (the whole event or body), `@` (the current node: the element of the
    /// innermost `each`) or `^` (the node around the current node), or `$NAME` (the element of an `each` with `as: NAME`).
    /// For request scalars also `path.NAME`, `query.NAME` and `headers.NAME` of the client's HTTP request; for events
    /// `response.status` and `response.headers.NAME` of the backend's response.
    FieldSelector, "selector", { "type": "string", "pattern": "^([$@^]|(path|query|headers|response)\\.)" }
}

impl Selector {
    /// Whether a text is meant as a selector.
    pub fn looks_like(text: &str) -> bool {
        let mut chars = text.chars();
        matches!(chars.next(), Some('$' | '@' | '^')) && matches!(chars.next(), None | Some('.' | '['))
    }

    /// Whether a text is meant as a selector here, where lists may have names.
    pub fn is_meant(text: &str, cx: LoadContext) -> bool {
        let has_names = cx.selectors.loops.iter().any(Option::is_some);
        Selector::looks_like(text)
            || (has_names && loop_name(text).is_some())
            || Selector::parse_head(text, cx.selectors.head).is_some()
    }

    /// The selector of what can be read of the head of an HTTP message.
    pub fn parse_head(text: &str, head: MessageHead) -> Option<Selector> {
        let names = match head {
            MessageHead::None => return None,
            MessageHead::Request => {
                let (part, name) = text.split_once('.').filter(|(part, _)| RequestHead::PARTS.contains(part))?;
                vec![part, name]
            }
            MessageHead::Response if text == "response.status" => vec!["response", "status"],
            MessageHead::Response => vec!["response", "headers", text.strip_prefix("response.headers.")?],
        };
        let name = names.last().filter(|name| is_token(name))?;
        let is_header = names.contains(&"headers");
        let name = if is_header { name.to_ascii_lowercase() } else { (*name).to_owned() };
        let parts = names[..names.len() - 1].iter().map(|part| (*part).to_owned());
        let steps = parts.chain([name]).map(SelectorStep::Name).collect();
        Some(Selector { text: text.to_owned(), start: SelectorStart::Head, path: SelectorPath::Steps(steps) })
    }

    /// What it reads of the client's HTTP request: `path` and `model` for `path.model`.
    pub fn head_parameter(&self) -> Option<(&str, &str)> {
        match self.head_names()?[..] {
            [part, name] if part != "response" => Some((part, name)),
            _ => None,
        }
    }

    /// What it reads of the head of a backend's response: a header, or the status (`None`).
    pub fn response_part(&self) -> Option<Option<&str>> {
        match self.head_names()?[..] {
            ["response", "headers", name] => Some(Some(name)),
            ["response", _] => Some(None),
            _ => None,
        }
    }

    /// The names in a selector of the head of an HTTP message.
    fn head_names(&self) -> Option<Vec<&str>> {
        let SelectorPath::Steps(steps) = &self.path else { return None };
        let names = steps.iter().map(|step| match step {
            SelectorStep::Name(name) => Some(name.as_str()),
            SelectorStep::Index(_) => None,
        });
        names.collect::<Option<Vec<&str>>>().filter(|_| self.start == SelectorStart::Head)
    }

    pub fn parse(text: &str, span: Span, cx: LoadContext) -> Option<Selector> {
        if let Some(head) = Selector::parse_head(text, cx.selectors.head) {
            return Some(head);
        }
        let mut sign = 1;
        let start = match text.chars().next() {
            Some('$') if loop_name(text).is_some() => {
                let name = loop_name(text).unwrap_or_default();
                sign += name.len();
                named_start(name, text, span, cx)?
            }
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
        let PathError { at, why } = match selector_path::parse(&text[sign..], text) {
            Ok(path) => {
                if let SelectorPath::Query(query) = &path
                    && let Some(message) = selector_limits::query_error(query)
                {
                    cx.error(Code::BadSelector, span, message);
                    return None;
                }
                return Some(Selector { text: text.to_owned(), start, path });
            }
            Err(error) => error,
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

    /// Whether it may find several nodes.
    pub fn is_over_several(&self) -> bool {
        matches!(self.path, SelectorPath::Children(_) | SelectorPath::Query(_))
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

/// `$chunk.index` → `chunk`
fn loop_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$').filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    let end = rest.find(|c: char| !is_name_character(c)).unwrap_or(rest.len());
    (rest.len() == end || rest[end..].starts_with(['.', '['])).then_some(&rest[..end])
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The start of a selector that begins with the name of a list around it.
fn named_start(name: &str, text: &str, span: Span, cx: LoadContext) -> Option<SelectorStart> {
    let loops = cx.selectors.loops;
    let Some(at) = loops.iter().rposition(|known| known.as_deref() == Some(name)) else {
        let help = match loops.iter().flatten().map(|name| format!("`${name}`")).collect::<Vec<_>>().join(", ") {
            known if known.is_empty() => "`as: NAME` next to `each:` gives its element the name `$NAME`".to_owned(),
            known => format!("the lists around it have the names {known}"),
        };
        let rest = &text[1 + name.len()..];
        let meant = match did_you_mean(name, loops.iter().flatten().map(String::as_str)) {
            Some(near) => format!("${near}{rest}"),
            None => format!("$.{name}{rest}"),
        };
        cx.add(
            Diagnostic::new(Code::BadSelector, span, format!("no `each:` around this has the name `{name}`"))
                .label(format!("did you mean `{meant}`?"))
                .help(help),
        );
        return None;
    };
    Some(match loops.len() - 1 - at {
        0 => SelectorStart::Current,
        1 => SelectorStart::Parent,
        around => SelectorStart::Outer(around),
    })
}

/// `as:` next to `each:`: a name for its element.
#[derive(Clone, Debug)]
pub struct LoopName(pub String);

impl<'n> FromNode<'n> for LoopName {
    fn from_node(node: &'n Node, at: At) -> Option<LoopName> {
        let name = text_of(node, at.cx)?;
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_name_character) {
            at.cx.wrong_value(node, "a name", "`chunk`");
            return None;
        }
        Some(LoopName(name.to_owned()))
    }
}

notation_schema! {
    /// A name for the element of `each:`, which selectors inside can start with: `$NAME.index`.
    LoopName, "name", { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$" }
}
