//! Words of a request that its dialect does not define (`known_values:`). They are kept as the client sent them, because
//! the backend may know them.

use super::selector::Cursor;
use crate::diagnostics::schema_message::{one_of, quoted_value};
use crate::domain::Tree;
use crate::domain::request::UnknownValue;
use crate::domain::request_item::{Derived, Format, ToolChoice};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::FieldMapping;

/// The words that are not in the lists of the dialect. Values that are no words are left to the checks of types.
pub fn find(plan: &RequestPlan, cursor: &Cursor) -> Vec<UnknownValue> {
    let unknown = plan.known_values.iter().filter_map(|(selector, known)| {
        let value = selector.one(cursor)?;
        let word = value.as_str()?;
        if known.iter().any(|k| k == word) {
            return None;
        }
        let param = selector.param(cursor);
        let allowed = one_of(known.iter().map(String::as_str));
        let message = format!("`{param}` must be {allowed}, not {}", quoted_value(value));
        Some(UnknownValue { param, message })
    });
    unknown.collect()
}

/// The unknown word that decides about a group of fields, such as the kind of a format.
pub fn of_group<'u>(fields: &[FieldMapping], unknown: &'u [UnknownValue], cursor: &Cursor) -> Option<&'u UnknownValue> {
    if unknown.is_empty() {
        return None;
    }
    let mut selectors = fields.iter().flat_map(FieldMapping::selectors);
    selectors.find_map(|selector| {
        let param = selector.param(cursor);
        unknown.iter().find(|unknown| unknown.param == param)
    })
}

/// A tool choice that only a backend can understand.
pub fn tool_choice(unknown: &UnknownValue, body: &Tree) -> ToolChoice {
    let sent = member(body, &unknown.param).cloned();
    ToolChoice { mode: None, name: None, allowed: None, unknown: Derived(sent) }
}

/// A format that only a backend can understand: the object around its kind.
pub fn format(unknown: &UnknownValue, body: &Tree) -> Format {
    let parent = unknown.param.rsplit_once('.').map_or(&*unknown.param, |(parent, _)| parent);
    let sent = member(body, parent).cloned();
    Format { kind: None, name: None, schema: None, strict: None, description: None, unknown: Derived(sent) }
}

fn member<'t>(body: &'t Tree, path: &str) -> Option<&'t Tree> {
    path.split('.').try_fold(body, |node, name| node.get(name))
}
