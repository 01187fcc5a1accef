//! Features that a backend can emit and a dialect cannot represent. `check` lists them, so that no loss is silent.

use crate::domain::MomentKind;
use crate::domain::policy::ReasoningPolicy;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;

/// What a rule can emit, the moments that represent it, and its name in messages.
const REPRESENTED_BY: &[(&str, &[MomentKind], &str)] = &[
    ("text", &[MomentKind::TextDelta], "text"),
    ("refusal", &[MomentKind::RefusalDelta], "refusals"),
    ("reasoning.summary", &[MomentKind::SummaryDelta, MomentKind::ReasoningClose], "reasoning summaries"),
    ("reasoning.raw", &[MomentKind::ThoughtDelta, MomentKind::ReasoningClose], "raw reasoning"),
    ("annotation", &[MomentKind::Annotation], "annotations"),
    ("tool", &[MomentKind::ToolOpen, MomentKind::ToolArgs, MomentKind::ToolClose], "tool calls"),
    ("usage", &[MomentKind::Usage, MomentKind::TurnClose], "usage"),
    ("fault", &[MomentKind::TurnFail], "faults in the middle of a stream"),
];

/// The names of `REPRESENTED_BY`; empty when nothing is lost.
pub fn lost(backend: &BackendPlan, dialect: &DialectPlan) -> Vec<&'static str> {
    let emitted = backend.rules.emitted_kinds();
    let drops_reasoning = dialect.resolved.policies.reasoning == ReasoningPolicy::Drop;
    let is_dropped = |kind: &str| drops_reasoning && kind.starts_with("reasoning.");
    REPRESENTED_BY
        .iter()
        .filter(|(word, moments, _)| {
            emitted.contains(word) && (is_dropped(word) || moments.iter().all(|m| dialect.frames(*m).is_empty()))
        })
        .map(|(_, _, name)| *name)
        .collect()
}
