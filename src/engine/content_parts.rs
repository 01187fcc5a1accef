//! Reads the content parts of a request item, by the rules for content parts.

use super::fields::Mismatch;
use super::rule_output::{RuleOutput, UNMATCHED_ELEMENT};
use super::selector::Cursor;
use crate::domain::request_item::ContentPart;
use crate::mapping::language::rule::RuleSet;
use crate::mapping::language::selector::Selector;

impl RuleSet {
    /// The content parts of the selected node; `None` if it is absent, or a list of nothing but elements that are
    /// ignored: a user's message with nothing but results of tools is no message.
    pub(super) fn parts<'t>(
        &'t self,
        from: &'t Selector,
        cursor: &mut Cursor<'t>,
        whole: &mut RuleOutput,
    ) -> Result<Option<Vec<ContentPart>>, Mismatch> {
        let Some(node) = from.one(cursor).filter(|n| !n.is_null()) else { return Ok(None) };
        let path = from.node_path(cursor);
        let mut output = RuleOutput { budget: std::mem::take(&mut whole.budget), ..RuleOutput::default() };
        cursor.enter(node, path.clone());
        self.run(cursor, &mut output);
        cursor.leave();
        whole.budget = output.budget;
        if let Some(mismatch) = output.mismatches.into_iter().next() {
            return Err(mismatch);
        }
        if output.failed.is_some() {
            (whole.failed, whole.failed_at) = (output.failed, output.failed_at);
            return Ok(None);
        }
        if let Some(unknown) = output.unknown.into_iter().next() {
            return Err(Mismatch { param: unknown, message: UNMATCHED_ELEMENT.into() });
        }
        if let Some(empty) = output.without_content.into_iter().next() {
            return Err(Mismatch { param: empty.into_string(), message: "has no content: a field is missing".into() });
        }
        if !output.matched && node.as_list().is_none_or(|l| !l.is_empty()) {
            let found = node.type_name();
            return Err(Mismatch {
                param: cursor.text_of(&path).into_string(),
                message: format!("is not supported: no rule matches this {found}"),
            });
        }
        let parts = output.emissions.into_iter();
        let parts: Vec<_> = parts.filter_map(|part| ContentPart::from_emission(part.name, part.fields)).collect();
        let is_ignored = parts.is_empty() && node.as_list().is_some_and(|elements| !elements.is_empty());
        Ok((!is_ignored).then_some(parts))
    }
}
