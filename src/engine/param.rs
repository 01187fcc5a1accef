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
    pub fn param_in(&self, scalar: &str, body: Option<&Tree>) -> String {
        let null = Tree::Null;
        let cursor = Cursor::new(body.unwrap_or(&null));
        let group = match scalar {
            "tool_choice" => &self.tool_choice,
            "format" => &self.format,
            _ => &self.scalars,
        };
        let grouped = matches!(scalar, "tool_choice" | "format");
        let reads = group.iter().filter(|r| grouped || r.field.name == scalar).flat_map(FieldMapping::selectors);
        let mut sent = reads.filter(|s| s.one(&cursor).is_some_and(|v| !v.is_null()));
        match (sent.next(), grouped) {
            (Some(selector), true) => selector.root_member().unwrap_or(scalar).to_owned(),
            (Some(selector), false) => selector.param(&cursor),
            (None, _) => scalar.to_owned(),
        }
    }
}
