//! Combines all policy settings of a route and compiles the dialect for each combination. Precedence, lowest first:
//! dialect, profile, environment, route, user-agent rule, header. The profile of a user-agent rule replaces the route's
//! profile and takes precedence over the route's policies.

use super::environment::{Environment, EnvironmentReader};
use super::owners::DialectIndex;
use super::resolve::{AllowedValues, ResolvedPolicies, SetBy, Setting};
use super::variants::{AgentMatch, HeaderChoice, RouteVariant, RouteVariants, VariantGroup};
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::profile::Profile;
use crate::mapping::config::route::{RoutePlan, UserAgentRule};
use crate::mapping::source::field_reader::LoadContext;
use std::sync::Arc;

/// The settings from environment variables, for one dialect and profile.
#[derive(Debug)]
pub struct EnvironmentSettings {
    dialect: String,
    profile: String,
    settings: Vec<Setting>,
}

/// The inputs of variant compilation.
pub struct PolicyLayers<'l> {
    /// Each dialect with each profile.
    pub bases: &'l [Arc<DialectPlan>],
    pub dialects: &'l DialectIndex<'l>,
    pub environment: &'l [EnvironmentSettings],
    /// Compiles a dialect and profile with these policies.
    pub compile: &'l dyn Fn(&DialectPlan, &ResolvedPolicies) -> Option<DialectPlan>,
    pub cx: LoadContext<'l>,
}

/// The most variants of one route: each is compiled and verified before the set is used.
const MAX_VARIANTS: usize = 64;

/// The environment settings of all dialects with all profiles.
pub fn environment_settings(
    bases: &[Arc<DialectPlan>],
    profiles: &[Profile],
    dialects: &DialectIndex,
    environment: &Environment,
    cx: LoadContext,
) -> Vec<EnvironmentSettings> {
    let mut found = Vec::new();
    for base in bases {
        let Some(profile) = profiles.iter().find(|p| Some(p.name) == base.profile.as_deref()) else { continue };
        let reader = EnvironmentReader { dialect: &base.name, dialects, environment };
        let settings = reader.read(&profile.environment, &base.resolved, cx);
        found.push(EnvironmentSettings { dialect: base.name.clone(), profile: profile.name.to_owned(), settings });
    }
    found.retain(|f| !f.settings.is_empty());
    found
}

impl EnvironmentSettings {
    pub fn of(all: &[EnvironmentSettings], base: &DialectPlan) -> Vec<Setting> {
        let applies = |s: &&EnvironmentSettings| s.dialect == base.name && Some(&s.profile) == base.profile.as_ref();
        all.iter().find(applies).map(|s| s.settings.clone()).unwrap_or_default()
    }
}

impl PolicyLayers<'_> {
    pub fn compile_variants(&self, gateway: &mut GatewayPlan) {
        let mut compiled: Vec<Arc<DialectPlan>> = self.bases.to_vec();
        for route in &mut gateway.routes {
            let rules = std::iter::once(None).chain(gateway.by_user_agent.iter().enumerate().map(Some));
            // A dialect that could not be compiled is already reported.
            let Some(groups) = rules.map(|rule| self.group(route, rule)).collect::<Option<Vec<_>>>() else { continue };
            if self.too_many(route, &groups) || self.cx.findings.errors() > 0 {
                continue;
            }
            route.variants =
                RouteVariants(groups.into_iter().filter_map(|g| self.compile_group(g, &mut compiled)).collect());
            if let Some(dialect) = route.variants.default_dialect() {
                route.check_parameters(dialect, self.cx);
            }
        }
    }

    /// The settings of a group before header choices.
    fn group<'g>(&'g self, route: &RoutePlan, rule: Option<(usize, &UserAgentRule)>) -> Option<PendingGroup<'g>> {
        let agent = rule.map(|(rule, r)| AgentMatch { word: r.pattern.clone(), rule });
        let rule = rule.map(|(_, r)| r);
        let rule_profile = rule.and_then(|r| r.profile.as_ref());
        let profile = rule_profile.or(route.profile.as_ref());
        let base = self.bases.iter().find(|d| d.name == route.dialect && d.profile.as_ref() == profile)?;
        let resolved = &base.resolved;
        let (from_dialect, from_profile): (Vec<Setting>, Vec<Setting>) =
            resolved.settings.iter().cloned().partition(|s| s.by == SetBy::Dialect);
        let from_environment = EnvironmentSettings::of(self.environment, base);
        let from_route = resolved.read(&route.policies, &SetBy::Route, self.cx);
        let rule_policies = rule.map_or(&[][..], |r| &r.policies);
        let from_rule = resolved.read_per_dialect(&base.name, self.dialects, rule_policies, &SetBy::UserAgent, self.cx);
        let settings = match rule_profile {
            Some(_) => [from_dialect, from_route, from_profile, from_environment, from_rule],
            None => [from_dialect, from_profile, from_environment, from_route, from_rule],
        };
        Some(PendingGroup { base, settings: settings.concat(), agent, choices: self.choices(route, resolved) })
    }

    fn choices(&self, route: &RoutePlan, resolved: &ResolvedPolicies) -> Vec<HeaderChoice> {
        let mut choices = Vec::new();
        for rule in &route.headers {
            match resolved.allowed(&rule.policy) {
                Some(AllowedValues::OneOf(words)) => choices.push(HeaderChoice {
                    header: rule.name.clone(),
                    policy: rule.policy.clone(),
                    // An empty header counts as absent.
                    words: words.into_iter().filter(|w| !w.is_empty()).collect(),
                    span: rule.span,
                }),
                Some(AllowedValues::FinishList) => {
                    let message = format!("the policy `{}` is a list, which a header cannot set", rule.policy);
                    self.cx.add(
                        Diagnostic::new(Code::BadPolicyValue, rule.policy_span, message)
                            .help("set it in `policies:` of the route or of its profile"),
                    );
                }
                None => resolved.unknown(&rule.policy, rule.policy_span, self.cx),
            }
        }
        choices
    }

    fn too_many(&self, route: &RoutePlan, groups: &[PendingGroup]) -> bool {
        let counts = groups.iter().map(|g| VariantGroup::count(&g.choices));
        let count = counts.sum::<Option<usize>>();
        if count.is_some_and(|count| count <= MAX_VARIANTS) {
            return false;
        }
        let shown = count.map_or("too many".to_owned(), |n| n.to_string());
        let message = format!("this route has {shown} variants; the limit is {MAX_VARIANTS}");
        let help = "each header multiplies the variants by the number of its values plus one, and each user-agent rule \
                    adds as many again";
        let span = route.headers.first().map_or(route.span, |h| h.span);
        self.cx.add(Diagnostic::new(Code::TooManyVariants, span, message).help(help));
        true
    }

    fn compile_group(&self, pending: PendingGroup, compiled: &mut Vec<Arc<DialectPlan>>) -> Option<VariantGroup> {
        let PendingGroup { base, settings, agent, choices } = pending;
        let mut variants = Vec::new();
        for at in 0..VariantGroup::count(&choices)? {
            let mut settings = settings.clone();
            for (choice, chosen) in choices.iter().zip(VariantGroup::chosen_words(&choices, at)) {
                let Some(word) = chosen.and_then(|at| choice.words.get(at)) else { continue };
                let by = SetBy::Header(choice.header.clone());
                let (name, value) = (choice.policy.clone(), word.clone());
                settings.push(Setting { name, value, span: choice.span, by });
            }
            let resolved = base.resolved.with_settings(settings);
            let same = |d: &&Arc<DialectPlan>| {
                d.name == base.name && d.profile == base.profile && d.resolved.policies == resolved.policies
            };
            let plan = match compiled.iter().find(same) {
                Some(plan) => plan.clone(),
                None => {
                    let plan = Arc::new((self.compile)(base, &resolved)?);
                    compiled.push(plan.clone());
                    plan
                }
            };
            variants.push(RouteVariant { resolved, plan });
        }
        Some(VariantGroup { agent, choices, variants })
    }
}

/// A group before its dialects are compiled.
struct PendingGroup<'e> {
    base: &'e Arc<DialectPlan>,
    settings: Vec<Setting>,
    agent: Option<AgentMatch>,
    choices: Vec<HeaderChoice>,
}
