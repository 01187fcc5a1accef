//! Reads the fields of an emitted event or request item from a JSON document.

use super::selector::Cursor;
use crate::diagnostics::schema_message::{one_of, quoted_value, truncate, with_article};
use crate::domain::Tree;
use crate::domain::emit::FieldType;
use crate::mapping::language::field::{Conversion, FieldMapping, FieldSource, coerce, scalar_text};
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

    /// The value, converted to the field's type; null if it is absent.
    pub fn value(&self, cursor: &mut Cursor) -> Result<Tree, Mismatch> {
        match &self.source {
            FieldSource::Constant(value) => Ok(value.clone()),
            // A list of emissions, not of JSON: see `Emit::emit`.
            FieldSource::ContentParts { .. } => Ok(Tree::Null),
            FieldSource::Select { from, convert, table, default } => {
                if *convert == Some(Conversion::Sum) {
                    return Ok(sum(from, cursor));
                }
                let found = from.iter().find_map(|s| s.one(cursor).filter(|n| !n.is_null()).map(|n| (s, n)));
                // JSON null is a value of its own, except where it means that there is nothing new.
                let is_json_text = *convert == Some(Conversion::JsonText) && self.field.name != "delta";
                let null = || from.iter().find_map(|s| s.one(cursor).map(|n| (s, n))).filter(|_| is_json_text);
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
                        let key = scalar_text(&converted).unwrap_or_default();
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
            // Need more than the node: see `FieldMapping::value`.
            Conversion::Position | Conversion::Sum => Ok(node.clone()),
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
