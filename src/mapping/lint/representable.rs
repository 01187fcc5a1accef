//! Features that a backend can emit and a dialect cannot represent. `check` lists them, so that no loss is silent.

use crate::domain::policy::ReasoningPolicy;
use crate::domain::{EventKind, MomentKind, ReasoningKind};
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::inline::InlinePlan;
use crate::mapping::language::emit_entry::Emit;
use crate::mapping::language::field::FieldMapping;

/// A kind of output that clients may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    Text,
    Refusal,
    Reasoning(ReasoningKind),
    EncryptedReasoning,
    Annotation,
    Tool,
    Usage,
    Fault,
}

/// Each with the moments that represent it, and its name in messages. Encrypted reasoning is never visible.
const REPRESENTED_BY: &[(Feature, &[MomentKind], &str)] = &[
    (Feature::Text, &[MomentKind::TextDelta], "text"),
    (Feature::Refusal, &[MomentKind::RefusalDelta], "refusals"),
    (
        Feature::Reasoning(ReasoningKind::Summary),
        &[MomentKind::SummaryDelta, MomentKind::ReasoningClose],
        "reasoning summaries",
    ),
    (Feature::Reasoning(ReasoningKind::Raw), &[MomentKind::ThoughtDelta, MomentKind::ReasoningClose], "raw reasoning"),
    (Feature::Annotation, &[MomentKind::Annotation], "annotations"),
    (Feature::Tool, &[MomentKind::ToolOpen, MomentKind::ToolArgs, MomentKind::ToolClose], "tool calls"),
    (Feature::Usage, &[MomentKind::Usage, MomentKind::TurnClose], "usage"),
    (Feature::Fault, &[MomentKind::TurnFail], "faults in the middle of a stream"),
];

/// The names of `REPRESENTED_BY`; empty when nothing is lost.
pub fn lost(backend: &BackendPlan, dialect: &DialectPlan) -> Vec<&'static str> {
    let features: Vec<Feature> = features(backend).into_iter().chain(inline_features(&dialect.inline)).collect();
    let drops_reasoning = dialect.resolved.policies.reasoning == ReasoningPolicy::Drop;
    let is_dropped = |feature: &Feature| drops_reasoning && matches!(feature, Feature::Reasoning(_));
    REPRESENTED_BY
        .iter()
        .filter(|(feature, moments, _)| {
            features.contains(feature) && (is_dropped(feature) || moments.iter().all(|m| dialect.frames(*m).is_empty()))
        })
        .map(|(_, _, name)| *name)
        .collect()
}

/// What the rules of a backend can emit.
pub(super) fn features(backend: &BackendPlan) -> Vec<Feature> {
    let mut features = Vec::new();
    for emit in backend.rules.emits() {
        let Some(event) = EventKind::from_name(emit.kind.name) else { continue };
        match event {
            EventKind::Text => features.push(Feature::Text),
            EventKind::Refusal => features.push(Feature::Refusal),
            EventKind::Reasoning => features.extend(reasoning(emit)),
            EventKind::Annotation => features.push(Feature::Annotation),
            EventKind::Tool => features.push(Feature::Tool),
            EventKind::Usage => features.push(Feature::Usage),
            EventKind::Fault => features.push(Feature::Fault),
            EventKind::Start | EventKind::Logprobs | EventKind::Batch | EventKind::AwaitResults => {}
            EventKind::Close
            | EventKind::Extra
            | EventKind::MetadataKeys
            | EventKind::FinishHint
            | EventKind::Finish
            | EventKind::End => {}
        }
    }
    features.extend(inline_features(&backend.inline));
    features
}

/// What the blocks in a text can become.
pub(super) fn inline_features(inline: &InlinePlan) -> impl Iterator<Item = Feature> {
    let reasoning = inline.has_reasoning().then_some(Feature::Reasoning(ReasoningKind::Raw));
    reasoning.into_iter().chain(inline.has_calls().then_some(Feature::Tool))
}

fn reasoning(emit: &Emit) -> Vec<Feature> {
    let field = |name: &str| emit.fields.iter().find(|f| f.field.name == name);
    let kinds: &[ReasoningKind] = match field("kind").map(FieldMapping::constant) {
        // The kind is read from the event, so it can be either.
        Some(None) => ReasoningKind::ALL,
        Some(Some(kind)) if kind.as_str() == Some(ReasoningKind::Summary.name()) => &[ReasoningKind::Summary],
        Some(Some(_)) | None => &[ReasoningKind::Raw],
    };
    let has_text = field("delta").or(field("whole")).is_some();
    let encrypted = field("encrypted").map(|_| Feature::EncryptedReasoning);
    kinds.iter().filter(|_| has_text).map(|kind| Feature::Reasoning(*kind)).chain(encrypted).collect()
}
