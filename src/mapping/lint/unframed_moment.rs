//! A moment in an order, or a failure, without a frame.
//!
//! ## Why
//!
//! An order that mentions a moment suggests that clients receive it. Without a frame nothing is sent, and the mistake
//! is not noticed, because the order is still satisfied. A dialect without a frame for `turn.fail` just stops when a
//! backend disconnects: its client cannot distinguish a truncated response from a complete one.
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
//! warning[RF202]: the moment `tool.open` is in this order but has no frame
//! ```
//!
//! ## Fix
//!
//! Define a frame for the moment below `frames:`. If the client does not need it, remove the moment from the order (a
//! moment that an order does not mention is unconstrained), or declare that the omission is intended: `tool.open: {}`
//! below `frames:`, in a profile `tool.open: { $replace: {} }`. The `when:` of the only frame of `turn.fail` must
//! depend on the fault, not on a policy value that is not set.

use super::order_not_guaranteed::choices;
use super::{LintContext, PatchedDialect, dialect_label, output_kinds, stream_key};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{MomentKind, Scope};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::source::yaml::{Entry, Node};
use crate::order::turn_model::TurnModel;

pub(super) fn check(context: &LintContext) {
    for (dialect, patched_dialect) in context.reachable_dialects() {
        let output = output_kinds(context.plan.backends.iter().map(|b| &**b), dialect);
        let Some(frames) = stream_key(&patched_dialect.node, "frames") else { continue };
        // A frame that a profile removes is not reported: the removal is intended.
        let unpatched = stream_key(&patched_dialect.base, "frames");
        let turn_model = TurnModel { policies: &dialect.resolved.policies, output, choices: choices(dialect) };
        let framed = |m: MomentKind| frames.get(m.name()).or(unpatched.and_then(|f| f.get(m.name()))).is_some();
        for moment in MomentKind::ALL.iter().filter(|m| !framed(**m) && turn_model.can_emit(**m)) {
            // Reported once, even if several orders contain the moment.
            let mentions = |scope: &&Scope| dialect.orders.of(**scope).is_some_and(|o| o.mentions(*moment));
            let order = Scope::ALL
                .iter()
                .find(mentions)
                .and_then(|scope| stream_key(&patched_dialect.node, "order")?.get(scope.name()));
            let Some(order) = order else { continue };
            let word = moment.name();
            let message = format!("the moment `{word}` is in this order but has no frame");
            context.cx.add(
                Diagnostic::new(Code::UnframedMoment, context.cx.sources.within(order.span, word), message)
                    .help(format!("if clients do not need it, write `{word}: {{}}` below `frames:`")),
            );
        }
    }
    for patched_dialect in context.patched_dialects {
        failure(context, patched_dialect);
    }
}

const NOT_DISTINGUISHABLE: &str = "clients then cannot distinguish a truncated response from a complete one";

/// `turn.fail` is in no order, because it can occur at any time.
fn failure(context: &LintContext, patched_dialect: &PatchedDialect) {
    let word = MomentKind::TurnFail.name();
    let is_same = |d: &&DialectPlan| d.name == patched_dialect.dialect && d.profile == patched_dialect.profile;
    let reachable: Vec<&DialectPlan> =
        context.reachable_dialects().into_iter().map(|(dialect, _)| dialect).filter(is_same).collect();
    // If one route has the frame, its absence on another is the effect of a policy.
    let has_frame = reachable.iter().any(|dialect| !dialect.frames(MomentKind::TurnFail).is_empty());
    let Some(dialect) = reachable.first().filter(|_| !has_frame) else { return };
    let label = dialect_label(&patched_dialect.dialect, patched_dialect.profile.as_deref());
    if let Some(disabled) = dialect.disabled_frames.iter().find(|d| d.moment == MomentKind::TurnFail) {
        let message =
            format!("a stream of `{label}` that fails just stops: its policies disable the frame of `{word}`");
        let help = format!(
            "{NOT_DISTINGUISHABLE}; the frame depends on `policy.{}`",
            disabled.policies.join("` and `policy.")
        );
        context.cx.add(Diagnostic::new(Code::UnframedMoment, disabled.span, message).help(help));
        return;
    }
    let unpatched = stream_key(&patched_dialect.base, "frames").and_then(|frames| frames.get(word));
    let patched = stream_key(&patched_dialect.node, "frames").and_then(|frames| frames.get(word));
    let is_emptied = patched.zip(unpatched).is_some_and(|(patched, unpatched)| {
        let had_frames = unpatched.as_map().is_some_and(|frames| !frames.is_empty());
        // A replacement by the profile would have a span in the profile.
        had_frames && patched.span == unpatched.span
    });
    // An explicitly empty `turn.fail:` is intended.
    if patched.is_some() && !is_emptied {
        return;
    }
    if let (Some(_), Some(at)) = (unpatched, patch_span(patched_dialect)) {
        let message = format!("a stream of `{label}` that fails just stops: this patch removes the frame of `{word}`");
        let help = format!("{NOT_DISTINGUISHABLE}; if that is intended, write `{word}: {{ $replace: {{}} }}`");
        context.cx.add(Diagnostic::new(Code::UnframedMoment, at, message).help(help));
        return;
    }
    let entries = patched_dialect.node.get("stream").and_then(Node::as_map).unwrap_or(&[]);
    let Some(key) = entries.iter().find(|e| e.key == "frames").map(|e| e.key_span) else { return };
    let message = format!("a stream that fails just stops: `{word}` has no frame");
    context.cx.add(Diagnostic::new(Code::UnframedMoment, key, message).help(NOT_DISTINGUISHABLE));
}

/// The deepest key of the profile's patch on the path to the frames of `turn.fail`.
fn patch_span(patched_dialect: &PatchedDialect) -> Option<Span> {
    let mut entry: &Entry = patched_dialect.patches.last()?;
    for key in ["stream", "frames", MomentKind::TurnFail.name()] {
        match entry.value.as_map().and_then(|entries| entries.iter().find(|e| e.key == key)) {
            Some(below) => entry = below,
            None => break,
        }
    }
    Some(entry.key_span)
}
