//! An order that a turn can violate under these policies.
//!
//! ## Why
//!
//! The order is checked in every stream: a moment that it does not allow ends the stream with a failure. The moments
//! that a turn can produce are known in advance, from the policies, from what the backends of the set can emit, and
//! from whether a request can set `n` above 1. So each order is verified: every possible sequence of moments
//! must match it, and a turn that ends normally may end there. This order does not pass; the message has the shortest
//! turn that violates it.
//!
//! The number of choices and how they interleave are not known in advance. Where they cannot be analysed completely,
//! only what two choices can do is reported, so every warning is a turn that can happen.
//!
//! ## Example
//!
//! ```yaml
//! order:
//!   turn: turn.open choice.finish* turn.end
//!   item: text.delta+ | tool.open tool.args+
//! ```
//!
//! ```text
//! warning[RF203]: an item can violate this order: it can end after `tool.open`, where the order requires more
//! ```
//!
//! ## Fix
//!
//! Widen the order (`tool.args*`), or remove a moment that it need not constrain: a moment that an order does not
//! mention is unconstrained. If a policy causes the moment at this position (`reframe explain --to DIALECT --policies`
//! lists all policies), set another value.

use super::{LintContext, dialect_label, output_kinds, stream_key};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::Scope;
use crate::mapping::config::dialect::DialectPlan;
use crate::order::proof::{Counterexample, Unexpected};
use crate::order::turn_model::{ChoiceCount, TurnModel};

/// How many of the preceding moments the message contains.
const MAX_SHOWN: usize = 8;

pub(super) fn check(context: &LintContext) {
    for (dialect, patched_dialect) in context.reachable_dialects() {
        let output = output_kinds(context.plan.backends.iter().map(|b| &**b), dialect);
        let turn_model = TurnModel { policies: &dialect.resolved.policies, output, choices: choices(dialect) };
        for scope in Scope::ALL {
            let Some(order) = dialect.orders.of(*scope) else { continue };
            let file = context.cx.sources.get(patched_dialect.node.span.file).map_or("", |source| source.name.as_str());
            context.cx.budget.begin(file, format!("proving the order of {}", noun(*scope)));
            let found = turn_model.counterexample(*scope, order, context.cx.budget);
            let Some(counterexample) = found else { continue };
            let Some(node) = stream_key(&patched_dialect.node, "order").and_then(|n| n.get(scope.name())) else {
                continue;
            };
            let message = format!("{} can violate this order: {}", noun(*scope), sentence(&counterexample));
            let name = dialect_label(&dialect.name, dialect.profile.as_deref());
            context.cx.add(Diagnostic::new(Code::OrderNotGuaranteed, node.span, message).help(format!(
                "under the policies of `{name}`; a moment that an order does not mention is unconstrained"
            )));
        }
    }
}

/// Whether a request of this dialect can request more than one choice.
pub(super) fn choices(dialect: &DialectPlan) -> ChoiceCount {
    let requested = dialect.request.scalars.iter().find(|read| read.field.name == "n");
    match requested.map(|read| read.constant().map(|n| n.as_i64())) {
        None | Some(Some(None | Some(..=1))) => ChoiceCount::One,
        Some(None | Some(Some(_))) => ChoiceCount::Several,
    }
}

fn noun(scope: Scope) -> &'static str {
    match scope {
        Scope::Turn => "a turn",
        Scope::Choice => "a choice",
        Scope::Item => "an item",
    }
}

fn sentence(counterexample: &Counterexample) -> String {
    let words: Vec<&str> = counterexample.path.iter().map(|m| m.name()).collect();
    let path = match words.len().checked_sub(MAX_SHOWN) {
        None | Some(0) => words.join(" "),
        Some(left_out) => format!("… {}", words[left_out..].join(" ")),
    };
    match counterexample.unexpected {
        Unexpected::Moment(moment) if words.is_empty() => format!("`{}` can come first", moment.name()),
        Unexpected::Moment(moment) => {
            format!("`{path}` can be followed by `{}`, which is not allowed there", moment.name())
        }
        Unexpected::End => format!("it can end after `{path}`, where the order requires more"),
    }
}
