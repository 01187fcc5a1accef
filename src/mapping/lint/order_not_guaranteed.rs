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

use super::{Set, abilities, shown};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::Scope;
use crate::mapping::config::dialect::DialectPlan;
use crate::order::proof::{Escape, Then};
use crate::order::turn_model::{Choices, Life};

/// How many of the moments before are shown.
const SHOWN: usize = 8;

pub(super) fn check(set: &Set) {
    let can = abilities(set.plan.backends.iter().map(|b| &**b));
    for (dialect, variant) in set.spoken() {
        let life = Life { policies: &dialect.resolved.policies, can, choices: choices(dialect) };
        for scope in Scope::ALL {
            let Some(order) = dialect.orders.of(*scope) else { continue };
            let Some(escape) = life.escape(*scope, order) else { continue };
            let Some(node) = variant.stream("order").and_then(|n| n.get(scope.word())) else { continue };
            let message = format!("{} can violate this order: {}", noun(*scope), sentence(&escape));
            let name = shown(&dialect.name, dialect.profile.as_deref());
            set.cx.add(
                Diagnostic::new(Code::ViolableOrder, node.span, message)
                    .help(format!("under the policies of `{name}`; what an order does not mention is free")),
            );
        }
    }
}

/// Can a request of this dialect ask for more than one?
pub(super) fn choices(dialect: &DialectPlan) -> Choices {
    let asks = dialect.request.scalars.iter().find(|read| read.field.name == "n");
    match asks.map(|read| read.constant().map(|n| n.as_i64())) {
        None | Some(Some(None | Some(..=1))) => Choices::One,
        Some(None | Some(Some(_))) => Choices::Several,
    }
}

fn noun(scope: Scope) -> &'static str {
    match scope {
        Scope::Turn => "a turn",
        Scope::Choice => "a choice",
        Scope::Item => "an item",
    }
}

fn sentence(escape: &Escape) -> String {
    let words: Vec<&str> = escape.way.iter().map(|m| m.word()).collect();
    let way = match words.len().checked_sub(SHOWN) {
        None | Some(0) => words.join(" "),
        Some(left_out) => format!("… {}", words[left_out..].join(" ")),
    };
    match escape.then {
        Then::Moment(moment) if words.is_empty() => format!("`{}` may come first", moment.word()),
        Then::Moment(moment) => format!("after `{way}` comes `{}`, which has no place there", moment.word()),
        Then::End => format!("it may end after `{way}`, and the order wants more"),
    }
}
