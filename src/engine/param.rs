//! The `param` of an error: the path of a request field as the client wrote it.

use super::selector::Cursor;
use crate::domain::Tree;
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::FieldMapping;

impl RequestPlan {
    /// The field of this dialect's requests that sets a scalar.
    pub fn param_of(&self, scalar: &str) -> Option<String> {
        let read = self.scalars.iter().find(|r| r.field.name == scalar)?;
        read.selectors().first().map(|s| s.param(&Cursor::new(&Tree::Null)))
    }

    /// The same for one request: of several fields, the one that the client sent.
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
}
