//! The `param` of an error: the path of a request field as the client wrote it.

use super::select::Cursor;
use crate::domain::Tree;
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::Read;

impl RequestPlan {
    /// What a client of this dialect calls one of our scalars.
    pub fn param_of(&self, scalar: &str) -> Option<String> {
        let read = self.scalars.iter().find(|r| r.field.name == scalar)?;
        read.selectors().first().map(|s| s.param(&Cursor::new(&Tree::Null)))
    }

    /// What this client called it: of several names the one that it used.
    pub fn param_in(&self, scalar: &str, body: Option<&Tree>) -> String {
        let null = Tree::Null;
        let cursor = Cursor::new(body.unwrap_or(&null));
        let group = match scalar {
            "tool_choice" => &self.tool_choice,
            "format" => &self.format,
            _ => &self.scalars,
        };
        let grouped = matches!(scalar, "tool_choice" | "format");
        let reads = group.iter().filter(|r| grouped || r.field.name == scalar).flat_map(Read::selectors);
        let mut said = reads.filter(|s| s.one(&cursor).is_some_and(|v| !v.is_null()));
        let found = said.next();
        match (found, grouped) {
            (Some(selector), true) => selector.first_key().unwrap_or(scalar).to_owned(),
            (Some(selector), false) => selector.param(&cursor),
            (None, _) => scalar.to_owned(),
        }
    }
}
