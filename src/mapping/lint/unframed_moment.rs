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
//! not mention is free), or say that it is meant: `tool.open: {}` below `frames:`, in a profile `tool.open: { $replace: {} }`.
//! A `when:` in front of the only frame of `turn.fail` asks for what can happen, not for a policy that nobody has set so.

use super::order_not_guaranteed::choices;
use super::{Set, Variant, abilities, shown};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{MomentKind, Scope};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::source::yaml::{Entry, Node};
use crate::order::turn_model::Life;

pub(super) fn check(set: &Set) {
    let can = abilities(set.plan.backends.iter().map(|b| &**b));
    for (dialect, variant) in set.spoken() {
        let Some(frames) = variant.stream("frames") else { continue };
        // What a profile takes out is meant to be silent.
        let plain = set.variant(variant.dialect, None).and_then(|v| v.stream("frames"));
        let life = Life { policies: &dialect.resolved.policies, can, choices: choices(dialect) };
        let framed = |m: MomentKind| frames.get(m.word()).or(plain.and_then(|f| f.get(m.word()))).is_some();
        for moment in MomentKind::ALL.iter().filter(|m| !framed(**m) && life.tells(**m)) {
            // Several orders may name it, and one frame is missing.
            let mentions = |scope: &&Scope| dialect.orders.of(**scope).is_some_and(|o| o.mentions(*moment));
            let order = Scope::ALL.iter().find(mentions).and_then(|scope| order_of(variant, *scope));
            let Some(order) = order else { continue };
            let word = moment.word();
            let message = format!("`{word}` has a place in this order, and no frame tells it");
            set.cx.add(
                Diagnostic::new(Code::UnframedMoment, set.cx.sources.within(order.span, word), message)
                    .help(format!("if a client need not be told, `{word}: {{}}` below `frames:` says so")),
            );
        }
    }
    for variant in &set.variants {
        failure(set, variant);
    }
}

const HALF: &str = "a client then takes half an answer for a whole one";

/// It has no place in any order, because it may come at any time.
fn failure(set: &Set, variant: &Variant) {
    let word = MomentKind::TurnFail.word();
    let of_variant = |d: &&DialectPlan| d.name == variant.dialect && d.profile.as_deref() == variant.profile;
    let spoken: Vec<&DialectPlan> = set.spoken().into_iter().map(|(dialect, _)| dialect).filter(of_variant).collect();
    // Where one route tells it, that another one does not is what its policies are for.
    let told = spoken.iter().any(|dialect| !dialect.frames(MomentKind::TurnFail).is_empty());
    let Some(dialect) = spoken.first().filter(|_| !told) else { return };
    let whose = shown(variant.dialect, variant.profile);
    if let Some(denied) = dialect.denied.iter().find(|d| d.moment == MomentKind::TurnFail) {
        let message =
            format!("a stream of `{whose}` that fails just stops: its policies turn off the frame of `{word}`");
        let help = format!("{HALF}; the frame asks for `policy.{}`", denied.policies.join("` and `policy."));
        set.cx.add(Diagnostic::new(Code::UnframedMoment, denied.span, message).help(help));
        return;
    }
    let plain = set.variant(variant.dialect, None).and_then(|v| v.stream("frames")?.get(word));
    let left = variant.stream("frames").and_then(|frames| frames.get(word));
    let emptied = left.zip(plain).is_some_and(|(left, plain)| {
        let has_some = plain.as_map().is_some_and(|frames| !frames.is_empty());
        // What a profile writes in its place stands in the profile.
        has_some && left.span == plain.span
    });
    // Nothing below its name says that it is meant.
    if left.is_some() && !emptied {
        return;
    }
    if let (Some(_), Some(at)) = (plain, patched(set, variant)) {
        let message = format!("a stream of `{whose}` that fails just stops: this takes away what tells `{word}`");
        let help = format!("{HALF}; if that is meant, `{word}: {{ $replace: {{}} }}` says so");
        set.cx.add(Diagnostic::new(Code::UnframedMoment, at, message).help(help));
        return;
    }
    let entries = variant.node.get("stream").and_then(Node::as_map).unwrap_or(&[]);
    let Some(key) = entries.iter().find(|e| e.key == "frames").map(|e| e.key_span) else { return };
    let message = format!("a stream that fails just stops: no frame tells `{word}`");
    set.cx.add(Diagnostic::new(Code::UnframedMoment, key, message).help(HALF));
}

/// Where the profile's patch comes nearest to the frames of a failure.
fn patched(set: &Set, variant: &Variant) -> Option<Span> {
    let profile = set.profiles.iter().find(|p| Some(p.name) == variant.profile)?;
    let mut entry: &Entry = profile.patch.iter().find(|e| e.key == variant.dialect)?;
    for key in ["stream", "frames", MomentKind::TurnFail.word()] {
        match entry.value.as_map().and_then(|entries| entries.iter().find(|e| e.key == key)) {
            Some(below) => entry = below,
            None => break,
        }
    }
    Some(entry.key_span)
}

fn order_of<'v>(variant: &'v Variant, scope: Scope) -> Option<&'v Node> {
    variant.stream("order")?.get(scope.word())
}
