//! The `param` of an error: the path of a request field as the client wrote it.

use super::selector::Cursor;
use crate::diagnostics::schema_message::quoted_value;
use crate::domain::{Fault, Tree};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::FieldMapping;

/// In `param:` of a `$reject`: the member with the content of the request.
const CONTENT: &str = "content";

/// A fault of a `$reject`, with the client's name of what its `param:` means.
pub fn with_client_param(fault: Fault, content: impl FnOnce() -> Option<String>) -> Fault {
    match fault.param.as_deref() {
        Some(CONTENT) => Fault { param: content(), ..fault },
        _ => fault,
    }
}

impl RequestPlan {
    /// The field of this dialect's requests that sets a scalar.
    pub fn param_of(&self, scalar: &str) -> Option<String> {
        let read = self.scalars.iter().find(|r| r.field.name == scalar)?;
        read.selectors().first().map(|s| s.param(&Cursor::new(&Tree::Null)))
    }

    /// The member with the content of a request: its first required one besides the model, or else the first list of
    /// which the elements become items.
    pub fn content_param(&self) -> Option<String> {
        let model = self.param_of("model");
        let lists = self.items.groups.iter().filter_map(|group| group.each.as_ref());
        let selectors = self.required.iter().map(|(selector, _)| selector).chain(lists);
        let mut params = selectors.map(|selector| selector.param(&Cursor::new(&Tree::Null)));
        params.find(|param| Some(param) != model.as_ref())
    }

    /// As `param_of`, for one request: of several fields, the one that the client sent.
    pub fn param_in(&self, scalar: &str, body: &Tree) -> Option<String> {
        let cursor = Cursor::new(body);
        let group = match scalar {
            "tool_choice" => &self.tool_choice,
            "format" => &self.format,
            _ => &self.scalars,
        };
        let grouped = matches!(scalar, "tool_choice" | "format");
        let mut reads = group.iter().filter(|r| grouped || r.field.name == scalar).flat_map(FieldMapping::selectors);
        let sent = reads.find(|s| s.one(&cursor).is_some_and(|v| !v.is_null()))?;
        Some(if grouped { sent.root_member().unwrap_or(scalar).to_owned() } else { sent.param(&cursor) })
    }

    /// The value that decides about a scalar, a tool choice or a format, as the client wrote it, with its path.
    pub fn sent_value(&self, scalar: &str, body: &Tree) -> Option<String> {
        let cursor = Cursor::new(body);
        let (group, field) = match scalar {
            "tool_choice" => (&self.tool_choice, "mode"),
            "format" => (&self.format, "kind"),
            _ => (&self.scalars, scalar),
        };
        let mut selectors = group.iter().filter(|r| r.field.name == field).flat_map(FieldMapping::selectors);
        let (selector, value) = selectors.find_map(|s| Some((s, s.one(&cursor).filter(|v| !v.is_null())?)))?;
        Some(format!("`{}` with the value {}", selector.param(&cursor), quoted_value(value)))
    }
}
