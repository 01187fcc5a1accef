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

use super::Set;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::language::rule::RuleSet;
use crate::mapping::language::table::Table;
use crate::mapping::source::field_reader::Cx;

pub(super) fn check(set: &Set) {
    for backend in &set.plan.backends {
        rules(&backend.rules, "the backend", set.cx);
    }
    for dialect in set.plan.dialects() {
        rules(&dialect.capture.rules, "another server", set.cx);
    }
}

fn rules(rules: &RuleSet, who: &str, cx: Cx) {
    let tables = rules.emits().flat_map(|emit| &emit.reads).filter_map(|read| Some((read.table()?, read.field.name)));
    for (table, field) in tables.filter(|(table, _)| table.is_open()) {
        let help = format!("`{field}` is then not said; `default:` is for what {who} may say one day");
        say(table, table.span, help, cx);
    }
}

/// `input` is no variable with closed words, and nothing stands in for null after the look-up.
pub(in crate::mapping) fn in_expression(table: &Table, input: &str, cx: Cx) {
    if table.is_open() {
        let input = if input.is_empty() { "it".to_owned() } else { format!("`{input}`") };
        say(table, table.span, format!("{input} may be any word, and is null then; add `default:` for the rest"), cx);
    }
}

fn say(table: &Table, span: Span, help: String, cx: Cx) {
    let message = format!("the table `{}` has no row for a word that it does not know", table.name);
    cx.add(Diagnostic::new(Code::OpenTable, span, message).help(help));
}
