//! Checks a client's body by `checks:` of its dialect.

use super::selector::Cursor;
use crate::diagnostics::schema_message::truncate;
use crate::domain::emit::scalar_text;
use crate::domain::{Fault, FaultKind, Tree};
use crate::mapping::config::request_checks::RequestCheck;
use crate::mapping::language::selector::Selector;

/// In a message: what the client sent.
const VALUE: &str = "{value}";

/// The fault of the first check that fails.
pub fn first_failure(checks: &[RequestCheck], body: &Tree) -> Option<Fault> {
    checks.iter().find_map(|check| check.failure(&check.each, &mut Cursor::new(body)))
}

impl RequestCheck {
    /// `each`: the selectors that are left, from the current node.
    fn failure<'t>(&'t self, each: &'t [Selector], cursor: &mut Cursor<'t>) -> Option<Fault> {
        let Some((first, rest)) = each.split_first() else { return self.failure_of_current(cursor) };
        // Null is the same as absent, but not in a list.
        let found = first.many(cursor).filter(|(node, _)| first.is_over_several() || !node.is_null());
        for (node, path) in found {
            cursor.enter(node, path);
            let fault = self.failure(rest, cursor);
            cursor.leave();
            if fault.is_some() {
                return fault;
            }
        }
        None
    }

    fn failure_of_current(&self, cursor: &Cursor) -> Option<Fault> {
        if !self.conditions.iter().all(|condition| condition.is_met(cursor)) {
            return None;
        }
        let node = self.value.one(cursor).filter(|node| !node.is_null());
        if node.is_some_and(|node| self.accepts(node)) {
            return None;
        }
        let kind = if node.is_none() { FaultKind::Missing } else { FaultKind::Invalid };
        let value = node.and_then(scalar_text).map(|text| truncate(&text).into_boxed_str());
        let message = self.message.replace(VALUE, value.as_deref().unwrap_or_default());
        let param = Some(self.param.param(cursor)).filter(|path| !path.is_empty());
        Some(Fault { param, code: self.code.clone(), value, ..Fault::new(kind, message) })
    }

    fn accepts(&self, node: &Tree) -> bool {
        let is_of_type = || self.types.iter().any(|one| one.unmet(node).is_none());
        let is_allowed = || self.allowed_values.contains(node);
        (self.types.is_empty() || is_of_type()) && (self.allowed_values.is_empty() || is_allowed())
    }
}
