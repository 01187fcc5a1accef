//! Reads the fields of an emitted event or request item from a JSON document.

use super::selector::Cursor;
use crate::diagnostics::schema_message::{one_of, quoted_value, truncate, with_article};
use crate::domain::Tree;
use crate::domain::emit::FieldType;
use crate::mapping::language::field::{Conversion, FieldMapping, FieldSource, coerce, scalar_str};
use crate::mapping::language::selector::Selector;
use std::borrow::Cow;

/// A value that does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub param: String,
    pub message: String,
}

impl FieldMapping {
    /// Whether the field has this enum value. Otherwise `none` in a table means an absent value.
    fn has_enum_value(&self, name: &str) -> bool {
        matches!(self.field.field_type, FieldType::Enum(names) if names.contains(&name))
    }

    /// Whether the document has a value for it, whatever it is, or it has one of its own.
    pub fn is_present(&self, cursor: &Cursor) -> bool {
        match &self.source {
            FieldSource::Constant(value) => !value.is_null(),
            FieldSource::ContentParts { .. } => true,
            FieldSource::Select { from, convert, default, .. } => {
                let is_value = |node: &Tree| !node.is_null() || *convert == Some(Conversion::JsonText);
                // Of several texts, any may be the first that is there.
                let is_list = *convert == Some(Conversion::Concat);
                is_list || !default.is_null() || from.iter().any(|selector| selector.one(cursor).is_some_and(is_value))
            }
        }
    }

    /// Whether a value needs neither a conversion nor a closer look: most of them.
    fn accepts(&self, node: &Tree) -> bool {
        match (self.field.field_type, node) {
            (FieldType::Text, Tree::Str(_)) | (FieldType::Bool, Tree::Bool(_)) => true,
            (FieldType::Json, node) => !matches!(node, Tree::SurrogateString(_)),
            _ => false,
        }
    }

    /// The value, converted to the field's type; null if it is absent.
    pub fn value(&self, cursor: &mut Cursor) -> Result<Tree, Mismatch> {
        match &self.source {
            FieldSource::Constant(value) => Ok(value.clone()),
            // A list of emissions, not of JSON: see `Emit::emit`.
            FieldSource::ContentParts { .. } => Ok(Tree::Null),
            FieldSource::Select { from, convert, table, default } => {
                if convert.is_none() && self.field.field_type != FieldType::TextOrList {
                    let found = from.iter().find_map(|selector| selector.one(cursor).filter(|node| !node.is_null()));
                    match found {
                        None => return Ok(default.clone()),
                        Some(node) if table.is_none() && self.accepts(node) => return Ok(node.clone()),
                        Some(_) => {}
                    }
                }
                if *convert == Some(Conversion::Sum) {
                    return Ok(sum(from, cursor));
                }
                if *convert == Some(Conversion::Concat) {
                    let text = concat(from, cursor)?;
                    return Ok(if text.is_null() { default.clone() } else { text });
                }
                if self.field.field_type == FieldType::TextOrList
                    && convert.is_none()
                    && table.is_none()
                    && let Some(texts) = texts(from, cursor)?
                {
                    return Ok(texts);
                }
                let found = from.iter().find_map(|s| s.one(cursor).filter(|n| !n.is_null()).map(|n| (s, n)));
                // JSON null is a value of its own, except where it means that there is nothing new.
                let is_json_text = *convert == Some(Conversion::JsonText) && self.field.name != "delta";
                let null = || from.iter().find_map(|s| s.one(cursor).map(|n| (s, n)));
                let null = || if is_json_text { null() } else { None };
                let Some((selector, node)) = found.or_else(null) else { return Ok(default.clone()) };
                let mismatch = |message: String| Mismatch { param: selector.param(cursor), message };
                let converted = match convert {
                    Some(Conversion::Position) => cursor.position().map_or(Tree::Null, |p| Tree::from(p as i64)),
                    Some(convert) => convert.apply(node).map_err(mismatch)?,
                    None => node.clone(),
                };
                let looked_up = match table {
                    None => converted,
                    Some(table) => {
                        let key = scalar_str(&converted).unwrap_or_default();
                        match table.get(&key).map(Cow::into_owned) {
                            Some(Tree::Str(name)) if name == "none" && !self.has_enum_value("none") => Tree::Null,
                            Some(value) => value,
                            None => {
                                let found = quoted_value(&converted);
                                return Err(mismatch(format!("must be {}, not {found}", one_of(table.keys()))));
                            }
                        }
                    }
                };
                if looked_up.is_null() {
                    return Ok(default.clone());
                }
                // A request is complete: no other half of a surrogate pair can follow.
                let looked_up = match looked_up {
                    Tree::SurrogateString(string) if !self.lenient => Tree::from(string.to_string_lossy()),
                    other => other,
                };
                if !self.lenient && self.field.field_type == FieldType::Text && looked_up.as_str().is_none() {
                    return Err(mismatch(format!("must be a string, not {}", with_article(node.type_name()))));
                }
                coerce(self.field, looked_up).map_err(|expected| {
                    let found = match (self.field.field_type, node) {
                        (FieldType::Enum(_), _) => quoted_value(node),
                        (_, Tree::Num(_)) => truncate(&node.to_json()),
                        _ => with_article(node.type_name()),
                    };
                    mismatch(format!("must be {expected}, not {found}"))
                })
            }
        }
    }
}

impl Conversion {
    fn apply(self, node: &Tree) -> Result<Tree, String> {
        match self {
            Conversion::JsonText => Ok(match node {
                Tree::Str(_) | Tree::SurrogateString(_) => node.clone(),
                other => Tree::from(other.to_json()),
            }),
            Conversion::Json => {
                let text = node.as_str().ok_or("must be a string that contains JSON")?;
                Tree::parse(text.as_bytes()).map_err(|_| "must be a string that contains JSON".to_owned())
            }
            Conversion::Not => Ok(Tree::from(!node.as_bool().unwrap_or(false))),
            Conversion::Lower => Ok(node.as_str().map_or(node.clone(), |t| Tree::from(t.to_lowercase()))),
            Conversion::Number => Ok(match node.as_str().map(|text| Tree::parse(text.trim().as_bytes())) {
                Some(Ok(number @ Tree::Num(_))) => number,
                _ => node.clone(),
            }),
            Conversion::Lines => {
                let texts = node.as_list().map(|list| list.iter().map(Tree::as_str).collect::<Option<Vec<_>>>());
                let texts = texts.flatten().ok_or("must be an array of strings")?;
                Ok(Tree::from(texts.join("\n")))
            }
            // Need more than the node: see `FieldMapping::value`.
            Conversion::Position | Conversion::Sum | Conversion::Concat => Ok(node.clone()),
            Conversion::Keys => {
                let members = node.as_map().ok_or("must be an object")?;
                Ok(Tree::List(members.iter().map(|(name, _)| Tree::from(&**name)).collect()))
            }
            Conversion::Count => {
                let count = node.as_list().map(<[_]>::len).or(node.as_map().map(<[_]>::len)).unwrap_or(1);
                Ok(Tree::from(count as i64))
            }
        }
    }
}

/// Null if no selector found a number.
fn sum(from: &[Selector], cursor: &Cursor) -> Tree {
    let counts: Vec<i64> = from.iter().filter_map(|s| s.one(cursor)?.as_i64()).collect();
    if counts.is_empty() { Tree::Null } else { Tree::from(counts.iter().fold(0i64, |a, b| a.saturating_add(*b))) }
}

/// The texts that the first selector over several nodes finds, as a list; `None` if it finds none.
fn texts(from: &[Selector], cursor: &Cursor) -> Result<Option<Tree>, Mismatch> {
    let found = from.iter().filter(|selector| selector.is_over_several()).find_map(|selector| {
        let nodes: Vec<_> = selector.many(cursor).filter(|(node, _)| !node.is_null()).collect();
        // One that is itself a list is read as such.
        let is_list = matches!(&nodes[..], [(node, _)] if node.as_list().is_some());
        (!nodes.is_empty() && !is_list).then_some(nodes)
    });
    let Some(found) = found else { return Ok(None) };
    let texts = found.into_iter().map(|(node, path)| match node {
        Tree::Str(_) | Tree::SurrogateString(_) => Ok(node.clone()),
        Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::List(_) | Tree::Map(_) => {
            let message = format!("must be a string, not {}", with_article(node.type_name()));
            Err(Mismatch { param: cursor.text_of(&path).into_string(), message })
        }
    });
    texts.collect::<Result<Vec<Tree>, Mismatch>>().map(|texts| Some(Tree::List(texts)))
}

/// All texts that the selectors find, in order; null if there are none.
fn concat(from: &[Selector], cursor: &Cursor) -> Result<Tree, Mismatch> {
    let mut text: Option<String> = None;
    for (node, path) in from.iter().flat_map(|selector| selector.many(cursor)).filter(|(node, _)| !node.is_null()) {
        let text = text.get_or_insert_default();
        match node {
            Tree::Str(found) => text.push_str(found),
            Tree::SurrogateString(found) => text.push_str(&found.to_string_lossy()),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::List(_) | Tree::Map(_) => {
                let message = format!("must be a string, not {}", with_article(node.type_name()));
                return Err(Mismatch { param: cursor.text_of(&path).into_string(), message });
            }
        }
    }
    Ok(text.map_or(Tree::Null, Tree::from))
}
