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
//! `x | table('t') | default('other')` has the same effect.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::language::rule::RuleSet;
use crate::mapping::language::table::Table;
use crate::mapping::source::field_reader::LoadContext;

pub(super) fn check(context: &LintContext) {
    for backend in &context.plan.backends {
        rules(&backend.rules, "the backend", context.cx);
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
