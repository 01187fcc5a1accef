//! What a backend can say and a dialect cannot: told by `check`, so that nothing is lost silently.

use crate::domain::MomentKind;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;

/// What a rule may emit, the moments that would tell it, and what a person calls it.
const TOLD_BY: &[(&str, &[MomentKind], &str)] = &[
    ("text", &[MomentKind::TextDelta], "text"),
    ("refusal", &[MomentKind::RefusalDelta], "refusals"),
    ("reasoning.summary", &[MomentKind::SummaryDelta, MomentKind::ReasoningClose], "reasoning summaries"),
    ("reasoning.raw", &[MomentKind::ThoughtDelta, MomentKind::ReasoningClose], "raw reasoning"),
    ("annotation", &[MomentKind::Annotation], "annotations"),
    ("tool", &[MomentKind::ToolOpen, MomentKind::ToolArgs, MomentKind::ToolClose], "tool calls"),
    ("usage", &[MomentKind::Usage, MomentKind::TurnClose], "usage"),
    ("fault", &[MomentKind::TurnFail], "failures in the middle of a stream"),
];

/// In the words of `TOLD_BY`; empty when nothing is lost.
pub fn lost(backend: &BackendPlan, dialect: &DialectPlan) -> Vec<&'static str> {
    let said = backend.rules.says();
    TOLD_BY
        .iter()
        .filter(|(word, moments, _)| said.contains(word) && moments.iter().all(|m| dialect.frames(*m).is_empty()))
        .map(|(_, _, name)| *name)
        .collect()
}
