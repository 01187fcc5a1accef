//! Lints: warnings about a set that loads but is probably not what its author intended. One file per lint; its module
//! comment is the page that `check --explain` prints.

mod changed_index_law;
mod ineffective_policy;
pub mod loss;
mod order_not_guaranteed;
pub mod representable;
mod table_without_default;
mod template_texts;
mod unframed_moment;
mod unmatched_scope;
mod unreachable_rule;
mod unread_member;
mod unserved_dialect;
mod unused_fragment;
mod unvalidated_dialect;

pub(super) use table_without_default::in_expression as table_in_expression;

use super::config::backend::BackendPlan;
use super::config::dialect::DialectPlan;
use super::config::profile::Profile;
use super::config::profile_patch::PatchedDialect;
use super::load::Plan;
use super::policy::variants::reachable_dialects;
use super::source::field_reader::LoadContext;
use super::source::files::MappingFiles;
use super::source::yaml::Node;
use crate::diagnostics::Code;
use crate::domain::ReasoningKind;
use crate::order::turn_model::OutputKinds;
use representable::Feature;

/// A loaded set: its plan and its files.
pub(super) struct LintContext<'s> {
    plan: &'s Plan,
    files: &'s MappingFiles,
    profiles: &'s [Profile<'s>],
    patched_dialects: &'s [PatchedDialect],
    /// Those that were checked before and are not compiled again.
    skipped: &'s [&'s PatchedDialect],
    cx: LoadContext<'s>,
}

const LINTS: &[fn(&LintContext)] = &[
    unreachable_rule::check,
    unframed_moment::check,
    order_not_guaranteed::check,
    unused_fragment::check,
    table_without_default::check,
    ineffective_policy::check,
    unserved_dialect::check,
    unvalidated_dialect::check,
    changed_index_law::check,
    unread_member::check,
    unmatched_scope::check,
];

pub(super) fn run(
    plan: &Plan,
    files: &MappingFiles,
    profiles: &[Profile],
    patched_dialects: &[PatchedDialect],
    skipped: &[&PatchedDialect],
    cx: LoadContext,
) {
    let context = LintContext { plan, files, profiles, patched_dialects, skipped, cx };
    for lint in LINTS {
        cx.budget.begin("", "looking for mistakes between the files");
        lint(&context);
    }
}

impl<'s> LintContext<'s> {
    /// The compiled dialects that clients of the routes can get, each once.
    fn reachable_dialects(&self) -> Vec<(&'s DialectPlan, &'s PatchedDialect)> {
        let reachable = reachable_dialects(&self.plan.gateway.routes).into_iter();
        reachable.filter_map(|(_, dialect, _)| Some((&**dialect, self.patched_dialect(dialect)?))).collect()
    }

    fn patched_dialect(&self, plan: &DialectPlan) -> Option<&'s PatchedDialect> {
        self.patched_dialects.iter().find(|p| p.dialect == plan.name && p.profile == plan.profile)
    }
}

/// A key of the dialect's `stream:`.
fn stream_key<'n>(dialect: &'n Node, key: &str) -> Option<&'n Node> {
    dialect.get("stream")?.get(key)
}

/// Whether a lint reports this code.
pub(super) fn is_lint(code: Code) -> bool {
    use Code::{
        IneffectivePolicy, Loss, OrderNotGuaranteed, TableWithoutDefault, UnframedMoment, UnreachableRule,
        UnservedDialect, UnusedFragment, UnvalidatedDialect,
    };
    matches!(
        code,
        UnreachableRule
            | UnframedMoment
            | OrderNotGuaranteed
            | UnusedFragment
            | TableWithoutDefault
            | IneffectivePolicy
            | UnservedDialect
            | UnvalidatedDialect
            | Loss
    )
}

/// `chat@openai`
fn dialect_label(dialect: &str, profile: Option<&str>) -> String {
    profile.map_or_else(|| dialect.to_owned(), |profile| format!("{dialect}@{profile}"))
}

/// The kinds of output that any backend of the set can produce, with the blocks that the dialect finds in its text.
fn output_kinds<'b>(backends: impl IntoIterator<Item = &'b BackendPlan>, dialect: &DialectPlan) -> OutputKinds {
    let mut can = OutputKinds::default();
    let of_backends = backends.into_iter().flat_map(representable::features);
    for feature in of_backends.chain(representable::inline_features(&dialect.inline)) {
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
