//! A moment that has a place in an order, or a failure, and no frame that tells it.
//!
//! ## Why
//!
//! What an order names, its author expects a client to be told. Without a frame nothing is told, and nobody notices: the
//! order is kept all the same. And a dialect without a frame for `turn.fail` just stops when a backend breaks off: its client
//! cannot tell half an answer from a whole one.
//!
//! ## Example
//!
//! ```yaml
//! frames:
//!   text.delta: { text: { data: { text: "{{ text }}" } } }
//! order:
//!   item: text.delta+ | tool.open tool.args*
//! ```
//!
//! ```text
//! warning[RF202]: `tool.open` has a place in this order, and no frame tells it
//! ```
//!
//! ## Mend
//!
//! Write a frame for it below `frames:`. If the client need not be told, take the moment out of the order (what an order does
//! not mention is free), or say that it is meant: `tool.open: {}` below `frames:`.

use super::violable_order::choices;
use super::{Set, Variant, abilities};
use crate::canon::{MomentKind, Scope};
use crate::contract::life::Life;
use crate::diag::{Code, Diagnostic};
use crate::mapping::yaml::Node;

pub(super) fn check(set: &Set) {
    let can = abilities(set.plan.backends.iter().map(|b| &**b));
    for (dialect, variant) in set.spoken() {
        let Some(frames) = variant.stream("frames") else { continue };
        // What a profile takes out is meant to be silent.
        let plain = set.variant(variant.dialect, None).and_then(|v| v.stream("frames"));
        let life = Life { policies: &dialect.resolved.policies, can, choices: choices(dialect) };
        for scope in Scope::ALL {
            let (Some(order), Some(node)) = (dialect.orders.of(*scope), order_of(variant, *scope)) else { continue };
            let framed = |m: MomentKind| frames.get(m.word()).or(plain.and_then(|f| f.get(m.word()))).is_some();
            let silent = |m: &&MomentKind| order.mentions(**m) && !framed(**m) && life.tells(**m);
            for moment in MomentKind::ALL.iter().filter(silent) {
                let word = moment.word();
                let message = format!("`{word}` has a place in this order, and no frame tells it");
                set.cx.add(
                    Diagnostic::new(Code::UnframedMoment, set.cx.sources.within(node.span, word), message)
                        .help(format!("if a client need not be told, `{word}: {{}}` below `frames:` says so")),
                );
            }
        }
        failure(set, variant, frames);
    }
}

/// It has no place in any order, because it may come at any time.
fn failure(set: &Set, variant: &Variant, frames: &Node) {
    let word = MomentKind::TurnFail.word();
    let entries = variant.node.get("stream").and_then(Node::as_map).unwrap_or(&[]);
    let Some(key) = entries.iter().find(|e| e.key == "frames").map(|e| e.key_span) else { return };
    if frames.get(word).is_none() {
        let message = format!("a stream that fails just stops: no frame tells `{word}`");
        set.cx.add(
            Diagnostic::new(Code::UnframedMoment, key, message)
                .help("a client then takes half an answer for a whole one"),
        );
    }
}

fn order_of<'v>(variant: &'v Variant, scope: Scope) -> Option<&'v Node> {
    variant.stream("order")?.get(scope.word())
}
