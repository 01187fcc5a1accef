//! The path of a selector: direct steps, or a query for the JSONPath library.

use jsonpath_rust::parser::model::{JpQuery, Segment, Selector as JpSelector};
use jsonpath_rust::parser::parse_json_path;

#[derive(Clone, Debug)]
pub(crate) enum SelectorPath {
    Steps(Vec<SelectorStep>),
    /// Steps, then every child of the node found: `$.choices[*]`.
    Children(Vec<SelectorStep>),
    Query(JpQuery),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorStep {
    Name(String),
    Index(usize),
}

/// Why a path cannot be parsed.
pub(super) struct PathError {
    /// Where, in the text of the selector.
    pub at: usize,
    pub why: String,
}

/// Parses what follows the start of the selector `text`.
pub(super) fn parse(rest: &str, text: &str) -> Result<SelectorPath, PathError> {
    if let Some(path) = plain_path(rest) {
        return Ok(path);
    }
    match parse_json_path(&format!("${rest}")) {
        Ok(query) => match name_with_space(&query, text) {
            None => Ok(lower(query)),
            Some(name) => {
                let why = format!("write a name with a space as `['{name}']`");
                Err(PathError { at: text.find(name).unwrap_or(0), why })
            }
        },
        Err(error) => {
            let at = parse_error_offset(&error.to_string(), text);
            let why = match &text[at..] {
                "" => "unexpected end".to_owned(),
                rest => format!("unexpected `{rest}`"),
            };
            Err(PathError { at, why })
        }
    }
}

/// Parses names and indexes, `.usage.counts[0]`, perhaps with `[*]` at the end: nearly all selectors. The library takes
/// a hundred times as long.
fn plain_path(mut rest: &str) -> Option<SelectorPath> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
            if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                return None;
            }
            steps.push(SelectorStep::Name(name[..end].to_owned()));
            rest = &name[end..];
        } else if rest == "[*]" {
            return Some(SelectorPath::Children(steps));
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            let is_index = index == "0" || index.bytes().all(|b| b.is_ascii_digit()) && !index.starts_with('0');
            steps.push(SelectorStep::Index(index.parse().ok().filter(|_| is_index && index.len() < 10)?));
            rest = after;
        }
    }
    Some(SelectorPath::Steps(steps))
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

#[cfg(test)]
#[path = "../../../tests/unit/language_selector_path.rs"]
mod tests;
