//! What is no mistake and hardly meant: said of a set that loads. One file a lint; the text on top of it is the page that
//! `check --explain` prints.

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
use super::source::field_reader::Cx;
use super::source::layout::Files;
use super::source::yaml::Node;
use crate::diagnostics::{Code, Findings};
use crate::order::turn_model::Abilities;
use std::borrow::Cow;

/// A set that loaded: its plan, and the files that it was made of.
pub(super) struct Set<'s> {
    plan: &'s Plan,
    files: &'s Files,
    profiles: &'s [Profile<'s>],
    variants: Vec<Variant<'s>>,
    cx: Cx<'s>,
}

/// A dialect as a profile leaves it.
struct Variant<'s> {
    dialect: &'s str,
    profile: Option<&'s str>,
    node: Cow<'s, Node>,
}

const LINTS: &[fn(&Set)] = &[
    unreachable_rule::check,
    unframed_moment::check,
    order_not_guaranteed::check,
    unused_fragment::check,
    table_without_default::check,
    ineffective_policy::check,
];

pub(super) fn run(plan: &Plan, files: &Files, profiles: &[Profile], cx: Cx) {
    let set = Set { plan, files, profiles, variants: variants(files, profiles, cx), cx };
    for lint in LINTS {
        lint(&set);
    }
}

impl<'s> Set<'s> {
    /// What the clients of routes can get: each dialect once under each profile and its policies.
    fn spoken(&self) -> Vec<(&'s DialectPlan, &Variant<'s>)> {
        let mut spoken: Vec<(&DialectPlan, &Variant)> = Vec::new();
        for (dialect, _) in self.plan.gateway.routes.iter().flat_map(|r| r.variants.reachable()) {
            let Some(variant) = self.variant(&dialect.name, dialect.profile.as_deref()) else { continue };
            if !spoken.iter().any(|(known, _)| std::ptr::eq(*known, &**dialect)) {
                spoken.push((dialect, variant));
            }
        }
        spoken
    }

    fn variant(&self, dialect: &str, profile: Option<&str>) -> Option<&Variant<'s>> {
        self.variants.iter().find(|v| v.dialect == dialect && v.profile == profile)
    }
}

impl Variant<'_> {
    fn stream(&self, key: &str) -> Option<&Node> {
        self.node.get("stream")?.get(key)
    }
}

fn variants<'s>(files: &'s Files, profiles: &[Profile<'s>], cx: Cx) -> Vec<Variant<'s>> {
    let mut variants = Vec::new();
    for node in &files.dialects {
        let Some(dialect) = node.get("dialect").and_then(Node::as_text) else { continue };
        variants.push(Variant { dialect, profile: None, node: Cow::Borrowed(node) });
        for profile in profiles {
            let node = match profile.patch.iter().find(|e| e.key == dialect) {
                None => Cow::Borrowed(node),
                Some(entry) => {
                    let mut patched = node.clone();
                    // It was applied before, and nothing was wrong with it.
                    let findings = Findings::default();
                    profile_patch::apply(&mut patched, &entry.value, dialect, Cx { findings: &findings, ..cx });
                    Cow::Owned(patched)
                }
            };
            variants.push(Variant { dialect, profile: Some(profile.name), node });
        }
    }
    variants
}

/// Is this said by one of the lints?
pub(super) fn finds(code: Code) -> bool {
    use Code::{IdlePolicy, Loss, OpenTable, UnframedMoment, UnreachableRule, UnusedPart, ViolableOrder};
    matches!(code, UnreachableRule | UnframedMoment | ViolableOrder | UnusedPart | OpenTable | IdlePolicy | Loss)
}

/// `chat@openai`
fn shown(dialect: &str, profile: Option<&str>) -> String {
    profile.map_or_else(|| dialect.to_owned(), |profile| format!("{dialect}@{profile}"))
}

/// What the backends of a set can say, all together.
fn abilities<'b>(backends: impl IntoIterator<Item = &'b BackendPlan>) -> Abilities {
    let mut can = Abilities::default();
    for word in backends.into_iter().flat_map(|b| b.rules.says()) {
        match word {
            "text" => can.text = true,
            "refusal" => can.refusal = true,
            "annotation" => can.annotations = true,
            "reasoning.summary" => can.summaries = true,
            "reasoning.raw" => can.thoughts = true,
            "reasoning.sealed" => can.sealed = true,
            // The form of an answer may travel as a tool: its call is then told as text.
            "tool" => (can.tools, can.text) = (true, true),
            "usage" => can.usage = true,
            _ => {}
        }
    }
    can
}
