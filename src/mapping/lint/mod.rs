//! Lints: warnings about a set that loads but is probably not what its author intended. One file per lint; its module
//! comment is the page that `check --explain` prints.

mod ineffective_policy;
pub mod loss;
mod order_not_guaranteed;
pub mod representable;
mod table_without_default;
mod template_texts;
mod unframed_moment;
mod unreachable_rule;
mod unused_fragment;

pub(super) use table_without_default::in_expression as table_in_expression;

use super::config::backend::BackendPlan;
use super::config::dialect::DialectPlan;
use super::config::profile::Profile;
use super::config::profile_patch;
use super::load::Plan;
use super::source::field_reader::LoadContext;
use super::source::layout::MappingFiles;
use super::source::yaml::Node;
use crate::diagnostics::{Code, Findings};
use crate::domain::ReasoningKind;
use crate::order::turn_model::OutputKinds;
use representable::Feature;
use std::borrow::Cow;

/// A loaded set: its plan and its files.
pub(super) struct LintContext<'s> {
    plan: &'s Plan,
    files: &'s MappingFiles,
    profiles: &'s [Profile<'s>],
    patched_dialects: Vec<PatchedDialect<'s>>,
    cx: LoadContext<'s>,
}

/// A dialect file with the patch of a profile applied.
struct PatchedDialect<'s> {
    dialect: &'s str,
    profile: Option<&'s str>,
    node: Cow<'s, Node>,
}

const LINTS: &[fn(&LintContext)] = &[
    unreachable_rule::check,
    unframed_moment::check,
    order_not_guaranteed::check,
    unused_fragment::check,
    table_without_default::check,
    ineffective_policy::check,
];

pub(super) fn run(plan: &Plan, files: &MappingFiles, profiles: &[Profile], cx: LoadContext) {
    let context = LintContext { plan, files, profiles, patched_dialects: patched_dialects(files, profiles, cx), cx };
    for lint in LINTS {
        lint(&context);
    }
}

impl<'s> LintContext<'s> {
    /// The compiled dialects that clients of the routes can get, each once.
    fn reachable_dialects(&self) -> Vec<(&'s DialectPlan, &PatchedDialect<'s>)> {
        let mut reachable: Vec<(&DialectPlan, &PatchedDialect)> = Vec::new();
        for (dialect, _) in self.plan.gateway.routes.iter().flat_map(|r| r.variants.reachable_dialects()) {
            let Some(patched_dialect) = self.patched_dialect(&dialect.name, dialect.profile.as_deref()) else {
                continue;
            };
            if !reachable.iter().any(|(known, _)| std::ptr::eq(*known, &**dialect)) {
                reachable.push((dialect, patched_dialect));
            }
        }
        reachable
    }

    fn patched_dialect(&self, dialect: &str, profile: Option<&str>) -> Option<&PatchedDialect<'s>> {
        self.patched_dialects.iter().find(|p| p.dialect == dialect && p.profile == profile)
    }
}

impl PatchedDialect<'_> {
    fn stream(&self, key: &str) -> Option<&Node> {
        self.node.get("stream")?.get(key)
    }
}

fn patched_dialects<'s>(files: &'s MappingFiles, profiles: &[Profile<'s>], cx: LoadContext) -> Vec<PatchedDialect<'s>> {
    let mut patched_dialects = Vec::new();
    for node in &files.dialects {
        let Some(dialect) = node.get("dialect").and_then(Node::as_text) else { continue };
        patched_dialects.push(PatchedDialect { dialect, profile: None, node: Cow::Borrowed(node) });
        for profile in profiles {
            let node = match profile.patch.iter().find(|e| e.key == dialect) {
                None => Cow::Borrowed(node),
                Some(entry) => {
                    let mut patched = node.clone();
                    // The patch was applied during loading without errors.
                    let findings = Findings::default();
                    profile_patch::apply(
                        &mut patched,
                        &entry.value,
                        dialect,
                        LoadContext { findings: &findings, ..cx },
                    );
                    Cow::Owned(patched)
                }
            };
            patched_dialects.push(PatchedDialect { dialect, profile: Some(profile.name), node });
        }
    }
    patched_dialects
}

/// Whether a lint reports this code.
pub(super) fn is_lint(code: Code) -> bool {
    use Code::{
        IneffectivePolicy, Loss, OrderNotGuaranteed, TableWithoutDefault, UnframedMoment, UnreachableRule,
        UnusedFragment,
    };
    matches!(
        code,
        UnreachableRule
            | UnframedMoment
            | OrderNotGuaranteed
            | UnusedFragment
            | TableWithoutDefault
            | IneffectivePolicy
            | Loss
    )
}

/// `chat@openai`
fn dialect_label(dialect: &str, profile: Option<&str>) -> String {
    profile.map_or_else(|| dialect.to_owned(), |profile| format!("{dialect}@{profile}"))
}

/// The kinds of output that any backend of the set can produce.
fn output_kinds<'b>(backends: impl IntoIterator<Item = &'b BackendPlan>) -> OutputKinds {
    let mut can = OutputKinds::default();
    for feature in backends.into_iter().flat_map(representable::features) {
        match feature {
            Feature::Text => can.text = true,
            Feature::Refusal => can.refusal = true,
            Feature::Annotation => can.annotations = true,
            Feature::Reasoning(ReasoningKind::Summary) => can.summaries = true,
            Feature::Reasoning(ReasoningKind::Raw) => can.thoughts = true,
            Feature::EncryptedReasoning => can.encrypted_reasoning = true,
            // A response format may be requested as a tool call, which is then sent as text.
            Feature::Tool => (can.tools, can.text) = (true, true),
            Feature::Usage => can.usage = true,
            Feature::Fault => {}
        }
    }
    can
}
