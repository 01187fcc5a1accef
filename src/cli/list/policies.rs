//! `reframe list policies`: the values of each policy, what it affects, and where the set changes it.

use super::one_line;
use crate::cli::dialect_names;
use crate::domain::policy::{BUILT_IN, PolicyEffect};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::policy::resolve::with_aliases;
use crate::mapping::source::yaml::Node;

/// A policy, built in or of a dialect.
struct ListedPolicy<'p> {
    name: &'p str,
    /// The first is the default.
    values: Vec<String>,
    about: String,
    affects: String,
    /// The dialect that declares it; `None` for a built-in policy.
    owner: Option<&'p str>,
}

pub fn describe(plan: &Plan) -> String {
    let built_in = BUILT_IN.iter().map(|spec| ListedPolicy {
        name: spec.name,
        values: spec.values.iter().map(|value| (*value).to_owned()).collect(),
        about: one_line(spec.description),
        affects: affects(spec.effect),
        owner: None,
    });
    let custom = plan.dialects().filter(|dialect| dialect.profile.is_none()).flat_map(|dialect| {
        dialect.resolved.custom.iter().map(|policy| ListedPolicy {
            name: &policy.name,
            values: policy.values.clone(),
            about: format!("A custom policy of {}.", dialect.name),
            affects: String::new(),
            owner: Some(&dialect.name),
        })
    });
    let mut text = "the first value is the default, and what OpenAI does: all others deviate from it\n".to_owned();
    built_in.chain(custom).for_each(|policy| text.push_str(&policy.describe(plan)));
    text
}

fn affects(effect: PolicyEffect) -> String {
    match effect {
        PolicyEffect::Expressions => String::new(),
        PolicyEffect::Variables(names) => format!("the variables {}", names.join(", ")),
        PolicyEffect::Moments(moments) => {
            format!("the moments {}", moments.iter().map(|moment| moment.name()).collect::<Vec<_>>().join(", "))
        }
        PolicyEffect::Anywhere => "how a response begins or ends, in every dialect".to_owned(),
    }
}

impl ListedPolicy<'_> {
    fn describe(&self, plan: &Plan) -> String {
        let shown: Vec<String> = with_aliases(self.name, &self.values)
            .iter()
            .map(|v| if v.is_empty() { "\"\"".to_owned() } else { v.clone() })
            .collect();
        let mut text = format!("\n{}: {}\n    {}\n", self.name, shown.join(" | "), self.about);
        let lines = [
            ("affects", self.affects.clone()),
            ("read by", self.readers(plan).join(", ")),
            ("set by dialects", self.settings(plan).join(", ")),
            ("changed by profiles", self.deviations(plan).join(", ")),
        ];
        for (what, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("    {what}: {value}\n"));
        }
        text
    }

    fn applies_to(&self, dialect: &DialectPlan) -> bool {
        self.owner.is_none_or(|owner| owner == dialect.name)
    }

    /// The dialects with expressions that read it.
    fn readers(&self, plan: &Plan) -> Vec<String> {
        let variable = format!("policy.{}", self.name);
        let reads = |name: &str| {
            let files = plan.dialect_sources.dialects.iter().filter(|source| source.dialect == name);
            files.into_iter().any(|source| mentions(&source.node, &variable))
        };
        let own = |name: &&str| self.owner.is_none_or(|owner| owner == *name);
        dialect_names(plan).into_iter().filter(own).filter(|name| reads(name)).map(str::to_owned).collect()
    }

    /// The dialects that have another value than the default.
    fn settings(&self, plan: &Plan) -> Vec<String> {
        let default = self.values.first();
        let dialects = plan.dialects().filter(|dialect| dialect.profile.is_none() && self.applies_to(dialect));
        let set = dialects.filter(|dialect| dialect.resolved.settings.iter().any(|s| s.name == self.name));
        let values = set.map(|dialect| (&dialect.name, dialect.resolved.policies.text(self.name)));
        values.filter(|(_, value)| Some(value) != default).map(|(name, value)| format!("{value} in {name}")).collect()
    }

    /// The profiles under which a dialect has another value than without a profile.
    fn deviations(&self, plan: &Plan) -> Vec<String> {
        let mut deviations = Vec::new();
        for dialect in plan.dialects().filter(|dialect| self.applies_to(dialect)) {
            let value = dialect.resolved.policies.text(self.name);
            let own = plan.dialect(&dialect.name, None).map(|own| own.resolved.policies.text(self.name));
            if let Some(profile) = dialect.profile.as_ref().filter(|_| own.as_ref() != Some(&value)) {
                deviations.push(format!("{value} in {}@{profile}", dialect.name));
            }
        }
        deviations
    }
}

/// Whether a text of the file contains this variable as a whole word.
fn mentions(node: &Node, variable: &str) -> bool {
    let is_word = |text: &str| {
        text.match_indices(variable).any(|(at, _)| {
            let after = text[at + variable.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let mut found = false;
    node.visit("", &mut |_, inner| found |= inner.as_text().is_some_and(is_word));
    found
}
