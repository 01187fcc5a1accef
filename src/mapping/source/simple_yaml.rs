//! Parses simple YAML: what mapping files and schemas consist of nearly always. Anything else is left to serde-saphyr,
//! which decides and explains: tags, anchors, aliases, merge keys, duplicate keys, unusual numbers, several documents,
//! mistakes, and files near the limits.
//!
//! The scanner is the same. serde-saphyr passes every node through serde, with two locations of ten fields each, and
//! takes four times as long.

use super::yaml::{Entry, MAX_DEPTH, MAX_NODES, Node, YamlKind};
use crate::diagnostics::{FileId, Span};
use granit_parser::{Event, Parser, ScalarStyle, StrInput};

/// Well below the limits, so that it does not matter what exactly is counted.
const MOST_EVENTS: usize = MAX_NODES / 2;
const MOST_LEVELS: usize = MAX_DEPTH / 2;

/// The document, if it is simple.
pub fn parse(file: FileId, text: &str) -> Option<Node> {
    let options = granit_parser::options! { emit_comments: false };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut document = Document { parser, file, end: text.len(), events: 0 };
    matches!(document.next()?.0, Event::StreamStart).then_some(())?;
    matches!(document.next()?.0, Event::DocumentStart(_, None)).then_some(())?;
    let first = document.next()?;
    let root = document.node(first, MOST_LEVELS)?;
    matches!(document.next()?.0, Event::DocumentEnd).then_some(())?;
    matches!(document.next()?.0, Event::StreamEnd).then_some(root)
}

struct Document<'t> {
    parser: Parser<'t, StrInput<'t>>,
    file: FileId,
    end: usize,
    events: usize,
}

type Spanned<'t> = (Event<'t>, Span);

impl<'t> Document<'t> {
    fn next(&mut self) -> Option<Spanned<'t>> {
        self.events += 1;
        let (event, span) = self.parser.next().filter(|_| self.events <= MOST_EVENTS)?.ok()?;
        let (start, end) = (span.start.byte_offset()?.min(self.end), span.end.byte_offset()?.min(self.end));
        Some((event, Span::new(self.file, start, end.max(start))))
    }

    fn node(&mut self, (event, span): Spanned<'t>, levels: usize) -> Option<Node> {
        let kind = match event {
            Event::Scalar(text, ScalarStyle::Plain, 0, None) => plain(&text)?,
            Event::Scalar(text, _, 0, None) => YamlKind::Text(text.into_owned()),
            Event::SequenceStart(_, 0, None) if levels > 0 => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break YamlKind::List(items),
                        item => items.push(self.node(item, levels - 1)?),
                    }
                }
            }
            Event::MappingStart(_, 0, None) if levels > 0 => {
                let mut entries = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, _) => break YamlKind::Map(entries),
                        key => self.entry(key, &mut entries, levels - 1)?,
                    }
                }
            }
            _ => return None,
        };
        Some(Node { span, kind })
    }

    fn entry(&mut self, (event, key_span): Spanned<'t>, entries: &mut Vec<Entry>, levels: usize) -> Option<()> {
        let Event::Scalar(key, style, 0, None) = event else { return None };
        let is_name = style != ScalarStyle::Plain || matches!(plain(&key), Some(YamlKind::Text(_) | YamlKind::Int(_)));
        if !is_name || key == "<<" || entries.iter().any(|entry| *entry.key == *key) {
            return None;
        }
        let value = self.next()?;
        let value = self.node(value, levels)?;
        entries.push(Entry { key: key.into_owned(), key_span, value });
        Some(())
    }
}

/// The value of a plain scalar, if it is certain.
fn plain(text: &str) -> Option<YamlKind> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    match text.as_bytes() {
        [] | b"~" => return Some(YamlKind::Null),
        [b'n' | b'N', ..] if is("null") => return Some(YamlKind::Null),
        [b't' | b'T', ..] if is("true") => return Some(YamlKind::Bool(true)),
        [b'f' | b'F', ..] if is("false") => return Some(YamlKind::Bool(false)),
        [b'0'..=b'9' | b'+' | b'-' | b'.', ..] => {}
        _ => return Some(YamlKind::Text(text.to_owned())),
    }
    // A number may have these: `0x1F`, `1_000`, `1e9`, `.inf`, `.nan`.
    let may_be_of_number = |b: u8| b.is_ascii_digit() || b"+-._xobabcdefinXOABCDEFIN".contains(&b);
    let must_be_of_number = |b: u8| b.is_ascii_digit() || b"inIN".contains(&b);
    if !text.bytes().all(may_be_of_number) || !text.bytes().any(must_be_of_number) {
        return Some(YamlKind::Text(text.to_owned()));
    }
    let digits = |text: &str| !text.is_empty() && text.len() < 16 && text.bytes().all(|b| b.is_ascii_digit());
    let is_whole = |text: &str| digits(text) && (text == "0" || !text.starts_with('0'));
    match text.split_once('.') {
        None if is_whole(text) => text.parse().ok().map(YamlKind::Int),
        None => text
            .strip_prefix('-')
            .filter(|rest| is_whole(rest) && *rest != "0")?
            .parse()
            .ok()
            .map(|n: i64| YamlKind::Int(-n)),
        Some((whole, part)) if is_whole(whole) && digits(part) => text.parse().ok().map(YamlKind::Float),
        Some(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../../tests/unit/mapping_source_simple_yaml.rs"]
mod tests;
