//! A table over values that a backend or client sends, without `default:`.
//!
//! ## Why
//!
//! A backend may send a value tomorrow that it does not send today. A table without a row for it yields nothing: a
//! field stays empty, and a finish event without its reason is not emitted, so that the turn counts as truncated. In an
//! expression the result is null. (A table over Reframe's own closed lists must cover all values: that is RF110. A
//! table in a dialect's `request:` needs no default: an unknown value is rejected with a 400.)
//!
//! ## Example
//!
//! ```yaml
//! finish: { reason: { from: $.stop_reason, table: finish } }
//! tables:
//!   finish: { end_turn: stop, max_tokens: length }
//! ```
//!
//! ```text
//! warning[RF205]: the table `finish` has no row for unknown values
//! ```
//!
//! ## Fix
//!
//! Add `default:` with the result for unknown values; with `default: none` the field stays empty. In an expression,
//! `x | table('t') | default('other')` has the same effect. A field with a closed list of values, such as the `reason`
//! of a finish, needs a table if the backend's word is used.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::emit::FieldType;
use crate::mapping::language::condition::{Condition, ConditionTest};
use crate::mapping::language::rule::RuleSet;
use crate::mapping::language::table::Table;
use crate::mapping::source::field_reader::LoadContext;

pub(super) fn check(context: &LintContext) {
    for backend in &context.plan.backends {
        rules(&backend.rules, "the backend", context.cx);
        closed_fields(&backend.rules, context.cx);
    }
    for dialect in context.plan.dialects() {
        rules(&dialect.capture.rules, "another server", context.cx);
    }
}

fn rules(rules: &RuleSet, sender: &str, cx: LoadContext) {
    let tables = rules.emits().flat_map(|emit| &emit.fields).filter_map(|read| Some((read.table()?, read.field.name)));
    for (table, field) in tables.filter(|(table, _)| table.is_partial()) {
        let help = format!(
            "without a row `{field}` is omitted; add `default:` for values that {sender} may send in the future"
        );
        report(table, table.span, help, cx);
    }
}

/// A field with a closed list of values that a rule fills with whatever word the backend sends: the same loss, without
/// a table.
fn closed_fields(rules: &RuleSet, cx: LoadContext) {
    for (conditions, emit) in rules.emits_with_conditions() {
        for read in emit.fields.iter().filter(|read| matches!(read.field.field_type, FieldType::Enum(_))) {
            let Some((selector, span)) = read.unconverted() else { continue };
            // A condition may have selected the words already.
            let is_tested =
                |c: &&Condition| c.selector.text == selector.text && matches!(c.test, ConditionTest::OneOf(_));
            if conditions.iter().copied().find(is_tested).is_none() {
                let field = read.field.name;
                let message = format!("`{field}` has a closed list of values, and the backend may send other words");
                let help = format!("without a table they are omitted: `{{ from: \"{}\", table: … }}`", selector.text);
                cx.add(Diagnostic::new(Code::TableWithoutDefault, span, message).help(help));
            }
        }
    }
}

/// Called if `input` is not a variable with a closed list of values and no `default` filter follows.
pub(in crate::mapping) fn in_expression(table: &Table, input: &str, cx: LoadContext) {
    if table.is_partial() {
        let input = if input.is_empty() { "it".to_owned() } else { format!("`{input}`") };
        report(
            table,
            table.span,
            format!("{input} can have any value, and without a row the result is null; add `default:`"),
            cx,
        );
    }
}

fn report(table: &Table, span: Span, help: String, cx: LoadContext) {
    let message = format!("the table `{}` has no row for unknown values", table.name);
    cx.add(Diagnostic::new(Code::TableWithoutDefault, span, message).help(help));
}
