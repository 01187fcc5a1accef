//! Emits the entries of a rule's `emit:` for the current node, and reports what they could not read.

use super::fields::Mismatch;
use super::rule_output::{Emission, RuleOutput, Unread};
use super::selector::Cursor;
use crate::diagnostics::Span;
use crate::diagnostics::schema_message::with_article;
use crate::domain::Tree;
use crate::domain::emit::{EmitGrammar, EmittedFields};
use crate::mapping::language::emit_entry::{Emit, EmitContent, EmitEntry};
use crate::mapping::language::field::FieldSource;

/// Runs entries of `emit:`. Adjacent entries with the same `each` walk their list once, element by element, so that the
/// output keeps the order of the input.
pub(super) fn run_entries<'t>(
    entries: &'t [EmitEntry],
    grammar: &EmitGrammar,
    rule: Span,
    cursor: &mut Cursor<'t>,
    output: &mut RuleOutput,
) {
    let same_list = |a: &EmitEntry, b: &EmitEntry| match (&a.each, &b.each) {
        (Some(a), Some(b)) => a.text == b.text,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    for entries in entries.chunk_by(same_list) {
        let Some(each) = entries.first().and_then(|entry| entry.each.as_ref()) else {
            entries.iter().for_each(|entry| entry.run(grammar, rule, cursor, output));
            continue;
        };
        let emitted = output.emissions.len();
        for (node, path) in each.many(cursor) {
            if output.budget.is_stopped() {
                return;
            }
            cursor.enter(node, path);
            entries.iter().for_each(|entry| entry.run(grammar, rule, cursor, output));
            cursor.leave();
        }
        if entries[0].requires_list
            && output.emissions.len() == emitted
            && let Some((path, found)) = each.in_place_of_list(cursor)
        {
            report_lost(entries, rule, &path, found, output);
        }
    }
}

impl EmitEntry {
    /// For one element of its list.
    fn run<'t>(&'t self, grammar: &EmitGrammar, rule: Span, cursor: &mut Cursor<'t>, output: &mut RuleOutput) {
        if !self.conditions.iter().all(|c| c.is_met(cursor)) {
            return;
        }
        match &self.content {
            EmitContent::One(emit) => emit.emit(grammar, rule, cursor, output),
            EmitContent::Inner(entries) => run_entries(entries, grammar, rule, cursor, output),
        }
    }
}

impl Emit {
    fn emit<'t>(&'t self, grammar: &EmitGrammar, rule: Span, cursor: &mut Cursor<'t>, output: &mut RuleOutput) {
        // Most events have the payload of one entry: the other fields of the rest are not read.
        if !self.payload.is_empty() && !self.payload.iter().any(|at| self.fields[*at].is_present(cursor)) {
            return;
        }
        let mismatch = output.mismatches.len();
        let mut fields = EmittedFields::with_capacity(self.fields.len());
        let mut parts = None;
        for read in &self.fields {
            if let FieldSource::ContentParts { from, rules } = &read.source {
                match rules.parts(from, cursor, output) {
                    Ok(found) => parts = found,
                    Err(mismatch) => output.mismatches.push(mismatch),
                }
                continue;
            }
            match read.value(cursor) {
                Ok(Tree::Null) => {}
                Ok(value) => fields.push((read.field.name, value)),
                Err(mismatch) => output.mismatches.push(mismatch),
            }
        }
        let has_payload = |name: &&str| {
            *name == "parts" && parts.is_some()
                || fields
                    .iter()
                    .any(|(n, v)| n == name && !(grammar.skip_empty && v.as_str().is_some_and(str::is_empty)))
        };
        let has_effect = self.kind.payload.is_empty() || self.kind.payload.iter().any(has_payload);
        if output.mismatches.len() > mismatch {
            output.unread.push(Unread { name: self.kind.name, is_lost: !has_effect, rule, mismatch });
        }
        if has_effect && output.budget.take_one(|| cursor.path().into_string()) {
            let path = cursor.recorded_path();
            output.emissions.push(Emission { name: self.kind.name, fields, parts, rule, path });
        }
    }
}

/// Reports what is lost because there is no list, once for each word.
pub(super) fn report_lost(entries: &[EmitEntry], rule: Span, path: &str, found: &str, output: &mut RuleOutput) {
    for name in entries.iter().flat_map(EmitEntry::names) {
        if output.unread.iter().all(|unread| unread.name != name) {
            let mismatch = output.mismatches.len();
            let message = format!("must be an array, not {}", with_article(found));
            output.mismatches.push(Mismatch { param: path.to_owned(), message });
            output.unread.push(Unread { name, is_lost: true, rule, mismatch });
        }
    }
}
