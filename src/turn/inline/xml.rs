//! Reads a call that is written as elements: `<name>search</name> <query>rust &amp; tokio</query>`.

use crate::domain::Tree;
use crate::domain::inline::InlineBlock;
use std::borrow::Cow;

/// Elements and the attributes of the block's own tag, as text, in the order of the block.
#[derive(Debug, Default)]
pub(super) struct Elements(Vec<(String, String)>);

/// More elements than a tool has parameters. Each name is compared with all others.
const MAX_ELEMENTS: usize = 1000;

/// `None` if there is anything but elements with text in them, or very many. If the `open` of the block does not end its tag, the tag
/// may have attributes; the one called `name` counts as an element.
pub(super) fn elements(content: &str, block: &InlineBlock, name: &str) -> Option<Elements> {
    let mut elements = Elements::default();
    let mut rest = content;
    if !block.open.ends_with('>') {
        let (attributes, after) = rest.split_once('>')?;
        elements.0.extend(attribute(attributes, name)?.map(|value| (name.to_owned(), value)));
        rest = after;
    }
    rest = rest.trim_start();
    while !rest.is_empty() {
        let (tag, after) = rest.strip_prefix('<')?.split_once('>')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.');
        let element = tag.strip_suffix('/').unwrap_or(tag).trim_end();
        if element.is_empty() || !element.chars().all(is_name) || elements.0.len() >= MAX_ELEMENTS {
            return None;
        }
        let (value, after) = match tag.ends_with('/') {
            true => ("", after),
            false => after.split_once(&*format!("</{element}>"))?,
        };
        elements.0.push((element.to_owned(), unescape(value.trim()).into_owned()));
        rest = after.trim_start();
    }
    Some(elements)
}

/// The attribute called `name`. The outer `None`: these are no attributes.
fn attribute(attributes: &str, name: &str) -> Option<Option<String>> {
    let mut found = None;
    let mut rest = attributes;
    while !rest.trim().is_empty() {
        let (key, value) = rest.strip_prefix(|c: char| c.is_whitespace())?.trim_start().split_once('=')?;
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = value[1..].split_once(quote)?;
        if key == name {
            found = Some(unescape(value).into_owned());
        }
        rest = after;
    }
    Some(found)
}

impl Elements {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes an element. `None` if there is none, or more than one.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let mut found = self.0.iter().enumerate().filter(|(_, (element, _))| element == name);
        let (at, _) = found.next()?;
        match found.next() {
            Some(_) => None,
            None => Some(self.0.remove(at).1),
        }
    }

    /// The elements as the members of an object. Elements with the same name become a list. `parameters` is the JSON
    /// Schema of the tool: it decides whether `5` is a number or a text.
    pub fn into_json(self, parameters: Option<&Tree>, spaced: bool) -> String {
        let properties = parameters.and_then(|schema| schema.get("properties"));
        let mut members: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in self.0 {
            match members.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => members.push((name, vec![value])),
            }
        }
        let object = members.into_iter().map(|(name, values)| {
            let schema = properties.and_then(|properties| properties.get(&name));
            let items = schema.and_then(|schema| schema.get("items"));
            let value = match <[String; 1]>::try_from(values) {
                Ok([value]) => typed(value, schema),
                Err(values) => Tree::List(values.into_iter().map(|value| typed(value, items)).collect()),
            };
            (name, value)
        });
        match spaced {
            false => Tree::map(object).to_json(),
            true => {
                let member =
                    |(name, value): (String, Tree)| format!("{}: {}", Tree::from(name).to_json(), value.to_json());
                format!("{{{}}}", object.map(member).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The value as JSON, if the schema asks for that; without a type, if it is an object or a list. Else a string.
fn typed(text: String, schema: Option<&Tree>) -> Tree {
    let declared = schema.and_then(|schema| schema.get("type"));
    let types: Vec<&str> = match declared {
        Some(Tree::List(types)) => types.iter().filter_map(Tree::as_str).collect(),
        Some(one) => one.as_str().into_iter().collect(),
        None => vec!["object", "array"],
    };
    if types.contains(&"string") {
        return Tree::from(text);
    }
    let parsed = Tree::parse(text.as_bytes()).ok();
    let fits = |value: &Tree| match value {
        Tree::Null => types.contains(&"null"),
        Tree::Bool(_) => types.contains(&"boolean"),
        Tree::Num(_) => types.contains(&"number") || (types.contains(&"integer") && value.is_whole()),
        Tree::Str(_) | Tree::SurrogateString(_) => false,
        Tree::List(_) => types.contains(&"array"),
        Tree::Map(_) => types.contains(&"object"),
    };
    parsed.filter(fits).unwrap_or_else(|| Tree::from(text))
}

/// Replaces the five entities of XML and numeric ones; any other `&` is text.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        result.push_str(before);
        let entity = after.as_bytes().iter().take(10).position(|byte| *byte == b';');
        match entity.and_then(|end| Some((character(&after[..end])?, end))) {
            Some((character, end)) => {
                result.push(character);
                rest = &after[end + 1..];
            }
            None => {
                result.push('&');
                rest = after;
            }
        }
    }
    result.push_str(rest);
    Cow::Owned(result)
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        other => {
            let number = other.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
