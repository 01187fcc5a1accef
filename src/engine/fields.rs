//! Fills the fields of an emitted event or request item from a JSON document.

use super::select::Cursor;
use crate::diagnostics::one_of;
use crate::domain::Tree;
use crate::domain::emit::Kind;
use crate::mapping::language::field::{Convert, Read, Way, fit, scalar_text};
use crate::mapping::language::selector::Selector;

/// Why a value cannot fill its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub param: String,
    pub message: String,
}

impl Read {
    /// Is it one of the words that the field itself knows? Elsewhere `none` in a table means that nothing is said.
    fn may_be(&self, word: &str) -> bool {
        matches!(self.field.kind, Kind::Word(words) if words.contains(&word))
    }

    /// The value, converted and of the field's type; null when it is absent.
    pub fn value(&self, cursor: &mut Cursor) -> Result<Tree, Mismatch> {
        match &self.way {
            Way::Constant(value) => Ok(value.clone()),
            Way::Parts { from, rules } => rules.parts(from, cursor),
            Way::Select { from, convert, table, default } => {
                if *convert == Some(Convert::Sum) {
                    return Ok(sum(from, cursor));
                }
                let found = from.iter().find_map(|s| s.one(cursor).filter(|n| !n.is_null()).map(|n| (s, n)));
                let Some((selector, node)) = found else { return Ok(default.clone()) };
                let wrong = |message: String| Mismatch { param: selector.param(cursor), message };
                let converted = match convert {
                    Some(Convert::Position) => cursor.position().map_or(Tree::Null, |p| Tree::from(p as i64)),
                    Some(convert) => convert.apply(node).map_err(wrong)?,
                    None => node.clone(),
                };
                let looked_up = match table {
                    None => converted,
                    Some(table) => {
                        let word = scalar_text(&converted).unwrap_or_default();
                        match table.get(&word) {
                            Some(Tree::Str(word)) if word == "none" && !self.may_be("none") => Tree::Null,
                            Some(value) => value.clone(),
                            None => {
                                return Err(wrong(format!("must be {}, not `{word}`", one_of(table.keys()))));
                            }
                        }
                    }
                };
                if looked_up.is_null() {
                    return Ok(default.clone());
                }
                // A client's half of a character has no other half to wait for.
                let looked_up = match looked_up {
                    Tree::Torn(torn) if !self.lenient => Tree::from(torn.lossy()),
                    other => other,
                };
                if !self.lenient && self.field.kind == Kind::Text && looked_up.as_str().is_none() {
                    return Err(wrong(format!("must be a string, not {}", article(node.type_name()))));
                }
                fit(self.field, looked_up)
                    .map_err(|expected| wrong(format!("must be {expected}, not {}", article(node.type_name()))))
            }
        }
    }
}

impl Convert {
    fn apply(self, node: &Tree) -> Result<Tree, String> {
        match self {
            Convert::JsonText => Ok(match node {
                Tree::Str(_) | Tree::Torn(_) => node.clone(),
                other => Tree::from(other.to_json()),
            }),
            Convert::Json => {
                let text = node.as_str().ok_or("must be text that holds JSON")?;
                Tree::parse(text.as_bytes()).map_err(|_| "must be text that holds JSON".to_owned())
            }
            Convert::Not => Ok(Tree::from(!node.as_bool().unwrap_or(false))),
            Convert::Lower => Ok(node.as_str().map_or(node.clone(), |t| Tree::from(t.to_lowercase()))),
            // Need more than the node: see `Read::value`.
            Convert::Position | Convert::Sum => Ok(node.clone()),
            Convert::Count => {
                let count = node.as_list().map(<[_]>::len).or(node.as_map().map(<[_]>::len)).unwrap_or(1);
                Ok(Tree::from(count as i64))
            }
        }
    }
}

/// Null when nothing was counted.
fn sum(from: &[Selector], cursor: &Cursor) -> Tree {
    let counts: Vec<i64> = from.iter().filter_map(|s| s.one(cursor)?.as_i64()).collect();
    if counts.is_empty() { Tree::Null } else { Tree::from(counts.iter().fold(0i64, |a, b| a.saturating_add(*b))) }
}

fn article(noun: &str) -> String {
    match noun {
        "null" => "null".to_owned(),
        "array" | "object" => format!("an {noun}"),
        _ => format!("a {noun}"),
    }
}
