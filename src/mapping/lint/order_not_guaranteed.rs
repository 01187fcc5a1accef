//! An order that a turn can violate under these policies.
//!
//! ## Why
//!
//! An order is checked in every stream: a moment that has no place in it ends the stream with a failure, in front of a
//! client. What a turn can tell is known beforehand, from the policies, from what the backends of the set can say, and from
//! whether a request can ask for several choices. So each order is proven: all that can come has a place in it, and a turn
//! that ends well may end there. This one is not, and the message has the shortest turn that breaks it.
//!
//! Of several choices nobody knows how many there are, and how they go on beside each other. Where that cannot be followed
//! as a whole, only what two of them can do is warned of: a warning is a turn that can happen.
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
//! warning[RF203]: an item can violate this order: it may end after `tool.open`, and the order wants more
//! ```
//!
//! ## Mend
//!
//! Widen the order (`tool.args*`), or take out a moment that the order need not speak of: what it does not mention is free.
//! Where it is a policy that brings the moment at this place (`reframe explain --to DIALECT --policies` lists them), set
//! another value.

use super::{LintContext, dialect_label, output_kinds};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::Scope;
use crate::mapping::config::dialect::DialectPlan;
use crate::order::proof::{Counterexample, Unexpected};
use crate::order::turn_model::{ChoiceCount, TurnModel};

/// How many of the preceding moments the message contains.
const MAX_SHOWN: usize = 8;

pub(super) fn check(context: &LintContext) {
    let output = output_kinds(context.plan.backends.iter().map(|b| &**b));
    for (dialect, patched_dialect) in context.reachable_dialects() {
        let turn_model = TurnModel { policies: &dialect.resolved.policies, output, choices: choices(dialect) };
        for scope in Scope::ALL {
            let Some(order) = dialect.orders.of(*scope) else { continue };
            let Some(counterexample) = turn_model.counterexample(*scope, order) else { continue };
            let Some(node) = patched_dialect.stream("order").and_then(|n| n.get(scope.name())) else { continue };
            let message = format!("{} can violate this order: {}", noun(*scope), sentence(&counterexample));
            let name = dialect_label(&dialect.name, dialect.profile.as_deref());
            context.cx.add(
                Diagnostic::new(Code::OrderNotGuaranteed, node.span, message)
                    .help(format!("under the policies of `{name}`; what an order does not mention is free")),
            );
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
        Unexpected::Moment(moment) if words.is_empty() => format!("`{}` may come first", moment.name()),
        Unexpected::Moment(moment) => format!("after `{path}` comes `{}`, which has no place there", moment.name()),
        Unexpected::End => format!("it may end after `{path}`, and the order wants more"),
    }
}
