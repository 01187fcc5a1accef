//! Which policies influence a frame: those that its expressions read, and those that determine its variables or its
//! moment.

use crate::diagnostics::Span;
use crate::domain::MomentKind;
use crate::domain::policy::{BUILT_IN, PolicyEffect, PolicySpec};
use crate::mapping::config::dialect::{DialectPlan, FrameContent, FramePlan};
use crate::mapping::language::variables_read::VariablesRead;
use crate::mapping::policy::resolve::{ResolvedPolicies, Setting};

/// A policy that influences a frame.
#[derive(Debug)]
pub struct PolicyInfluence<'r> {
    pub name: String,
    pub value: String,
    pub kind: InfluenceKind,
    /// Where it is set; `None` if nothing sets it.
    pub setting: Option<&'r Setting>,
    /// Whether the value equals the default.
    pub is_default: bool,
}

/// How a policy influences a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfluenceKind {
    /// `when:` reads it, so it decides whether the frame is sent.
    When,
    /// The skeleton reads it.
    Shape,
    /// It determines the value of a variable that the frame contains, or whether and when the moment occurs.
    Implicit,
}

/// `resolved`: the policies of the client in question. Clients with different settings may share one compiled dialect,
/// which holds the settings of the first client only.
pub fn influencing_policies<'r>(
    resolved: &'r ResolvedPolicies,
    frame: &FramePlan,
    moment: MomentKind,
) -> Vec<PolicyInfluence<'r>> {
    let mut names: Vec<(String, InfluenceKind)> = Vec::new();
    let when = frame.when.as_ref().map(VariablesRead::of_expression).unwrap_or_default();
    for name in &frame.policies {
        let kind = if when.contains(&format!("policy.{name}")) { InfluenceKind::When } else { InfluenceKind::Shape };
        names.push((name.clone(), kind));
    }
    let (FrameContent::Data(skeleton) | FrameContent::Text(skeleton) | FrameContent::Comment(skeleton)) =
        &frame.content;
    let reads = VariablesRead::of(frame.when.as_ref(), skeleton);
    // Policies for JSON bodies do not influence the frames of a stream.
    for spec in BUILT_IN.iter().filter(|spec| !spec.name.starts_with("aggregate.")) {
        let is_implicit = match spec.effect {
            PolicyEffect::Variables(variables) => reads.all().any(|read| variables.iter().any(|v| overlaps(read, v))),
            PolicyEffect::Moments(moments) => moments.contains(&moment),
            PolicyEffect::Expressions | PolicyEffect::Anywhere => false,
        };
        if is_implicit && !names.iter().any(|(name, _)| name == spec.name) {
            names.push((spec.name.to_owned(), InfluenceKind::Implicit));
        }
    }
    names.into_iter().map(|(name, kind)| influence(resolved, name, kind)).collect()
}

/// The frames of a moment that policies disable, each with those policies.
pub fn disabling_policies<'r>(
    resolved: &'r ResolvedPolicies,
    dialect: &DialectPlan,
    moment: MomentKind,
) -> Vec<(Span, Vec<PolicyInfluence<'r>>)> {
    let disabled = dialect.disabled_frames.iter().filter(|d| d.moment == moment);
    let by_policy = |name: &String| influence(resolved, name.clone(), InfluenceKind::When);
    disabled.map(|d| (d.span, d.policies.iter().map(by_policy).collect())).collect()
}

/// `turn.usage.input` is part of `turn.usage`, and `turn.usage` contains it.
fn overlaps(read: &str, variable: &str) -> bool {
    let below = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    below(read, variable) || (read.contains('.') && below(variable, read))
}

fn influence(resolved: &ResolvedPolicies, name: String, kind: InfluenceKind) -> PolicyInfluence<'_> {
    let setting = resolved.settings.iter().rev().find(|s| s.name == name);
    let value = resolved.policies.text(&name);
    let custom = resolved.custom.iter().find(|p| p.name == name).and_then(|p| p.values.first());
    let is_default = match (custom, PolicySpec::find(&name)) {
        (Some(first), _) => *first == value,
        (None, Some(spec)) if !spec.list => spec.is_default(&value),
        (None, Some(_) | None) => setting.is_none(),
    };
    PolicyInfluence { name, value, kind, setting, is_default }
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_provenance_policies.rs"]
mod tests;
