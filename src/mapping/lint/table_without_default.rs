//! A table over words of others that has no `default:`.
//!
//! ## Why
//!
//! A backend may say a word tomorrow that it does not say today. A table without a row for it gives nothing: a field stays
//! empty, a finish without its reason is no finish, and the turn is taken for one that broke off. In an expression such a
//! word is null. (A table over our own closed words must name all of them: that is RF110. A table in a dialect's `request:`
//! needs no default: a word that it does not know is refused with 400.)
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
//! warning[RF205]: the table `finish` has no row for a word that it does not know
//! ```
//!
//! ## Mend
//!
//! Add `default:` with what an unknown word should mean; `default: none` says that it means nothing. In an expression
//! `x | table('t') | default('other')` does as well.

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

fn rules(rules: &RuleSet, who: &str, cx: LoadContext) {
    let tables = rules.emits().flat_map(|emit| &emit.fields).filter_map(|read| Some((read.table()?, read.field.name)));
    for (table, field) in tables.filter(|(table, _)| table.is_partial()) {
        let help = format!("`{field}` is then not said; `default:` is for what {who} may say one day");
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
            format!("{input} may be any word, and is null then; add `default:` for the rest"),
            cx,
        );
    }
}

fn report(table: &Table, span: Span, help: String, cx: LoadContext) {
    let message = format!("the table `{}` has no row for a word that it does not know", table.name);
    cx.add(Diagnostic::new(Code::TableWithoutDefault, span, message).help(help));
}
