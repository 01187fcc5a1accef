//! Selectors: JSONPath over raw JSON. `$` is the whole event or body, `@` the node at hand, `^` the node around it.
//!
//! Parsed at load. A singular path is lowered to direct steps; the engine runs only for a path that can give many.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::field_reader::Cx;
use jsonpath_rust::parser::model::{JpQuery, Segment, Selector as Pick};
use jsonpath_rust::parser::parse_json_path;

#[derive(Clone, Debug)]
pub struct Selector {
    /// As it was written.
    pub text: String,
    pub(crate) from: From,
    pub(crate) way: Way,
}

/// The node that a selector starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Root,
    Here,
    Around,
}

#[derive(Clone, Debug)]
pub(crate) enum Way {
    Steps(Vec<Step>),
    /// Steps, then every child of what stands there: `$.choices[*]`.
    Children(Vec<Step>),
    Engine(JpQuery),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Name(String),
    Index(usize),
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

    /// Each step as it is written, `.name` or `[0]`; none for a path that is not that simple.
    pub(crate) fn steps(&self) -> Option<Vec<String>> {
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
